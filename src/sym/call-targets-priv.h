/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * call-targets-priv.h - finds the starts of functions in code without symbols (x86)
 *
 * The targets of direct calls are starts of functions. A function that is only called by pointer is
 * not found, and counts as part of the function before it. Data in code can look like calls and
 * give false targets. The targets are good enough to decide where to start reading code, but not to
 * name code.
 */
#pragma once

#include "symbol-table-priv.h"

enum {
    UPROF_CALL_TARGETS_CODE_BYTES_MAX = 256 * 1024 * 1024, /* of an image; the rest is not read */
    UPROF_CALL_TARGETS_MAX = 4 * 1024 * 1024,
};

/**
 * uprof_call_targets_find:
 * @ranges: of UprofCodeRange, sorted, with their bytes
 * @word_bytes: 8 or 4: of 64 or 32-bit code
 *
 * Reads all of the code once: some 10 ms for each MiB.
 *
 * Returns: (transfer full): of uint64_t: link addresses in @ranges, sorted, without repeats
 */
GArray *uprof_call_targets_find(const GArray *ranges, unsigned word_bytes);

/**
 * uprof_call_targets_around:
 * @start, @end: (out): of the function that @address may be in
 *
 * Returns: false if no call target lies before @address in its range
 */
bool uprof_call_targets_around(const GArray *targets, const GArray *ranges, uint64_t address,
                               uint64_t *start, uint64_t *end);

/**
 * uprof_call_targets_narrow:
 * @start, @end: (inout): a range around @address; it shrinks until no call target lies between
 *   them, except at @start
 */
void
uprof_call_targets_narrow(const GArray *targets, uint64_t address, uint64_t *start, uint64_t *end);
