/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "disk-copy-priv.h"

#include "disk-message-priv.h"
#include "symbol-cache-priv.h"

#include "uprof/channel.h"
#include "uprof/error.h"
#include "uprof/helper-process.h"
#include "uprof/path.h"
#include "uprof/text.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    START_S = 600, /* for libguestfs' virtual machine, which is slow without KVM */
    FILE_S = 300,
    PIECE_BYTES = 1024 * 1024,
    DOMAIN_MIB = 1024, /* of all files of a domain */
    END_STEP_MS = 20,
    END_STEPS = 500, /* until a helper is killed */
};

struct _UprofDiskCopy {
    char *folder; /* of the domain, in the cache */
    char *program;
    pid_t helper; /* 0: none */
    int channel;
};

/* ---- The helper ---- */

static void
end_helper(UprofDiskCopy *copy)
{
    if (copy->helper == 0)
        return;
    /* the helper ends by itself, and ends its virtual machine */
    close(copy->channel);
    for (unsigned i = 0; waitpid(copy->helper, NULL, WNOHANG) == 0; i++) {
        if (i == END_STEPS)
            kill(copy->helper, SIGKILL);
        g_usleep(END_STEP_MS * 1000);
    }
    copy->helper = 0;
}

static bool
start_process(UprofDiskCopy *copy, GError **error)
{
    copy->channel = uprof_helper_process_connect(
        copy->program, "which reads disks (install virt-uprof-guestfs)", &copy->helper, error);
    if (copy->channel >= 0)
        return true;
    copy->helper = 0;
    return false;
}

/* @why: (out) (transfer full) (nullable): safe to print. Returns: LOST if the helper has died */
static UprofDiskAnswer
receive_reply(UprofDiskCopy *copy, unsigned limit_s, char **why)
{
    struct {
        UprofDiskReply head;
        char words[UPROF_DISK_WORDS_BYTES_MAX];
    } reply;
    struct pollfd wait = { .fd = copy->channel, .events = POLLIN };
    UprofMessage message;

    *why = NULL;
    if (poll(&wait, 1, (int)limit_s * 1000) <= 0 ||
        !uprof_channel_receive(copy->channel, &message, &reply, sizeof(reply))) {
        *why = g_strdup("the program that reads disks has died or hangs");
        return UPROF_DISK_LOST;
    }
    uprof_message_close(&message);
    if (message.type != UPROF_DISK_REPLY || message.len < sizeof(reply.head) ||
        reply.head.answer > UPROF_DISK_FAILED) {
        *why = g_strdup("the program that reads disks has sent a malformed reply");
        return UPROF_DISK_LOST;
    }
    const UprofSlice words = { reply.words, message.len - sizeof(reply.head) };
    *why = words.len > 0 ? uprof_text_quote_slice(words) : NULL;
    return (UprofDiskAnswer)reply.head.answer;
}

/* ---- The disks ---- */

/*
 * The user who may read the disks: their owner, such as the user of libvirt's QEMU. Root reads no
 * disk: the helper then has the rights of the workers.
 */
static void
find_owner(const char *const *paths, unsigned n, UprofDiskBegin *begin)
{
    struct stat info;

    for (unsigned i = 0; i < n && geteuid() == 0 && begin->uid == 0; i++)
        if (stat(paths[i], &info) == 0 && info.st_uid != 0)
            *begin = (UprofDiskBegin){ info.st_uid, info.st_gid };
}

static bool
send_begin(const UprofDiskCopy *copy, const UprofDiskBegin *begin, const char *const *formats,
           const char *const *paths, unsigned n)
{
    UprofSlice parts[1 + 2 * UPROF_DISKS_MAX] = { { begin, sizeof(*begin) } };
    unsigned n_parts = 1;

    for (unsigned i = 0; i < n; i++) {
        parts[n_parts++] = (UprofSlice){ formats[i], strlen(formats[i]) + 1 };
        parts[n_parts++] = (UprofSlice){ paths[i], strlen(paths[i]) + 1 };
    }
    return uprof_channel_send(copy->channel, UPROF_DISK_BEGIN, parts, n_parts, NULL, 0);
}

static bool
check_disks(const char *const *formats, const char *const *paths, unsigned n, GError **error)
{
    for (unsigned i = 0; i < n; i++) {
        if (strlen(formats[i]) < 32 && strlen(paths[i]) < UPROF_DISK_PATH_BYTES_MAX)
            continue;
        g_set_error_literal(error, UPROF_ERROR, UPROF_ERROR_FAILED, "a disk has too long a path");
        return false;
    }
    return true;
}

static bool
start_helper(UprofDiskCopy *copy, const char *const *formats, const char *const *paths, unsigned n,
             char **warning, GError **error)
{
    UprofDiskBegin begin = { 0 };
    g_autofree char *why = NULL;

    find_owner(paths, n, &begin);
    if (!check_disks(formats, paths, n, error) || !start_process(copy, error))
        return false;
    const UprofDiskAnswer answer = send_begin(copy, &begin, formats, paths, n)
                                       ? receive_reply(copy, START_S, &why)
                                       : UPROF_DISK_LOST;
    if (answer == UPROF_DISK_COPIED) {
        *warning = g_steal_pointer(&why);
        return true;
    }
    g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED, "cannot read its disks: %s",
                why ? why : "the program that reads disks has died");
    return false;
}

