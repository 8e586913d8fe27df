/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * number-text.h - rates, durations and shares as text for people
 */
#pragma once

#include "uprof/run-facts.h"

#include <glib.h>
#include <stdint.h>

/** uprof_format_hz: Returns: (transfer full): "98.9" for 98940 millihertz */
char *uprof_format_hz(uint64_t mhz);

/** uprof_format_ns: Returns: (transfer full): "18 us", "3.6 ms" or "10 s" */
char *uprof_format_ns(uint64_t ns);

/** uprof_format_percent: Returns: (transfer full): @part of @whole, such as "97.1" */
char *uprof_format_percent(uint64_t part, uint64_t whole);

/** uprof_format_bytes: Returns: (transfer full): "180.4 kB" or "34.1 MB" */
char *uprof_format_bytes(uint64_t bytes);

/** uprof_format_budget: Returns: (transfer full): percent, such as "10" for 100000 ppm */
char *uprof_format_budget(uint64_t ppm);

/**
 * uprof_format_quality: Returns: (transfer full): the shares of unwind methods, and of good calls,
 *   such as "100.0 % by frame pointers; 99.0 % of calls agree"
 */
char *uprof_format_quality(const UprofRun *run);
