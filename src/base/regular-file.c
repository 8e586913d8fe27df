/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * This file opens each part of a path by itself. openat2(2) would open a path in one call, but
 * systemd's RestrictSUIDSGID= forbids openat2(2), because a filter of system calls cannot see its
 * flags.
 */
#include "uprof/regular-file.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <linux/magic.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#ifndef PIPEFS_MAGIC
#define PIPEFS_MAGIC 0x50495045 /* linux/magic.h since Linux 5.13 */
#endif

/* As in Linux: the longest path, and the most links in it. */
enum { PATH_BYTES_MAX = 4096, LINKS_MAX = 40 };

enum { PIPE_WAIT_MS = 5000 }; /* until somebody writes into a named pipe */

/* A search for a file: the open folders from its root down to the current one. */
typedef struct {
    GArray *fds; /* of int: owned; the first one is the root */
    UprofFileLinks links;
    unsigned n_links;
} Search;

static int
last_fd(const Search *search)
{
    return g_array_index(search->fds, int, search->fds->len - 1);
}

static void
close_last(Search *search)
{
    close(last_fd(search));
    g_array_set_size(search->fds, search->fds->len - 1);
}

/* Puts the target of a link before @rest, (inout). Returns: 0, or a value of errno */
static int
expand_link(Search *search, int link, char **rest)
{
    char target[PATH_BYTES_MAX];

    if (search->links == UPROF_FILE_NO_LINKS || ++search->n_links > LINKS_MAX)
        return ELOOP;
    const ssize_t len = readlinkat(link, "", target, sizeof(target) - 1);
    if (len <= 0)
        return ENOENT;
    target[len] = '\0';
    while (target[0] == '/' && search->fds->len > 1)
        close_last(search);
    char *expanded = g_strconcat(target, "/", *rest, NULL);
    g_free(*rest);
    *rest = expanded;
    return strlen(expanded) < PATH_BYTES_MAX ? 0 : ENAMETOOLONG;
}

/*
 * Enters one part of the path.
 *
 * Returns: 0, or a value of errno
 */
