/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Opens symbol files that metadata names, only below the folders that root chose for them.
 */
#include "uprof/error.h"
#include "uprof/regular-file.h"
#include "uprof/settings.h"
#include "uprof/text.h"

#include <errno.h>
#include <string.h>
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

int
uprof_settings_open_symbols(const GPtrArray *folders, const char *path, GError **error)
{
    g_autofree char *quoted = uprof_text_quote(path);

    for (guint i = 0; i < folders->len; i++) {
        const char *folder = g_ptr_array_index(folders, i);
        const char *rest = find_rest(folder, path);

        if (!rest)
            continue;
        const int fd = uprof_regular_file_open_below(folder, rest, UPROF_FILE_NO_LINKS);
        if (fd < 0)
            g_set_error(error, UPROF_ERROR,
                        uprof_regular_file_is_missing(errno) ? UPROF_ERROR_NO_FILE
                                                             : UPROF_ERROR_BAD_DATA,
                        "symbols '%s': %s", quoted, uprof_regular_file_reason(errno));
        return fd;
    }
    g_set_error(
        error, UPROF_ERROR, UPROF_ERROR_BAD_DATA,
        "symbols '%s' are outside the folders that <symbols> allows (see '%s'); copy them to "
        "'%s'",
        quoted, UPROF_CONFIG_FILE,
        folders->len > 0 ? (const char *)g_ptr_array_index(folders, 0) : "one of them");
    return -1;
}

bool
uprof_settings_check_symbols(const UprofConfig *config, const char *path, GError **error)
{
    const int fd = uprof_settings_open_symbols(config->symbol_folders, path, error);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}
