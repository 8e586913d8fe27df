/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * summary-priv.h - a run in a few lines, for people
 */
#pragma once

#include "uprof/profile.h"
#include "uprof/run.h"

/** uprof_format_hz: Returns: (transfer full): "98.9" of 98940 millihertz */
char *uprof_format_hz(uint64_t mhz);

/** uprof_format_ns: Returns: (transfer full): "18 us", "3.6 ms", "10 s" */
char *uprof_format_ns(uint64_t ns);

/** uprof_format_percent: Returns: (transfer full): "97.1" of @part in @whole */
char *uprof_format_percent(uint64_t part, uint64_t whole);

/** uprof_format_budget: Returns: (transfer full): "10" of 100000 ppm */
char *uprof_format_budget(uint64_t ppm);

/** uprof_format_quality: Returns: (transfer full): how callers were found, and how many calls agree */
char *uprof_format_quality(const UprofRun *run);

/** uprof_summary_say_start: what is about to happen */
void uprof_summary_say_start(const UprofRun *run, const char *shown);

/** uprof_summary_say_end: what happened, how good it is, and hints; two lines at least */
void uprof_summary_say_end(const UprofRun *run, const char *shown);

/** uprof_summary_say_untimed: that there were more samples than times are kept of, if so */
void uprof_summary_say_untimed(const UprofProfile *profile, const char *shown);
