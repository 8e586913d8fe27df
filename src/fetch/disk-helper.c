/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * disk-helper - copies files out of disks; see disk-message-priv.h
 *
 * The program starts it as root. It becomes the owner of the disks before it opens them, and ends
 * when the program ends. libguestfs reads the disks in a virtual machine, through an overlay, so
 * that nothing is written to them; what comes out of it is checked here: the file must have the
 * wanted build-id.
 */
#include "disk-message-priv.h"

#include "uprof/channel.h"
#include "uprof/confine.h"
#include "uprof/elf-image.h"
#include "uprof/error.h"

#include <errno.h>
#include <grp.h>
#include <guestfs.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    CHANNEL = 0,
    PIECE_BYTES = 1024 * 1024, /* of one read; libguestfs permits less than 4 MiB */
    ID_BYTES_MAX = UPROF_DISK_BUILD_ID_BYTES_MAX,
};

static void
send_reply(UprofDiskAnswer answer, const char *words)
{
    const UprofDiskReply head = { answer };
    const UprofSlice parts[] = {
        { &head, sizeof(head) },
        { words, MIN(strlen(words), (size_t)UPROF_DISK_WORDS_BYTES_MAX) },
    };

    /* without a program there is nothing left to do */
    if (!uprof_channel_send(CHANNEL, UPROF_DISK_REPLY, parts, G_N_ELEMENTS(parts), NULL, 0))
        _exit(1);
}

static const char *
last_error(guestfs_h *guestfs)
{
    const char *words = guestfs_last_error(guestfs);

    return words ? words : "libguestfs has failed";
}

/* ---- Rights ---- */

/* Other groups of the user, such as those of an administrator, give no rights here. */
static bool
become_owner(const UprofDiskBegin *begin)
{
    const struct group *kvm = getgrnam("kvm");
    const gid_t groups[] = { begin->gid, kvm ? kvm->gr_gid : begin->gid };

    if (setgroups(G_N_ELEMENTS(groups), groups) != 0 ||
        setresgid(begin->gid, begin->gid, begin->gid) != 0 ||
        setresuid(begin->uid, begin->uid, begin->uid) != 0)
        return false;
    /* the way back to root must be closed */
    return setuid(0) != 0;
}

/* The helper ends with the program, and libguestfs' virtual machine with the helper. */
static bool
leave_rights(const UprofDiskBegin *begin, GError **error)
{
    const struct rlimit no_core = { 0, 0 };

    if (begin->uid == 0) {
        if (!uprof_confine_leave_root(error))
            return false;
    } else if (!become_owner(begin)) {
        return uprof_error_fail_errno(error, "cannot become the owner of the disks");
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || setrlimit(RLIMIT_CORE, &no_core) != 0 ||
        prctl(PR_SET_PDEATHSIG, SIGTERM) != 0 || chdir("/") != 0)
        return uprof_error_fail_errno(error, "cannot drop rights");
    return true;
}

/* ---- The begin ---- */

static char *
describe_obstacle(const char *path)
{
    const int code = errno;
    const struct passwd *user = getpwuid(geteuid());
    g_autofree char *number = g_strdup_printf("%u", (unsigned)geteuid());

    return g_strdup_printf("%s: %s for user '%s'", path, g_strerror(code),
                           user ? user->pw_name : number);
}

static bool
add_disk(guestfs_h *guestfs, const char *format, const char *path, char **why)
{
    g_autofree char *obstacle = access(path, R_OK) != 0 ? describe_obstacle(path) : NULL;

    if (!obstacle && guestfs_add_drive_opts(guestfs, path, GUESTFS_ADD_DRIVE_OPTS_READONLY, 1,
                                            GUESTFS_ADD_DRIVE_OPTS_FORMAT, format, -1) == 0)
        return true;
    if (!*why)
        *why = obstacle ? g_steal_pointer(&obstacle) : g_strdup(last_error(guestfs));
    return false;
}

/*
 * @texts: format and path of each disk
 * @why: (out) (nullable): why the first disk that is left out cannot be read
 *
 * Returns: false if no disk can be read
 */
static bool
add_disks(guestfs_h *guestfs, const char *texts, size_t len, char **why)
{
    const char *end = texts + len;
    unsigned n = 0;

    for (const char *format = texts; format < end;) {
        const char *path = format + strlen(format) + 1;
        if (path >= end)
            return false;
        n += add_disk(guestfs, format, path, why);
        format = path + strlen(path) + 1;
    }
    return n > 0;
}

static int
compare_places(const void *a, const void *b)
{
    const char *const *one = a, *const *other = b;

    return (int)strlen(*one) - (int)strlen(*other);
}

static void
free_texts(char **texts)
{
    for (char **text = texts; texts && *text; text++)
        free(*text);
    free(texts);
}

/* Mounts the file systems of the first operating system, "/" first. Others may fail. */
static bool
mount_system(guestfs_h *guestfs, const char *root)
{
    char **places = guestfs_inspect_get_mountpoints(guestfs, root);
    size_t n = 0;

    while (places && places[n])
        n++;
    qsort(places, n / 2, 2 * sizeof(places[0]), compare_places);
    for (size_t i = 0; i + 1 < n; i += 2) {
        if (guestfs_mount_ro(guestfs, places[i + 1], places[i]) != 0 && i == 0) {
            free_texts(places);
            return false;
        }
    }
    free_texts(places);
    return n > 0;
}

static void
set_reason(char **why, const char *reason)
{
    g_free(*why);
    *why = g_strdup(reason);
}