static int
enter_part(Search *search, const char *name, char **rest)
{
    struct stat info;

    if (*name == '\0' || strcmp(name, ".") == 0)
        return 0;
    if (strcmp(name, "..") == 0) {
        if (search->fds->len == 1)
            return search->links == UPROF_FILE_AS_IN_ROOT ? 0 : EXDEV;
        close_last(search);
        return 0;
    }
    const int fd = openat(last_fd(search), name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno;
    if (fstat(fd, &info) == 0 && S_ISLNK(info.st_mode)) {
        const int reason = expand_link(search, fd, rest);
        close(fd);
        return reason;
    }
    g_array_append_val(search->fds, fd);
    return 0;
}

/* Returns: 0, or a value of errno. The last descriptor of @search is then that of the file. */
static int
walk_path(Search *search, const char *path)
{
    g_autofree char *rest = g_strdup(path);
    int reason = strlen(path) < PATH_BYTES_MAX ? 0 : ENAMETOOLONG;

    while (reason == 0 && *rest) {
        const size_t len = strcspn(rest, "/");
        g_autofree char *name = g_strndup(rest, len);
        const size_t skip = len + strspn(rest + len, "/");
        memmove(rest, rest + skip, strlen(rest + skip) + 1);
        reason = enter_part(search, name, &rest);
    }
    return reason;
}

/* @found: of O_PATH. Returns: a descriptor to read from, or -1 with errno */
static int
reopen_found(int found)
{
    g_autofree char *path = g_strdup_printf("/proc/self/fd/%d", found);

    return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

/* Files of the kernel look regular, but reading them can change the host or reveal its memory. */
static bool
is_of_kernel(int found)
{
    static const unsigned types[] = {
        PROC_SUPER_MAGIC, SYSFS_MAGIC,        DEBUGFS_MAGIC,       TRACEFS_MAGIC,
        SECURITYFS_MAGIC, CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, BPF_FS_MAGIC,
    };
    struct statfs info;

    if (fstatfs(found, &info) != 0)
        return true;
    for (size_t i = 0; i < G_N_ELEMENTS(types); i++)
        if ((unsigned)info.f_type == types[i])
            return true;
    return false;
}

/* Like reopen_found(), but fails with EINVAL if the file is not regular */
static int
reopen_regular(int found)
{
    struct stat info;

    if (fstat(found, &info) != 0)
        return -1;
    if (!S_ISREG(info.st_mode) || is_of_kernel(found)) {
        errno = EINVAL;
        return -1;
    }
    return reopen_found(found);
}

static bool
is_unnamed_pipe(int found)
{
    struct statfs info;

    return fstatfs(found, &info) == 0 && info.f_type == PIPEFS_MAGIC;
}

/* Somebody else's pipe could keep its reader waiting for ever. */
static bool
may_read_pipe(int found, const struct stat *info)
{
    return is_unnamed_pipe(found) || info->st_uid == geteuid() || info->st_uid == 0;
}

/* Waits for the first byte, or the end. Returns: @fd; or -1 with errno, and then closes @fd */
static int
wait_for_writer(int fd, int timeout_ms)
{
    struct pollfd wait = { .fd = fd, .events = POLLIN };
    int n;

    do
        n = poll(&wait, 1, timeout_ms);
    while (n < 0 && errno == EINTR);
    if (n > 0 && fcntl(fd, F_SETFL, 0) == 0) /* reads may wait from now on */
        return fd;
    const int reason = n == 0 ? ETIMEDOUT : errno;
    close(fd);
    errno = reason;
    return -1;
}

/* Like reopen_regular(), but also opens a pipe */
static int
reopen_input(int found)
{
    struct stat info;

    if (fstat(found, &info) != 0)
        return -1;
    if (S_ISDIR(info.st_mode)) {
        errno = EISDIR;
        return -1;
    }
    if (!S_ISFIFO(info.st_mode) || !may_read_pipe(found, &info))
        return reopen_regular(found);
    const int fd = reopen_found(found);
    return fd < 0 ? -1 : wait_for_writer(fd, is_unnamed_pipe(fd) ? -1 : PIPE_WAIT_MS);
}

/* @found: of O_PATH: closed here; or -1 with errno. Returns: as @reopen_file() */
static int
reopen_and_close(int found, int (*reopen_file)(int found))
{
    if (found < 0)
        return -1;
    const int fd = reopen_file(found);
    const int reason = errno;
    close(found);
    errno = reason;
    return fd;
}

/* The other process that opens files. Set once, before there are threads. */
static int (*ask_other)(const UprofFileRequest *request, void *data);
static void *other_data;

void
uprof_regular_file_delegate(int (*ask)(const UprofFileRequest *request, void *data), void *data)
{
    ask_other = ask;
    other_data = data;
}

int
uprof_regular_file_open_input(const char *path)
{
    const UprofFileRequest request = { .kind = UPROF_FILE_INPUT, .path = path };

    if (ask_other)
        return ask_other(&request, other_data);
    return reopen_and_close(open(path, O_PATH | O_CLOEXEC), reopen_input);
}

int
uprof_regular_file_open(const char *path)
{
    const UprofFileRequest request = { .kind = UPROF_FILE_REGULAR, .path = path };

    if (ask_other)
        return ask_other(&request, other_data);
    return reopen_and_close(open(path, O_PATH | O_CLOEXEC), reopen_regular);
}

int
uprof_regular_file_open_below(const char *folder, const char *rest, UprofFileLinks links)
{
    const UprofFileRequest request = {
        .kind = UPROF_FILE_BELOW,
        .links = links,
        .folder = folder,
        .path = rest,
    };

    if (ask_other)
        return ask_other(&request, other_data);
    const int root = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return -1;
    Search search = { .fds = g_array_new(FALSE, FALSE, sizeof(int)), .links = links };
    g_array_append_val(search.fds, root);
    int reason = walk_path(&search, rest);
    const int fd = reason == 0 ? reopen_regular(last_fd(&search)) : -1;
    if (reason == 0)
        reason = errno;
    while (search.fds->len > 0)
        close_last(&search);
    g_array_unref(search.fds);
    errno = reason;
    return fd;
}

int
uprof_regular_file_open_in(int folder_fd, const char *folder, const char *name)
{
    if (ask_other)
        return uprof_regular_file_open_below(folder, name, UPROF_FILE_NO_LINKS);
    return reopen_and_close(openat(folder_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC),
                            reopen_regular);
}

bool
uprof_regular_file_is_missing(int reason)
{
    return reason == ENOENT || reason == ENOTDIR;
}

const char *
uprof_regular_file_reason(int reason)
{
    if (uprof_regular_file_is_missing(reason))
        return "there is no such file";
    switch (reason) {
    case ELOOP:
        return "there is a link in its path";
    case EXDEV:
        return "it leads out of its folder";
    case UPROF_FILE_REFUSED:
        return "a process has died while it read the file";
    case EINVAL:
        return "it is not a regular file";
    case ETIMEDOUT:
        return "nobody writes into this pipe";
    default:
        return g_strerror(reason);
    }
}
