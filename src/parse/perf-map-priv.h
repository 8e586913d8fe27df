/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * perf-map-priv.h - functions that do not come from the text of a perf map
 */
#pragma once

#include "uprof/perf-map.h"

enum {
    UPROF_PERF_MAP_FUNCTIONS_MAX = 200 * 1000,
    UPROF_PERF_MAP_NAME_BYTES_MAX = 1024, /* the rest of a longer name is cut */
};

/**
 * uprof_perf_map_insert: adds a function, unless it has no name or no bytes, or the map is full
 * @start: guest-virtual address
 * @size: bytes
 * @name: any bytes, not of the map itself
 *
 * Functions that overlap it are removed.
 */
void uprof_perf_map_insert(UprofPerfMap *map, uint64_t start, uint64_t size, UprofSlice name);
