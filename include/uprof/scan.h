/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * scan.h - a bounded cursor over untrusted text
 *
 * Text is a slice of bytes with line ends "\n" or "\r\n", independent of the locale, and
 * without NUL at the end. Functions return parts of the text, not copies.
 */
#pragma once

#include "uprof/bytes.h"

/** UprofScan: the cursor */
typedef struct {
    const char *name; /* borrowed: of the text, for messages */
    UprofSlice rest;  /* the text after the cursor */
    unsigned line;    /* number of the last line read, from 1; 0 before the first */
} UprofScan;

/**
 * uprof_scan_line:
 * @scan: the cursor moves behind the line
 * @line: (out): the line without its line end, which the last line need not have
 *
 * Returns: false, @line untouched, at the end of the text
 */
bool uprof_scan_line(UprofScan *scan, UprofSlice *line);

/**
 * uprof_scan_word:
 * @line: (inout): the text after the word
 * @word: (out): the next bytes that are neither blank nor tab
 *
 * Returns: false, @word untouched, if there is no word
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

/** uprof_slice_is: is @slice exactly the string @text? */
bool uprof_slice_is(UprofSlice slice, const char *text);

/** uprof_slice_starts: does @slice begin with the string @text? */
bool uprof_slice_starts(UprofSlice slice, const char *text);

/**
 * uprof_slice_find: searches for a string
 * @text: not empty
 * @at: (out) (optional): offset of the first occurrence
 *
 * Returns: false, @at untouched, if @slice does not contain @text
 */
bool uprof_slice_find(UprofSlice slice, const char *text, size_t *at);

/**
 * uprof_slice_split:
 * @before: (out): the part before the first @separator
 * @behind: (out): the part after it
 *
 * Returns: false, outputs untouched, if @slice has no @separator
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
 * @slice: only digits: no sign, blank or prefix
 * @base: 10 or 16
 * @min: smallest value allowed
 * @max: largest value allowed
 * @value: (out): the number; untouched on failure
 *
 * Returns: false if @slice is not a number in that range
 */
bool
uprof_slice_to_uint(UprofSlice slice, unsigned base, uint64_t min, uint64_t max, uint64_t *value);
