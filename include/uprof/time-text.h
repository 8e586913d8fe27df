/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * time-text.h - days and times as people and file names write them, in UTC
 *
 *   today, yesterday, 2026-11-20    00:00 of that day
 *   2026-11-20T09:15[:30][Z]        that time
 *   90m, 12h, 3d                    this long before now; a "-" in front changes nothing
 *
 * Times are seconds since 1970. Years before 1970 are refused. For any other text, each function
 * that parses returns false and leaves its output untouched.
 */
#pragma once

#include "uprof/bytes.h"

#define UPROF_TIME_FORMS "today, yesterday, 2026-11-20, 2026-11-20T09:15, 3d or 12h, in UTC"
#define UPROF_TIME_DAY_FORMS "today, yesterday, 3d or a day such as 2026-11-20"

enum { UPROF_DAY_S = 24 * 60 * 60 };

/**
 * uprof_time_parse: parses a day, a time, or a time before now
 * @now_s: the current time
 * @at_s: (out): the time meant
 */
bool uprof_time_parse(const char *text, int64_t now_s, int64_t *at_s);

/**
 * uprof_time_parse_day: parses "today", "yesterday", "3d" (ago) or a date
 * @now_s: the current time
 * @day_s: (out): 00:00 of that day
 */
bool uprof_time_parse_day(const char *text, int64_t now_s, int64_t *day_s);

/**
 * uprof_time_parse_date: parses "2026-11-20"
 * @day_s: (out): 00:00 of that day
 */
bool uprof_time_parse_date(UprofSlice text, int64_t *day_s);

/**
 * uprof_time_parse_stamp: parses "20261120" or "20261120T091500Z", as file names have them
 * @at_s: (out): that time; 00:00 if the text is a day
 */
bool uprof_time_parse_stamp(UprofSlice text, int64_t *at_s);

/** uprof_time_day_start: Returns: 00:00 of the day of @at_s, which may be before 1970 */
int64_t uprof_time_day_start(int64_t at_s);

/**
 * uprof_time_format_date:
 *
 * Returns: (transfer full): "2026-11-20"; for a time before 1970, "1970-01-01"
 */
char *uprof_time_format_date(int64_t at_s);
