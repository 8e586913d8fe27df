/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * targets-priv.h - where functions begin in code that has no symbols: where its
 * direct calls lead to (x86)
 *
 * Functions that are only called by pointer are not found, and belong to the one
 * before; data in code may lead to places where none is. Good enough to know
 * where to begin reading, not to name anything.
 */
#pragma once

#include "table-priv.h"

enum {
    UPROF_TARGETS_CODE_BYTES_MAX = 256 * 1024 * 1024, /* of an image; the rest is not looked at */
    UPROF_TARGETS_MAX = 4 * 1024 * 1024,
};

/**
 * uprof_targets_find:
 * @ranges: of UprofImageRange, sorted, with their bytes
 * @word_bytes: 8 or 4: of 64 or 32-bit code
 *
 * Reads all of the code once: some 10 ms for each MiB.
 *
 * Returns: (transfer full): of uint64_t, sorted, each once: link addresses in @ranges
 */
GArray *uprof_targets_find(const GArray *ranges, unsigned word_bytes);

/**
 * uprof_targets_around:
 * @start, @end: (out): of the function that @address may be in
 *
 * Returns: false if nothing before it in its range is called
 */
bool uprof_targets_around(const GArray *targets, const GArray *ranges, uint64_t address,
                          uint64_t *start, uint64_t *end);

/**
 * uprof_targets_narrow:
 * @start, @end: (inout): around @address; afterwards nothing between them is called, but
 *   perhaps what is at @start
 */
void uprof_targets_narrow(const GArray *targets, uint64_t address, uint64_t *start, uint64_t *end);
