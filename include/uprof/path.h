/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * path.h - absolute paths, also in a process whose root folder is empty
 */
#pragma once

#include <glib.h>

/**
 * uprof_path_absolute:
 * @path: absolute, or relative to the working folder: in a process without rights, the one of its
 *   parent
 *
 * Returns: (transfer full): an absolute path without "." and ".."; its links are not followed
 */
char *uprof_path_absolute(const char *path);
