/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "path-priv.h"

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
