/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/clock.h"

#include <errno.h>
#include <time.h>

static uint64_t
read_clock(clockid_t clock)
{
    struct timespec time;

    if (clock_gettime(clock, &time) != 0)
        g_assert_not_reached();
    return time.tv_sec * UPROF_NS_PER_S + time.tv_nsec;
}

uint64_t
uprof_clock_now_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

uint64_t
uprof_clock_utc_ns(void)
{
    return read_clock(CLOCK_REALTIME);
}

int64_t
uprof_clock_utc_s(void)
{
    return (int64_t)(uprof_clock_utc_ns() / UPROF_NS_PER_S);
}

uint64_t
uprof_clock_cpu_ns(void)
{
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

uint64_t
uprof_clock_thread_ns(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

void
uprof_clock_sleep_until(uint64_t at_ns)
{
    const struct timespec at = {
        .tv_sec = at_ns / UPROF_NS_PER_S,
        .tv_nsec = at_ns % UPROF_NS_PER_S,
    };

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
        ;
}

char *
uprof_clock_format_utc(uint64_t utc_ns, gboolean compact)
{
    g_autoptr(GDateTime) utc = g_date_time_new_from_unix_utc(utc_ns / UPROF_NS_PER_S);

    return g_date_time_format(utc, compact ? "%Y%m%dT%H%M%SZ" : "%Y-%m-%dT%H:%M:%SZ");
}

char *
uprof_clock_format_local(int64_t at_s)
{
    g_autoptr(GDateTime) time = g_date_time_new_from_unix_local(at_s);

    return time ? g_date_time_format(time, "%Y-%m-%d %H:%M") : g_strdup("?");
}
