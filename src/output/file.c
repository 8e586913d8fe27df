/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/file.h"

#include "uprof/error.h"
#include "uprof/owner-check.h"
#include "uprof/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TEMPORARY_TRIES = 100 };

struct _UprofFile {
    char *path;
    char *shown; /* @path as clean text */
    char *base;  /* its name in the folder */
    char *temporary;
    int folder;
    int parent; /* borrowed: of the folder that has the folder; -1: the folder is found by path */
    int fd;
    bool is_stdout;
    bool reports_close; /* the reader may close it early */
    bool is_closed;
};

/* The user's own file gets one code, whatever the reason is: it is a failure of output. */
static bool
fail_errno(const UprofFile *file, const char *what, GError **error)
{
    if (file->parent >= 0)
        return uprof_error_fail_errno(error, "cannot %s '%s'", what, file->shown);
    g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED, "cannot %s '%s': %s", what, file->shown,
                g_strerror(errno));
    return false;
}

static void
free_file(UprofFile *file)
{
    if (file->fd >= 0 && !file->is_stdout)
        close(file->fd);
    if (file->folder >= 0)
        close(file->folder);
    g_free(file->path);
    g_free(file->shown);
    g_free(file->base);
    g_free(file->temporary);
    g_free(file);
}

/* Makes the folder if it is missing. Returns: a descriptor, or -1 with errno */
static int
open_own_folder(int parent, const char *path)
{
    g_autofree char *name = g_path_get_basename(path);
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    const int fd = openat(parent, name, flags);

    if (fd < 0 && errno == ENOENT && (mkdirat(parent, name, 0750) == 0 || errno == EEXIST))
        return openat(parent, name, flags);
    return fd;
}

static bool
check_folder(const UprofFile *file, const struct stat *info, GError **error)
{
    const bool is_own = file->parent >= 0;

    if (is_own ? uprof_owner_is_safe(info, UPROF_OWNER_FOR_ROOT, geteuid())
               : geteuid() != 0 || !uprof_owner_lets_others_replace(info))
        return true;
    g_set_error(error, UPROF_ERROR, is_own ? UPROF_ERROR_DENIED : UPROF_ERROR_FAILED,
                "the folder of '%s' %s: root's files are not safe there", file->shown,
                is_own ? "belongs to somebody else or may be written by others"
                       : "may be written by everybody and is not sticky");
    return false;
}

static bool
open_folder(UprofFile *file, GError **error)
{
    g_autofree char *folder = g_path_get_dirname(file->path);
    struct stat info;

    file->folder = file->parent >= 0 ? open_own_folder(file->parent, folder)
                                     : open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file->folder < 0 || fstat(file->folder, &info) < 0)
        return fail_errno(file, "open the folder of", error);
    return check_folder(file, &info, error);
}

static char *
make_temporary_name(void)
{
    return g_strdup_printf(".virt-uprof-%08x.tmp", g_random_int());
}

/* Creates the folder again if somebody removed it. Returns: false if that was not the cause */
static bool
renew_folder(UprofFile *file)
{
    if (file->parent < 0 || errno != ENOENT)
        return false;
    close(file->folder);
    return open_folder(file, NULL);
}

/* Opens a file without a name if the file system can do that: then a killed run leaves no file. */
static bool
open_temporary(UprofFile *file, mode_t mode, GError **error)
{
    for (unsigned i = 0; i < TEMPORARY_TRIES; i++) {
        file->fd = openat(file->folder, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, mode);
        if (file->fd >= 0)
            return true;
        g_autofree char *name = make_temporary_name();
        file->fd =
            openat(file->folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        if (file->fd >= 0) {
            file->temporary = g_steal_pointer(&name);
            return true;
        }
        if (errno != EEXIST && !renew_folder(file))
            break;
    }
    return fail_errno(file, "write", error);
}

/* Removes the ".part" file of a program that was killed. A running program has locked its file. */
static void
remove_old_part(const UprofFile *file, const char *name)
{
    const int fd = openat(file->folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0)
        return;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        unlinkat(file->folder, name, 0);
    close(fd);
}

/* If the name is taken, the file gets a temporary name as others do. */
static bool
open_part(UprofFile *file, GError **error)
{
    g_autofree char *name = g_strconcat(file->base, ".part", NULL);

    remove_old_part(file, name);
    file->fd =
        openat(file->folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file->fd < 0)
        return open_temporary(file, 0600, error);
    flock(file->fd, LOCK_EX | LOCK_NB);
    file->temporary = g_steal_pointer(&name);
    return true;
}

/* Is @path a link to an open file of a process? Such a link must not be replaced. */
static bool
is_special(const char *path)
{
    return strcmp(path, "/dev/stdout") == 0 || strcmp(path, "/dev/stderr") == 0 ||
           g_str_has_prefix(path, "/dev/fd/") || g_str_has_prefix(path, "/proc/self/fd/");
}

static UprofFile *
new_file(const char *path)
{
    UprofFile *file = g_new0(UprofFile, 1);

    file->path = g_strdup(path);
    file->shown = uprof_text_quote(path);
    file->base = g_path_get_basename(path);
    file->folder = file->parent = file->fd = -1;
    return file;
}

/*
 * Returns: a descriptor that blocks in writes, or -1 with errno. The open itself does not block, so
 *   that a pipe without a reader is an error.
 */
static int
reopen_for_write(int found)
{
    g_autofree char *self = g_strdup_printf("/proc/self/fd/%d", found);
    const int fd = open(self, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

    if (fd >= 0 && fcntl(fd, F_SETFL, O_WRONLY) == 0)
        return fd;
    const int reason = errno;
    if (fd >= 0)
        close(fd);
    errno = reason;
    return -1;
}

/* Opens a device or a pipe, but not of another user: it could make root wait for ever. */
static bool
open_device(UprofFile *file, GError **error)
{
    const int found = open(file->path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    struct stat info;

    if (found < 0 || fstat(found, &info) < 0) {
        fail_errno(file, "write", error);
    } else if (S_ISREG(info.st_mode) || S_ISDIR(info.st_mode)) {
        /* somebody has replaced the device since its kind was found */
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED,
                    "cannot write '%s': somebody has replaced it while it was opened", file->shown);
    } else if (info.st_uid != 0 && info.st_uid != geteuid()) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED,
                    "cannot write '%s': it is the device or pipe of another user", file->shown);
    } else {
        file->fd = reopen_for_write(found);
        if (file->fd < 0 && errno == ENXIO && S_ISFIFO(info.st_mode))
            g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED,
                        "cannot write '%s': nobody reads from this pipe; start its reader first",
                        file->shown);
        else if (file->fd < 0)
            fail_errno(file, "write", error);
    }
    if (found >= 0)
        close(found);
    return file->fd >= 0;
}

