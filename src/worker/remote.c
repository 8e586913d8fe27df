/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "remote-priv.h"

#include "protocol-priv.h"
#include "uprof/spawner.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    UprofGuest base;
    int requests;
    UprofSpan *spans; /* (nullable): borrowed: of a read that has begun; those before were read */
    unsigned n;       /* spans that are left */
    unsigned n_asked; /* of them: in the request that is on its way */
    struct {
        UprofReadAnswer head;
        uint8_t bytes[UPROF_READ_BYTES_MAX];
    } answer;
} RemoteGuest;

static const UprofGuestOps remote_ops, translating_ops;

/* (nullable): the guest with a read that has begun. Its answers come before those to later
 * requests. One thread of a worker makes all requests. */
static RemoteGuest *reader;

static void finish_read(void);

static RemoteGuest *
as_remote(UprofGuest *guest)
{
    g_assert(guest->ops == &remote_ops || guest->ops == &translating_ops);
    return (RemoteGuest *)guest;
}

/* The program has ended, or its answer has a wrong length: nobody waits for the analysis. */
static G_GNUC_NORETURN void
end_process(void)
{
    _exit(UPROF_SPAWNER_EXIT_CUT_OFF);
}

void
uprof_remote_tell(int requests, uint32_t type, const UprofSlice *parts, unsigned n_parts)
{
    if (!uprof_channel_send(requests, type, parts, n_parts, NULL, 0))
        end_process();
}

static void
receive_answer(int requests, UprofMessage *message, void *into, size_t size)
{
    if (!uprof_channel_receive(requests, message, into, size))
        end_process();
}

/* Returns: bytes of the answer */
static size_t
ask_program(int requests, uint32_t type, const UprofSlice *parts, unsigned n_parts,
            UprofMessage *message, void *into, size_t size)
{
    finish_read();
    uprof_remote_tell(requests, type, parts, n_parts);
    receive_answer(requests, message, into, size);
    return message->len;
}

/* ---- Memory ---- */

static void
remote_close(UprofGuest *guest)
{
    g_assert(reader != as_remote(guest));
    g_free(as_remote(guest));
}

/* Counts the spans, up to @n, that fit in one request. Returns: 0 if the first one does not */
static unsigned
count_spans(const UprofSpan *spans, unsigned n)
{
    uint32_t bytes = 0;
    unsigned count = 0;

    while (count < n && count < UPROF_READ_SPANS_MAX &&
           spans[count].len <= UPROF_READ_BYTES_MAX - bytes)
        bytes += spans[count++].len;
    return count;
}

/* Asks for spans that fit in one request. */
static void
ask_spans(const RemoteGuest *remote, const UprofSpan *spans, unsigned n)
{
    UprofReadSpan wanted[UPROF_READ_SPANS_MAX];
    const UprofSlice part = { wanted, n * sizeof(wanted[0]) };

    for (unsigned i = 0; i < n; i++) {
        memset(&wanted[i], 0, sizeof(wanted[i])); /* also the bytes between its members */
        wanted[i].gpa = spans[i].gpa;
        wanted[i].len = spans[i].len;
    }
    uprof_remote_tell(remote->requests, UPROF_ASK_READ, &part, 1);
}

/* Receives what ask_spans() has asked for. */
static void
receive_spans(RemoteGuest *remote, UprofSpan *spans, unsigned n)
{
    UprofMessage message;
    size_t len = sizeof(remote->answer.head), at = 0;

    for (unsigned i = 0; i < n; i++)
        len += spans[i].len;
    receive_answer(remote->requests, &message, &remote->answer, sizeof(remote->answer));
    if (message.len != len)
        end_process();
    for (unsigned i = 0; i < n; i++) {
        spans[i].missing = remote->answer.head.missing[i];
        memcpy(spans[i].into, remote->answer.bytes + at, spans[i].len);
        at += spans[i].len;
    }
}

/* Reads one span that is larger than a request. */
static void
read_large(RemoteGuest *remote, UprofSpan *span)
{
    span->missing = false;
    for (uint32_t done = 0; done < span->len && !span->missing;) {
        UprofSpan piece = {
            .gpa = span->gpa + done,
            .into = (uint8_t *)span->into + done,
            .len = MIN(span->len - done, (uint32_t)UPROF_READ_BYTES_MAX),
        };
        ask_spans(remote, &piece, 1);
        receive_spans(remote, &piece, 1);
        span->missing = piece.missing;
        done += piece.len;
    }
}

