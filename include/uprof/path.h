/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * path.h - absolute paths, also in a process whose root folder is empty
 */
#pragma once

#include <glib.h>

/**
 * uprof_path_absolute:
 * @path: relative to the working folder; that of its parent in a process without rights
 *
 * Returns: (transfer full): an absolute path without "." and ".."; its links are not followed
 */
char *uprof_path_absolute(const char *path);