static UprofFile *
open_path(const char *path, bool is_secret, bool is_part, GError **error)
{
    UprofFile *file = new_file(path);
    struct stat info;
    bool ok;

    if (strcmp(path, "-") == 0) {
        file->is_stdout = file->reports_close = true;
        file->fd = STDOUT_FILENO;
        return file;
    }
    if (is_special(path)) {
        file->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
        ok = file->fd >= 0 || fail_errno(file, "write", error);
    } else if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) {
        errno = EISDIR;
        ok = fail_errno(file, "write", error);
    } else if (lstat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISLNK(info.st_mode)) {
        ok = open_device(file, error);
    } else {
        ok = open_folder(file, error) &&
             (is_part ? open_part(file, error)
                      : open_temporary(file, is_secret ? 0600 : 0666, error));
    }
    if (ok)
        return file;
    free_file(file);
    return NULL;
}

UprofFile *
uprof_file_open(const char *path, bool is_secret, GError **error)
{
    return open_path(path, is_secret, false, error);
}

UprofFile *
uprof_file_open_part(const char *path, GError **error)
{
    return open_path(path, true, true, error);
}

UprofFile *
uprof_file_open_own(int parent, const char *path, GError **error)
{
    UprofFile *file = new_file(path);

    file->parent = parent;
    if (open_folder(file, error) && open_temporary(file, 0666, error))
        return file;
    free_file(file);
    return NULL;
}

UprofFile *
uprof_file_adopt(int fd, const char *shown, bool is_stdout)
{
    UprofFile *file = new_file(shown);

    file->fd = fd;
    file->reports_close = is_stdout;
    return file;
}

void
uprof_file_abort(UprofFile *file)
{
    if (!file)
        return;
    if (file->temporary)
        unlinkat(file->folder, file->temporary, 0);
    free_file(file);
}

int
uprof_file_fd(const UprofFile *file)
{
    return file->fd;
}

const char *
uprof_file_path(const UprofFile *file)
{
    return file->path;
}

bool
uprof_file_is_stdout(const UprofFile *file)
{
    return file->is_stdout;
}

bool
uprof_file_is_closed(const UprofFile *file)
{
    return file->is_closed;
}

bool
uprof_file_write(UprofFile *file, const void *bytes, gsize len, GError **error)
{
    gsize done = 0;

    while (done < len) {
        const ssize_t n = write(file->fd, (const char *)bytes + done, len - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            file->is_closed = file->reports_close && errno == EPIPE;
            return fail_errno(file, "write", error);
        }
        done += (gsize)n;
    }
    return true;
}

/* Gives a file without a name a temporary name, because linkat() cannot replace the target. */
static bool
name_temporary(UprofFile *file)
{
    g_autofree char *self = g_strdup_printf("/proc/self/fd/%d", file->fd);

    for (unsigned i = 0; i < TEMPORARY_TRIES; i++) {
        g_autofree char *name = make_temporary_name();
        if (linkat(AT_FDCWD, self, file->folder, name, AT_SYMLINK_FOLLOW) == 0) {
            file->temporary = g_steal_pointer(&name);
            return true;
        }
        if (errno != EEXIST && !renew_folder(file))
            break;
    }
    return false;
}

bool
uprof_file_restart(UprofFile *file, GError **error)
{
    /* stdout may be a file to which somebody has appended */
    if (file->folder < 0) {
        errno = ESPIPE;
        return fail_errno(file, "write again to", error);
    }
    return (ftruncate(file->fd, 0) == 0 && lseek(file->fd, 0, SEEK_SET) == 0) ||
           fail_errno(file, "write again to", error);
}

bool
uprof_file_commit(UprofFile *file, GError **error)
{
    bool ok = true;

    if (file->folder >= 0) {
        ok = fsync(file->fd) == 0 && (file->temporary || name_temporary(file));
        ok = close(file->fd) == 0 && ok;
        file->fd = -1;
        ok = ok && renameat(file->folder, file->temporary, file->folder, file->base) == 0;
        if (!ok) {
            fail_errno(file, "write", error);
            if (file->temporary)
                unlinkat(file->folder, file->temporary, 0);
        } else {
            fsync(file->folder);
        }
    }
    free_file(file);
    return ok;
}

char *
uprof_file_unused_path(const char *stem, const char *suffix)
{
    char *path = g_strconcat(stem, suffix, NULL);

    for (unsigned i = 2; g_file_test(path, G_FILE_TEST_EXISTS | G_FILE_TEST_IS_SYMLINK); i++) {
        g_free(path);
        path = g_strdup_printf("%s-%u%s", stem, i, suffix);
    }
    return path;
}