static void
ask_next(RemoteGuest *remote, unsigned n_before)
{
    remote->n_asked = count_spans(remote->spans + n_before, remote->n - n_before);
    if (remote->n_asked > 0)
        ask_spans(remote, remote->spans + n_before, remote->n_asked);
}

/* Reads the next spans of a read that has begun. Returns: how many */
static unsigned
read_next(RemoteGuest *remote)
{
    const unsigned count = remote->n_asked;

    if (count == 0) {
        read_large(remote, remote->spans);
        return 1;
    }
    /* the program reads the next spans while this process copies an answer */
    ask_next(remote, count);
    receive_spans(remote, remote->spans, count);
    return count;
}

static void
finish_read(void)
{
    RemoteGuest *remote = reader;

    reader = NULL;
    while (remote && remote->n > 0) {
        const bool was_large = remote->n_asked == 0;
        const unsigned count = read_next(remote);
        remote->spans += count;
        remote->n -= count;
        if (was_large)
            ask_next(remote, 0);
    }
}

static void
remote_begin_read(UprofGuest *guest, UprofSpan *spans, unsigned n)
{
    RemoteGuest *remote = as_remote(guest);

    finish_read();
    remote->spans = spans;
    remote->n = n;
    ask_next(remote, 0);
    reader = remote;
}

static void
remote_end_read(UprofGuest *guest)
{
    if (reader == as_remote(guest))
        finish_read();
}

static void
remote_read(UprofGuest *guest, UprofLane lane, UprofSpan *spans, unsigned n)
{
    g_assert(lane == UPROF_LANE_WORKER);
    remote_begin_read(guest, spans, n);
    finish_read();
}

static bool
remote_translate(UprofGuest *guest, unsigned vcpu, uint64_t gva, uint64_t *gpa)
{
    RemoteGuest *remote = as_remote(guest);
    const UprofTranslateAsk ask = { .gva = gva, .vcpu = vcpu };
    const UprofSlice part = { &ask, sizeof(ask) };
    UprofTranslateAnswer answer;
    UprofMessage message;

    if (ask_program(remote->requests, UPROF_ASK_TRANSLATE, &part, 1, &message, &answer,
                    sizeof(answer)) != sizeof(answer))
        end_process();
    if (answer.is_mapped)
        *gpa = answer.gpa;
    return answer.is_mapped;
}

static const UprofGuestOps remote_ops = {
    .name = "remote",
    .close = remote_close,
    .read = remote_read,
    .begin_read = remote_begin_read,
    .end_read = remote_end_read,
};

static const UprofGuestOps translating_ops = {
    .name = "remote",
    .close = remote_close,
    .read = remote_read,
    .begin_read = remote_begin_read,
    .end_read = remote_end_read,
    .translate = remote_translate,
};

UprofGuest *
uprof_remote_new(int requests, const UprofRemoteFacts *facts)
{
    RemoteGuest *remote = g_new0(RemoteGuest, 1);

    remote->base.ops = facts->translates ? &translating_ops : &remote_ops;
    remote->base.arch = facts->arch;
    remote->base.n_vcpus = facts->n_vcpus;
    remote->base.slow_reads = facts->slow_reads;
    remote->requests = requests;
    return &remote->base;
}

/* ---- Files ---- */

static int
ask_file(const UprofFileRequest *request, void *data)
{
    const int requests = GPOINTER_TO_INT(data);
    const UprofFileAsk ask = { .kind = request->kind, .links = request->links };
    const char *folder = request->folder ? request->folder : "";
    const UprofSlice parts[] = {
        { &ask, sizeof(ask) },
        { folder, strlen(folder) + 1 },
        { request->path, strlen(request->path) + 1 },
    };
    UprofFileAnswer answer;
    UprofMessage message;

    if (parts[1].len + parts[2].len > UPROF_CHANNEL_BYTES_MAX / 2) {
        errno = ENAMETOOLONG;
        return -1;
    }
    if (ask_program(requests, UPROF_ASK_FILE, parts, G_N_ELEMENTS(parts), &message, &answer,
                    sizeof(answer)) != sizeof(answer))
        end_process();
    if (message.n_fds == 1)
        return message.fds[0];
    uprof_message_close(&message);
    errno = answer.reason > 0 ? answer.reason : ENOENT;
    return -1;
}

void
uprof_remote_open_files(int requests)
{
    uprof_regular_file_delegate(ask_file, GINT_TO_POINTER(requests));
}
