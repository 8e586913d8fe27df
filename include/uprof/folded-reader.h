/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * folded-reader.h - reads folded stacks of virt-uprof and of other programs
 *
 *   line   = frame { ";" frame } blank count
 *   count  = an unsigned decimal number
 *
 * Empty lines, and lines that begin with '#', are skipped. A frame may have any bytes; the
 * caller cleans them when it interns the name.
 */
#pragma once

#include "uprof/scan.h"

enum {
    UPROF_FOLDED_BYTES_MAX_MIB = 256,
    UPROF_FOLDED_FRAMES_MAX = 1024,
};

/*
 * The largest sum of all counts of a file: 52 days in nanoseconds. Thousands of such sums can be
 * added without overflow.
 */
#define UPROF_FOLDED_WEIGHT_MAX (UINT64_C(1) << 52)

/**
 * UprofFoldedVisit:
 * @frames: root first, @n of them, borrowed; may be empty or have control characters
 * @is_cut: frames between the first and the second are missing, because the stack is too deep
 * @count: not 0
 */
typedef void (*UprofFoldedVisit)(const UprofSlice *frames, unsigned n, bool is_cut, uint64_t count,
                                 void *data);

/**
 * uprof_folded_parse:
 * @name: of the file, for messages
 * @visit: called for every stack, also for the stacks before a bad line
 *
 * Returns: false with %UPROF_ERROR_BAD_DATA at the first malformed line
 */
bool uprof_folded_parse(const char *name, UprofSlice text, UprofFoldedVisit visit, void *data,
                        GError **error);
