/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "path-priv.h"

#include <string.h>

static char *remembered; /* (nullable) */

void
uprof_path_remember_folder(void)
{
    g_free(remembered);
    remembered = g_get_current_dir();
}

char *
uprof_path_absolute(const char *path)
{
    return g_canonicalize_filename(path, remembered);
}

char *
uprof_path_of_domain_files(const char *cache, const char *uuid)
{
    if (!uuid || !g_uuid_string_is_valid(uuid))
        return NULL;
    g_autofree char *lower = g_ascii_strdown(uuid, -1);
    return g_build_filename(cache, "domains", lower, NULL);
}

bool
uprof_path_is_of_system(const char *path)
{
    static const char *const folders[] = { "/usr/", "/lib/", "/lib64/", "/bin/", "/sbin/" };
    g_autofree char *canonical = path[0] == '/' ? g_canonicalize_filename(path, "/") : NULL;

    if (!canonical || strcmp(canonical, path) != 0)
        return false;
    for (size_t i = 0; i < G_N_ELEMENTS(folders); i++)
        if (g_str_has_prefix(path, folders[i]))
            return true;
    return false;
}
