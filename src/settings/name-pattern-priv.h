/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * name-pattern-priv.h - patterns for the names of domains: '*' is any text, '?' one character
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

/**
 * uprof_name_pattern_matches: does @pattern match all of @name, which may be any bytes?
 *
 * The time is bounded by the product of both lengths.
 */
bool uprof_name_pattern_matches(const char *pattern, const char *name);

/** uprof_name_pattern_any: does one of the patterns match? @patterns: (element-type utf8) */
bool uprof_name_pattern_any(const GPtrArray *patterns, const char *name);

/**
 * uprof_name_pattern_split: Returns: (transfer full) (element-type utf8): the words of @text, which
 *   blanks and line breaks separate
 */
GPtrArray *uprof_name_pattern_split(const char *text);
