/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * jitdump.h - reads the file in which a JIT compiler records its code
 *
 * Runtimes write it for perf, as jit-PID.dump (Linux,
 * tools/perf/Documentation/jitdump-specification.txt; the numbers of the records are in
 * tools/perf/util/jitdump.h). A header is followed by records, each with its size. A record of type
 * LOAD has the address, the size, the name and the bytes of a function; a record of type MOVE has
 * two addresses. The file grows while the process runs. Names go to a perf map; the bytes of the
 * code are not used, because the guest's memory has them.
 */
#pragma once

#include "uprof/perf-map.h"

typedef struct _UprofJitdump UprofJitdump;

UprofJitdump *uprof_jitdump_new(void);
void uprof_jitdump_free(UprofJitdump *dump);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofJitdump, uprof_jitdump_free)

/**
 * uprof_jitdump_add:
 * @map: gets the functions
 * @bytes: any bytes of the file; they may end in the middle of a record
 * @n_missing: how many bytes between the last call's bytes and these are missing
 *
 * If anything but code is missing or malformed, the rest of the file is ignored: no byte shows
 * where the next record begins.
 */
void uprof_jitdump_add(UprofJitdump *dump, UprofPerfMap *map, UprofSlice bytes, uint64_t n_missing);
