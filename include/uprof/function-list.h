/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * function-list.h - reads where the functions of a stored profile come from
 *
 *   line = name TAB module TAB file TAB number
 *
 * The module, such as "libc.so.6", and the file of the source may be empty. The number is that of
 * the line in the file where the function begins; 0: not known. Each name has one line.
 */
#pragma once

#include "uprof/scan.h"

/** UprofFunctionLine: all texts are borrowed, and may have any bytes but tabs and newlines */
typedef struct {
    UprofSlice name; /* not empty */
    UprofSlice module;
    UprofSlice file;
    uint32_t line;
} UprofFunctionLine;

typedef void (*UprofFunctionVisit)(const UprofFunctionLine *function, void *data);

/**
 * uprof_function_list_parse:
 * @name: of the file, for messages
 * @visit: called for every line, also for the lines before a bad one
 *
 * Returns: false with %UPROF_ERROR_BAD_DATA at the first malformed line
 */
bool uprof_function_list_parse(const char *name, UprofSlice text, UprofFunctionVisit visit,
                               void *data, GError **error);
