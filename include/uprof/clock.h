/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * clock.h - clocks in nanoseconds, and UTC as text
 */
#pragma once

#include <glib.h>
#include <stdint.h>

#define UPROF_NS_PER_US UINT64_C(1000)
#define UPROF_NS_PER_MS UINT64_C(1000000)
#define UPROF_NS_PER_S UINT64_C(1000000000)

/** uprof_clock_now_ns: Returns: CLOCK_MONOTONIC in nanoseconds */
uint64_t uprof_clock_now_ns(void);

/** uprof_clock_utc_ns: Returns: CLOCK_REALTIME in nanoseconds since 1970 */
uint64_t uprof_clock_utc_ns(void);

/** uprof_clock_utc_s: Returns: CLOCK_REALTIME in seconds since 1970 */
int64_t uprof_clock_utc_s(void);

/** uprof_clock_cpu_ns: Returns: CPU time of this process, user and system, in nanoseconds */
uint64_t uprof_clock_cpu_ns(void);

/** uprof_clock_thread_ns: Returns: CPU time of this thread, user and system, in nanoseconds */
uint64_t uprof_clock_thread_ns(void);

/**
 * uprof_clock_sleep_until:
 * @at_ns: a time of uprof_clock_now_ns(); if this time has passed, the function returns at once
 *
 * Signals do not end the sleep.
 */
void uprof_clock_sleep_until(uint64_t at_ns);

/** uprof_clock_format_local: Returns: (transfer full): "2026-11-20 09:15" in local time, for people
 */
char *uprof_clock_format_local(int64_t at_s);

/**
 * uprof_clock_format_utc:
 * @utc_ns: nanoseconds since 1970
 * @compact: "20261120T091500Z" for file names, else "2026-11-20T09:15:00Z"
 *
 * Returns: (transfer full): the time in UTC
 */
char *uprof_clock_format_utc(uint64_t utc_ns, gboolean compact);