UprofDiskCopy *
uprof_disk_copy_new_by(const char *program, const char *cache, const char *uuid,
                       const char *const *formats, const char *const *paths, unsigned n,
                       char **warning, GError **error)
{
    g_autoptr(UprofDiskCopy) copy = g_new0(UprofDiskCopy, 1);

    g_assert(n <= UPROF_DISKS_MAX);
    copy->folder = uprof_path_of_domain_files(cache, uuid);
    g_assert(copy->folder); /* libvirt gives each domain a UUID */
    copy->program = g_strdup(program);
    *warning = NULL;
    if (!uprof_symbol_cache_make(cache, error))
        return NULL;
    /* the files are those of a tenant: only this user may read them */
    if (g_mkdir_with_parents(copy->folder, 0700) != 0) {
        uprof_error_fail_errno(error, "cannot make '%s'", copy->folder);
        return NULL;
    }
    uprof_symbol_cache_shrink(copy->folder, (uint64_t)DOMAIN_MIB << 20);
    if (!uprof_symbol_cache_make(copy->folder, error) ||
        !start_helper(copy, formats, paths, n, warning, error))
        return NULL;
    return g_steal_pointer(&copy);
}

UprofDiskCopy *
uprof_disk_copy_new(const char *uuid, const char *const *formats, const char *const *paths,
                    unsigned n, char **warning, GError **error)
{
    g_autofree char *program = uprof_helper_process_find("disk-helper", UPROF_MODULE_FOLDER);
    g_autofree char *cache = uprof_symbol_cache_folder();

    return uprof_disk_copy_new_by(program, cache, uuid, formats, paths, n, warning, error);
}

void
uprof_disk_copy_free(UprofDiskCopy *copy)
{
    if (!copy)
        return;
    end_helper(copy);
    g_free(copy->program);
    g_free(copy->folder);
    g_free(copy);
}

/* ---- Files ---- */

/* @fd: an empty file of the helper. Returns: MISSING, CHANGED, FAILED or LOST without a copy */
static UprofDiskAnswer
fill_file(UprofDiskCopy *copy, const char *path, const char *build_id, int fd, char **why)
{
    const UprofSlice parts[] = { { build_id, strlen(build_id) + 1 }, { path, strlen(path) + 1 } };

    if (strlen(path) >= UPROF_DISK_PATH_BYTES_MAX ||
        strlen(build_id) > 2 * UPROF_DISK_BUILD_ID_BYTES_MAX)
        return UPROF_DISK_MISSING;
    if (!uprof_channel_send(copy->channel, UPROF_DISK_COPY, parts, G_N_ELEMENTS(parts), &fd, 1)) {
        *why = g_strdup("the program that reads disks has died");
        return UPROF_DISK_LOST;
    }
    return receive_reply(copy, FILE_S, why);
}

/*
 * Copies what the helper has written. The helper can still write to its own file, but workers read
 * the copy.
 *
 * Returns: how many bytes; -1 with errno
 */
static int64_t
take_content(int from, int to)
{
    const off_t size_max = (off_t)UPROF_DISK_FILE_MIB_MAX << 20;
    off_t at = 0;
    ssize_t n;

    do
        n = sendfile(to, from, &at, PIECE_BYTES);
    while (n > 0 && at <= size_max);
    if (n > 0)
        errno = EFBIG;
    return n == 0 ? (int64_t)at : -1;
}

static UprofDiskAnswer
keep_file(UprofDiskCopy *copy, const UprofCachedFile *file, int content, uint64_t *bytes,
          char **why)
{
    g_autofree char *temporary = NULL;
    g_autoptr(GError) error = NULL;
    const int fd = uprof_symbol_cache_begin(copy->folder, &temporary, &error);
    const int64_t n = fd >= 0 ? take_content(content, fd) : -1;

    if (fd >= 0 && n < 0) {
        uprof_error_fail_errno(&error, "cannot write to '%s'", copy->folder);
        unlink(temporary);
    }
    if (fd >= 0)
        close(fd);
    if (n >= 0 && uprof_symbol_cache_commit(copy->folder, temporary, file, &error)) {
        *bytes += (uint64_t)n;
        return UPROF_DISK_COPIED;
    }
    *why = g_strdup(error->message);
    return UPROF_DISK_FAILED;
}

static UprofDiskAnswer
store_file(UprofDiskCopy *copy, const char *path, const UprofCachedFile *file, uint64_t *bytes,
           char **why)
{
    g_autofree char *temporary = NULL;
    g_autoptr(GError) error = NULL;
    const int fd = uprof_symbol_cache_begin(copy->folder, &temporary, &error);

    if (fd < 0) {
        *why = g_strdup(error->message);
        return UPROF_DISK_FAILED;
    }
    unlink(temporary);
    UprofDiskAnswer answer = fill_file(copy, path, file->build_id, fd, why);
    if (answer == UPROF_DISK_COPIED)
        answer = keep_file(copy, file, fd, bytes, why);
    close(fd);
    return answer;
}

UprofDiskAnswer
uprof_disk_copy_file(UprofDiskCopy *copy, const char *path, const char *build_id, uint64_t *bytes,
                     char **why)
{
    const UprofCachedFile program = { (char *)build_id, false }, debug = { (char *)build_id, true };
    g_autofree char *debug_path =
        g_strdup_printf("/usr/lib/debug/.build-id/%.2s/%s.debug", build_id, build_id + 2);
    g_autofree char *unused = NULL;

    *why = NULL;
    const UprofDiskAnswer answer = store_file(copy, path, &program, bytes, why);
    /* few guests have debug files, so only the program counts */
    if (answer == UPROF_DISK_COPIED)
        store_file(copy, debug_path, &debug, bytes, &unused);
    uprof_symbol_cache_shrink(copy->folder, (uint64_t)DOMAIN_MIB << 20);
    return answer;
}
