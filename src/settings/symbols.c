/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Opens symbol files that metadata names, only below the folders that root chose for them.
 */
#include "uprof/error.h"
#include "uprof/settings.h"
#include "uprof/text.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Returns: (nullable): the part of @path after "@folder/" */
static const char *
find_rest(const char *folder, const char *path)
{
    size_t len = strlen(folder);

    while (len > 0 && folder[len - 1] == '/')
        len--;
    if (strncmp(path, folder, len) != 0 || path[len] != '/')
        return NULL;
    while (path[len] == '/')
        len++;
    return path[len] ? path + len : NULL;
}

/* Returns: a descriptor; -1 with @reason, a value of errno */
static int
open_beneath(const char *folder, const char *rest, int *reason)
{
    const struct open_how how = {
        .flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    const int beneath = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct stat facts;

    *reason = errno;
    if (beneath < 0)
        return -1;
    const int fd = (int)syscall(SYS_openat2, beneath, rest, &how, sizeof(how));
    *reason = errno;
    close(beneath);
    if (fd < 0)
        return -1;
    if (fstat(fd, &facts) == 0 && S_ISREG(facts.st_mode))
        return fd;
    *reason = EISDIR;
    close(fd);
    return -1;
}

static bool
is_missing(int reason)
{
    return reason == ENOENT || reason == ENOTDIR;
}

static const char *
describe_reason(int reason)
{
    if (is_missing(reason))
        return "there is no such file";
    switch (reason) {
    case ELOOP:
        return "there is a link in its path";
    case EXDEV:
        return "it leads out of its folder";
    case EISDIR:
        return "it is not a regular file";
    default:
        return g_strerror(reason);
    }
}

int
uprof_settings_open_symbols(const UprofConfig *config, const char *path, GError **error)
{
    g_autofree char *quoted = uprof_text_quote(path);
    int reason;

    for (guint i = 0; i < config->symbol_folders->len; i++) {
        const char *folder = g_ptr_array_index(config->symbol_folders, i);
        const char *rest = find_rest(folder, path);
        const int fd = rest ? open_beneath(folder, rest, &reason) : -1;

        if (fd >= 0)
            return fd;
        if (!rest)
            continue;
        g_set_error(error, UPROF_ERROR,
                    is_missing(reason) ? UPROF_ERROR_NO_FILE : UPROF_ERROR_BAD_DATA,
                    "symbols '%s': %s", quoted, describe_reason(reason));
        return -1;
    }
    g_set_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA,
                "symbols '%s' are outside the folders that <symbols> allows (see '%s')", quoted,
                UPROF_CONFIG_FILE);
    return -1;
}

bool
uprof_settings_check_symbols(const UprofConfig *config, const char *path, GError **error)
{
    const int fd = uprof_settings_open_symbols(config, path, error);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}
