/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * moment-priv.h - moments and days as people write them, in UTC
 *
 *   today, yesterday, 2026-11-20    00:00 of that day
 *   2026-11-20T09:15[:30][Z]        that moment
 *   90m, 12h, 3d                    so long ago; a "-" before it changes nothing
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define UPROF_MOMENT_FORM "today, yesterday, 2026-11-20, 2026-11-20T09:15, 3d or 12h"
#define UPROF_MOMENT_DAY_FORM "today, yesterday or a day such as 2026-11-20"

/** uprof_moment_now: Returns: seconds since 1970 */
int64_t uprof_moment_now(void);

/**
 * uprof_moment_parse:
 * @now_s: since 1970
 * @at_s: (out): since 1970; untouched on failure
 *
 * Returns: false if @text is no moment
 */
bool uprof_moment_parse(const char *text, int64_t now_s, int64_t *at_s);

/** uprof_moment_parse_day: the same for what names a day; @day_s: (out): its 00:00 */
bool uprof_moment_parse_day(const char *text, int64_t now_s, int64_t *day_s);
