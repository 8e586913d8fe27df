/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * perf-map.h - reads the list of functions that a JIT compiler has generated
 *
 * Runtimes write it for perf, as /tmp/perf-PID.map (Linux,
 * tools/perf/Documentation/jit-interface.txt). A line is START SIZE NAME: two hexadecimal numbers,
 * and any text. The file grows while the process runs. Code that is moved or replaced has a new
 * line, so later lines win.
 */
#pragma once

#include "uprof/symbol.h"

typedef struct _UprofPerfMap UprofPerfMap;

UprofPerfMap *uprof_perf_map_new(void);
void uprof_perf_map_free(UprofPerfMap *map);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofPerfMap, uprof_perf_map_free)

/**
 * uprof_perf_map_add:
 * @text: any bytes; it may end in the middle of a line
 * @is_continued: @text continues where the last one ended; else the text between them is missing,
 *   and @text begins in the middle of a line, which is skipped
 *
 * Ignores lines that are malformed, and lines that begin when the map is full. A line counts once
 * its end was added.
 */
void uprof_perf_map_add(UprofPerfMap *map, UprofSlice text, bool is_continued);

/**
 * uprof_perf_map_find:
 * @address: guest-virtual
 * @symbol: (out): the function at @address; its name is borrowed until the next
 *   uprof_perf_map_add()
 *
 * Returns: false if no function is there
 */
bool uprof_perf_map_find(const UprofPerfMap *map, uint64_t address, UprofSymbol *symbol);

/** uprof_perf_map_count: Returns: how many functions @map has */
size_t uprof_perf_map_count(const UprofPerfMap *map);

/** uprof_perf_map_bytes: Returns: about how many bytes of memory @map takes */
size_t uprof_perf_map_bytes(const UprofPerfMap *map);
