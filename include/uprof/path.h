/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * path.h - paths of files on this host
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

/**
 * uprof_path_absolute: also for a process whose root folder is empty

 * @path: absolute, or relative to the working folder: in a process without rights, the one of its
 *   parent
 *
 * Returns: (transfer full): an absolute path without "." and ".."; its links are not followed
 */
char *uprof_path_absolute(const char *path);

/**
 * uprof_path_of_domain_files: the folder of files that were copied out of a domain's own disks.
 * Other domains do not use them: a guest could give a wrong file any build-id.
 * @cache: the symbol cache
 * @uuid: of the domain; any text
 *
 * Returns: (transfer full) (nullable): %NULL if @uuid is not a UUID
 */
char *uprof_path_of_domain_files(const char *cache, const char *uuid);

/**
 * uprof_path_is_of_system: is @path in a folder where packages of the distribution have programs
 * and libraries, such as "/usr"?
 *
 * Returns: false also for a path with "." or "..", or with an empty part
 */
bool uprof_path_is_of_system(const char *path);
