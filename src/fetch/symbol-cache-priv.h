/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * symbol-cache-priv.h - files of the symbol cache
 */
#pragma once

#include "uprof/symbol-cache.h"

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

enum { UPROF_SYMBOL_CACHE_MIB = 2048 }; /* the limit on all files together */

/** UprofCachedFile: a file that may be in the cache */
typedef struct {
    char *build_id; /* owned: in lower-case hex */
    bool is_debug;
} UprofCachedFile;

/** uprof_symbol_cache_has_servers: does the user want files to be fetched ($DEBUGINFOD_URLS)? */
bool uprof_symbol_cache_has_servers(void);

/**
 * uprof_symbol_cache_parse: reads a build-id out of a path
 * @path: absolute; any text
 * @file: (out) (transfer full): set only on success
 *
 * Returns: false if no file of the cache in @folder has this path
 */
bool uprof_symbol_cache_parse(const char *folder, const char *path, UprofCachedFile *file);
void uprof_cached_file_clear(UprofCachedFile *file);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(UprofCachedFile, uprof_cached_file_clear)

/** uprof_symbol_cache_is_asked: is the file there, or did a server lack it within the last day? */
bool uprof_symbol_cache_is_asked(const char *folder, const UprofCachedFile *file);

/**
 * uprof_symbol_cache_begin: opens a temporary file for a file of the cache
 * @temporary: (out) (transfer full): its path
 *
 * Returns: a descriptor for writing; -1 with an error
 */
int uprof_symbol_cache_begin(const char *folder, char **temporary, GError **error);

/** uprof_symbol_cache_commit: gives a temporary file its name in the cache; removes it on failure
 */
bool uprof_symbol_cache_commit(const char *folder, const char *temporary,
                               const UprofCachedFile *file, GError **error);

/**
 * uprof_symbol_cache_shrink: removes the files that were written first, until the rest has at most
 * @bytes_max; also empty files that do not count any more, and temporary files of runs that died
 */
void uprof_symbol_cache_shrink(const char *folder, uint64_t bytes_max);
