/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/channel.h"

#include "uprof/error.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

/* Room for the descriptors of one message, aligned as the kernel wants it. */
typedef union {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(UPROF_CHANNEL_FDS_MAX * sizeof(int))];
} Control;

/* The kernel refuses a message that is longer than the buffer of its socket, less 32 bytes for
 * itself (EMSGSIZE; unix_dgram_sendmsg() of Linux). Two messages may be on their way: see remote.c
 * of src/worker. The administrator can set the usual size of buffers (net.core.wmem_default) below
 * that of our messages. */
static const int buffer_bytes = 2 * UPROF_CHANNEL_BYTES_MAX;

/* Makes room for two of our longest messages. Only CAP_NET_ADMIN may exceed net.core.wmem_max. */
static bool
enlarge_buffer(int fd)
{
    int bytes = 0;
    socklen_t len = sizeof(bytes);

    if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &buffer_bytes, sizeof(buffer_bytes)) < 0 &&
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer_bytes, sizeof(buffer_bytes)) < 0)
        return false;
    return getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, &len) == 0 && bytes >= buffer_bytes;
}

bool
uprof_channel_new(int ends[2], GError **error)
{
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return uprof_error_fail_errno(error, "no channel to another process");
    if (enlarge_buffer(ends[0]) && enlarge_buffer(ends[1]))
        return true;
    close(ends[0]);
    close(ends[1]);
    g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED,
                "no channel to another process: a socket gets no buffer of %d bytes; "
                "set net.core.wmem_max to %d or more",
                buffer_bytes, buffer_bytes);
    return false;
}

static void
attach_fds(struct msghdr *head, Control *control, const int *fds, unsigned n_fds)
{
    if (n_fds == 0)
        return;
    head->msg_control = control->bytes;
    head->msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
    struct cmsghdr *item = CMSG_FIRSTHDR(head);
    item->cmsg_level = SOL_SOCKET;
    item->cmsg_type = SCM_RIGHTS;
    item->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
    memcpy(CMSG_DATA(item), fds, n_fds * sizeof(int));
}

bool
uprof_channel_send(int fd, uint32_t type, const UprofSlice *parts, unsigned n_parts, const int *fds,
                   unsigned n_fds)
{
    struct iovec pieces[UPROF_CHANNEL_PARTS_MAX + 1] = { { &type, sizeof(type) } };
    struct msghdr head = { .msg_iov = pieces, .msg_iovlen = n_parts + 1 };
    Control control = { 0 };
    ssize_t n;

    g_assert(n_parts <= UPROF_CHANNEL_PARTS_MAX && n_fds <= UPROF_CHANNEL_FDS_MAX);
    for (unsigned i = 0; i < n_parts; i++)
        pieces[i + 1] = (struct iovec){ (void *)parts[i].data, parts[i].len };
    attach_fds(&head, &control, fds, n_fds);
    do
        n = sendmsg(fd, &head, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    if (n < 0 && errno == ECONNRESET)
        errno = EPIPE;
    return n >= 0;
}

/* Keeps the descriptors of a message. Returns: false if there are more than a message can have */
static bool
collect_fds(const struct msghdr *head, UprofMessage *message)
{
    bool ok = !(head->msg_flags & MSG_CTRUNC);

    for (struct cmsghdr *item = CMSG_FIRSTHDR((struct msghdr *)head); item;
         item = CMSG_NXTHDR((struct msghdr *)head, item)) {
        if (item->cmsg_level != SOL_SOCKET || item->cmsg_type != SCM_RIGHTS)
            continue;
        const size_t n = (item->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        const int *fds = (const int *)(const void *)CMSG_DATA(item);
        for (size_t i = 0; i < n; i++) {
            if (message->n_fds < UPROF_CHANNEL_FDS_MAX)
                message->fds[message->n_fds++] = fds[i];
            else
                close(fds[i]);
            ok = ok && i < UPROF_CHANNEL_FDS_MAX;
        }
    }
    return ok;
}

bool
uprof_channel_receive(int fd, UprofMessage *message, void *into, size_t size)
{
    Control control = { 0 };
    struct iovec pieces[] = { { &message->type, sizeof(message->type) }, { into, size } };
    struct msghdr head = {
        .msg_iov = pieces,
        .msg_iovlen = G_N_ELEMENTS(pieces),
        .msg_control = control.bytes,
        .msg_controllen = sizeof(control.bytes),
    };
    ssize_t n;

    message->len = 0;
    message->n_fds = 0;
    /* the kernel says ECONNRESET once, before the messages of an end that is closed: unix(7) */
    do
        n = recvmsg(fd, &head, MSG_CMSG_CLOEXEC);
    while (n < 0 && (errno == EINTR || errno == ECONNRESET));
    if (n == 0)
        errno = EPIPE;
    if (n <= 0)
        return false;
    if (!collect_fds(&head, message) || (head.msg_flags & MSG_TRUNC) ||
        n < (ssize_t)sizeof(message->type)) {
        uprof_message_close(message);
        errno = EBADMSG;
        return false;
    }
    message->len = (size_t)n - sizeof(message->type);
    return true;
}

void
uprof_message_close(UprofMessage *message)
{
    for (unsigned i = 0; i < message->n_fds; i++)
        close(message->fds[i]);
    message->n_fds = 0;
}