static bool
open_disks(guestfs_h *guestfs, char **why)
{
    bool ok = false;

    if (guestfs_launch(guestfs) != 0) {
        set_reason(why, last_error(guestfs));
        return false;
    }
    char **roots = guestfs_inspect_os(guestfs);
    if (roots && roots[0])
        ok = mount_system(guestfs, roots[0]);
    if (!ok)
        set_reason(why, roots && !roots[0] ? "no operating system is found on them"
                                           : last_error(guestfs));
    free_texts(roots);
    return ok;
}

static guestfs_h *
make_guestfs(void)
{
    /* folders of the user who has started the program are closed to the helper */
    unsetenv("XDG_RUNTIME_DIR");
    unsetenv("TMPDIR");
    unsetenv("HOME");
    guestfs_h *guestfs = guestfs_create();

    if (!guestfs)
        return NULL;
    guestfs_set_error_handler(guestfs, NULL, NULL);
    /* libvirt would not let this user make a domain */
    if (guestfs_set_backend(guestfs, "direct") == 0)
        return guestfs;
    guestfs_close(guestfs);
    return NULL;
}

static guestfs_h *
begin_copies(char **why)
{
    static struct {
        UprofDiskBegin head;
        char texts[UPROF_DISK_BEGIN_BYTES_MAX];
    } begin;
    g_autoptr(GError) error = NULL;
    UprofMessage message;

    if (!uprof_channel_receive(CHANNEL, &message, &begin, sizeof(begin)))
        _exit(1);
    uprof_message_close(&message);
    const size_t len = message.len - MIN(message.len, sizeof(begin.head));
    if (message.type != UPROF_DISK_BEGIN || len == 0 || begin.texts[len - 1] != '\0')
        return NULL;
    if (!leave_rights(&begin.head, &error)) {
        *why = g_strdup(error->message);
        return NULL;
    }
    guestfs_h *guestfs = make_guestfs();
    if (guestfs && add_disks(guestfs, begin.texts, len, why) && open_disks(guestfs, why))
        return guestfs;
    if (guestfs)
        guestfs_close(guestfs);
    return NULL;
}

/* ---- Files ---- */

static bool
write_piece(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        const ssize_t n = write(fd, bytes, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        bytes += n;
        len -= (size_t)n;
    }
    return true;
}

static bool
copy_bytes(guestfs_h *guestfs, const char *path, int64_t size, int fd)
{
    for (int64_t at = 0; at < size;) {
        size_t n = 0;
        char *bytes = guestfs_pread(guestfs, path, PIECE_BYTES, at, &n);
        const bool ok = bytes && n > 0 && (int64_t)n <= size - at && write_piece(fd, bytes, n);
        free(bytes);
        if (!ok)
            return false;
        at += (int64_t)n;
    }
    return true;
}

/* Does the copied file have the wanted build-id? */
static bool
has_build_id(int fd, int64_t size, const char *build_id)
{
    void *bytes = mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, fd, 0);
    g_auto(UprofElfImage) image = { 0 };
    char text[2 * ID_BYTES_MAX + 1] = "";

    if (bytes == MAP_FAILED)
        return false;
    if (uprof_elf_parse((UprofSlice){ bytes, (size_t)size }, "", &image, NULL) &&
        image.build_id.len <= ID_BYTES_MAX)
        for (size_t i = 0; i < image.build_id.len; i++)
            g_snprintf(text + 2 * i, 3, "%02x", ((const uint8_t *)image.build_id.data)[i]);
    munmap(bytes, (size_t)size);
    return strcmp(text, build_id) == 0;
}

static void
copy_file(guestfs_h *guestfs, const char *path, const char *build_id, int fd)
{
    const int64_t size_max = (int64_t)UPROF_DISK_FILE_MIB_MAX << 20;

    if (guestfs_is_file_opts(guestfs, path, GUESTFS_IS_FILE_OPTS_FOLLOWSYMLINKS, 1, -1) != 1) {
        send_reply(UPROF_DISK_MISSING, "");
        return;
    }
    const int64_t size = guestfs_filesize(guestfs, path);
    if (size <= 0 || size > size_max)
        send_reply(UPROF_DISK_FAILED, size <= 0 ? "it is empty" : "it is larger than the limit");
    else if (!copy_bytes(guestfs, path, size, fd))
        send_reply(UPROF_DISK_FAILED, last_error(guestfs));
    else
        send_reply(has_build_id(fd, size, build_id) ? UPROF_DISK_COPIED : UPROF_DISK_CHANGED, "");
}

/* Returns: false when the program has closed the channel */
static bool
serve_copy(guestfs_h *guestfs)
{
    char texts[2 * ID_BYTES_MAX + 1 + UPROF_DISK_PATH_BYTES_MAX];
    UprofMessage message;

    if (!uprof_channel_receive(CHANNEL, &message, texts, sizeof(texts)))
        return false;
    const size_t id_len = message.len > 0 ? strnlen(texts, message.len) : 0;
    if (message.type == UPROF_DISK_COPY && message.n_fds == 1 && id_len + 1 < message.len &&
        texts[message.len - 1] == '\0')
        copy_file(guestfs, texts + id_len + 1, texts, message.fds[0]);
    else
        send_reply(UPROF_DISK_FAILED, "a malformed request");
    uprof_message_close(&message);
    return true;
}

int
main(void)
{
    g_autofree char *why = NULL;

    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    guestfs_h *guestfs = begin_copies(&why);
    if (!guestfs) {
        send_reply(UPROF_DISK_FAILED, why ? why : "libguestfs cannot be prepared");
        return 1;
    }
    send_reply(UPROF_DISK_COPIED, why ? why : "");
    while (serve_copy(guestfs))
        ;
    guestfs_close(guestfs);
    return 0;
}
