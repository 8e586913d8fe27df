/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * scan.h - a bounded cursor over text that nobody vouches for
 *
 * Text here is bytes with line ends: no locale, no NUL at the end, no copies.
 * Line ends are "\n" or "\r\n". Numbers are parsed whole or not at all.
 */
#pragma once

#include "uprof/bytes.h"

/**
 * UprofScan:
 * @name: what is read, for messages; borrowed
 * @rest: what has not been read yet
 * @line: number of the line read last, from 1; 0 before the first
 */
typedef struct {
    const char *name; /* borrowed */
    UprofSlice rest;
    unsigned line;
} UprofScan;

/**
 * uprof_scan_line:
 * @scan: a cursor; moves behind the line
 * @line: (out): the line without its end; the last one needs none
 *
 * Returns: false, @line untouched, when nothing is left
 */
bool uprof_scan_line(UprofScan *scan, UprofSlice *line);

/**
 * uprof_scan_word:
 * @line: (inout): text; moves behind the word
 * @word: (out): the next run of bytes that are neither blank nor tab
 *
 * Returns: false, @word untouched, if there is none
 */
bool uprof_scan_word(UprofSlice *line, UprofSlice *word);

/**
 * uprof_scan_fail:
 * @error: set to %UPROF_ERROR_BAD_DATA, "NAME line LINE: " and the message
 *
 * Returns: false, always
 */
bool
uprof_scan_fail(const UprofScan *scan, GError **error, const char *format, ...) G_GNUC_PRINTF(3, 4);

/**
 * uprof_slice_is:
 *
 * Returns: whether @slice is exactly the string @text
 */
bool uprof_slice_is(UprofSlice slice, const char *text);

/**
 * uprof_slice_starts:
 *
 * Returns: whether @slice begins with the string @text
 */
bool uprof_slice_starts(UprofSlice slice, const char *text);

/**
 * uprof_slice_find:
 * @at: (out) (optional): bytes from the start of @slice
 *
 * Returns: whether the string @text, not empty, occurs in @slice
 */
bool uprof_slice_find(UprofSlice slice, const char *text, size_t *at);

/**
 * uprof_slice_split:
 * @before: (out): what stands before the first @separator
 * @behind: (out): what stands behind it
 *
 * Returns: false, outputs untouched, if there is no @separator
 */
bool uprof_slice_split(UprofSlice slice, char separator, UprofSlice *before, UprofSlice *behind);

/**
 * uprof_slice_trim:
 *
 * Returns: @slice without blanks, tabs, "\r" and "\n" at both ends
 */
UprofSlice uprof_slice_trim(UprofSlice slice);

/**
 * uprof_slice_to_uint:
 * @slice: digits of @base and nothing else: no sign, blank or prefix
 * @base: 10 or 16
 * @min: smallest value allowed
 * @max: largest value allowed
 * @value: (out): the number; untouched on failure
 *
 * Returns: whether all of @slice is a number in that range
 */
bool
uprof_slice_to_uint(UprofSlice slice, unsigned base, uint64_t min, uint64_t max, uint64_t *value);
