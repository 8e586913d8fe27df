/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * symbol-cache.h - the folder of symbol files that were fetched by their build-ids
 *
 *   .build-id/ab/cdef          a program or a library
 *   .build-id/ab/cdef.debug    its debug file
 *
 *   domains/UUID/              the same for files out of the disks of one domain
 *   domains/UUID/rules         see rule-list.h
 *
 * An empty file says that no server has the file. It counts for a day. The layout is that of a
 * debug folder of gdb.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

/**
 * uprof_symbol_cache_folder: the cache of the user of this process: $VIRT_UPROF_CACHE, else
 * /var/cache/virt-uprof for root, else a folder of the user's own caches ($XDG_CACHE_HOME)
 *
 * Returns: (transfer full): its path; the folder may not exist
 */
char *uprof_symbol_cache_folder(void);

/**
 * uprof_symbol_cache_used: the first call decides; make it before rights are dropped
 *
 * Returns: (transfer none) (nullable): uprof_symbol_cache_folder(); %NULL if the folder is missing
 * and no file will be fetched
 */
const char *uprof_symbol_cache_used(void);

/**
 * uprof_symbol_cache_make: makes the folder, and checks that no other user can write to it
 *
 * Returns: false with an error that names it
 */
bool uprof_symbol_cache_make(const char *folder, GError **error);
