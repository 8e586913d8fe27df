/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Symbol files that metadata names: below the folders root has chosen for them,
 * and nowhere else, whatever the path says.
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

/* Returns: (nullable): @path behind "@folder/" */
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

/* Returns: 0, or why not, as of errno */
static int
look_beneath(const char *folder, const char *rest)
{
    const struct open_how how = {
        .flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    const int beneath = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct stat facts;

    if (beneath < 0)
        return errno;
    const int fd = (int)syscall(SYS_openat2, beneath, rest, &how, sizeof(how));
    int reason = fd < 0 ? errno : 0;
    close(beneath);
    if (fd < 0)
        return reason;
    if (fstat(fd, &facts) != 0)
        reason = errno;
    else if (!S_ISREG(facts.st_mode))
        reason = EISDIR;
    close(fd);
    return reason;
}

static const char *
describe_reason(int reason)
{
    switch (reason) {
    case ENOENT:
    case ENOTDIR:
        return "there is no such file";
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

char *
uprof_settings_find_symbols(const UprofConfig *config, const char *path, GError **error)
{
    g_autofree char *quoted = uprof_text_quote(path);

    for (guint i = 0; i < config->symbol_folders->len; i++) {
        const char *folder = g_ptr_array_index(config->symbol_folders, i);
        const char *rest = find_rest(folder, path);
        const int reason = rest ? look_beneath(folder, rest) : 0;

        if (rest && reason == 0)
            return g_strdup(path);
        if (!rest)
            continue;
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA, "symbols '%s': %s", quoted,
                    describe_reason(reason));
        return NULL;
    }
    g_set_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA,
                "symbols '%s' are in none of the folders for them (see <symbols> in '%s')", quoted,
                UPROF_CONFIG_FILE);
    return NULL;
}
