/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * openat2(2) does the same in one call, but systemd's RestrictSUIDSGID= forbids that call, because
 * a filter of system calls cannot see its flags. So each part of a path is opened by itself.
 */
#include "uprof/regular-file.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* As in Linux: the longest path, and the most links in it. */
enum { PATH_BYTES_MAX = 4096, LINKS_MAX = 40 };

/* The folders from the root of the search down to where it is. */
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

/* Returns: 0, or a value of errno. @rest: (inout): gets the target of the link in front */
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
reopen_regular(int found)
{
    g_autofree char *path = g_strdup_printf("/proc/self/fd/%d", found);
    struct stat info;

    if (fstat(found, &info) != 0)
        return -1;
    if (!S_ISREG(info.st_mode)) {
        errno = EINVAL;
        return -1;
    }
    return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

/* @found: of O_PATH, closed; or -1 with errno. Returns: as reopen_regular() */
static int
reopen_and_close(int found)
{
    if (found < 0)
        return -1;
    const int fd = reopen_regular(found);
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

    return ask_other ? ask_other(&request, other_data) : open(path, O_RDONLY | O_CLOEXEC);
}

int
uprof_regular_file_open(const char *path)
{
    const UprofFileRequest request = { .kind = UPROF_FILE_REGULAR, .path = path };

    if (ask_other)
        return ask_other(&request, other_data);
    return reopen_and_close(open(path, O_PATH | O_CLOEXEC));
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
    return reopen_and_close(openat(folder_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
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
    default:
        return g_strerror(reason);
    }
}
