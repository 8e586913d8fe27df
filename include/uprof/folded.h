/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * folded.h - folded stacks, ours and those of other programs
 *
 *   line   = frame { ";" frame } blank count
 *   count  = an unsigned decimal number
 *
 * Empty lines, and lines that begin with '#', say nothing. What stands in a
 * frame is anybody's: names are made of it where it is interned.
 */
#pragma once

#include "uprof/scan.h"

enum {
    UPROF_FOLDED_BYTES_MAX_MIB = 256,
    UPROF_FOLDED_FRAMES_MAX = 1024,
};

/* Samples of a file together: nanoseconds of 52 days, and thousands of files add up to no overflow. */
#define UPROF_FOLDED_WEIGHT_MAX (UINT64_C(1) << 52)

/**
 * UprofFoldedVisit:
 * @frames: root first; raw, and perhaps empty
 * @is_cut: there were more of them: those behind the first are the innermost
 * @count: not 0
 */
typedef void (*UprofFoldedVisit)(const UprofSlice *frames, unsigned n, bool is_cut, uint64_t count,
                                 void *data);

/**
 * uprof_folded_parse:
 * @name: of what is read, for messages
 *
 * Visits every stack. What was visited before an error came from that text too.
 *
 * Returns: false with %UPROF_ERROR_BAD_DATA at the first line that is none
 */
bool uprof_folded_parse(const char *name, UprofSlice text, UprofFoldedVisit visit, void *data,
                        GError **error);
