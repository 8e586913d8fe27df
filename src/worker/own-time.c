/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "own-time-priv.h"

#include "uprof/clock.h"
#include "uprof/process-stat.h"

#include <glib.h>

void
uprof_own_time_start(UprofOwnTime *time, pid_t process)
{
    *time = (UprofOwnTime){ .process = process, .start_ns = uprof_clock_now_ns() };
}

void
uprof_own_time_resume(UprofOwnTime *time, pid_t process)
{
    const uint64_t before_ns = time->before_ns;

    uprof_own_time_start(time, process);
    time->before_ns = before_ns;
}

/* Returns: nanoseconds that the process has waited for a processor since the first call */
static uint64_t
find_waits(UprofOwnTime *time)
{
    const uint64_t delay_ns = uprof_process_stat_run_delay(time->process);

    if (!time->has_delay) {
        time->has_delay = true;
        time->delay_ns = delay_ns;
    }
    return delay_ns > time->delay_ns ? delay_ns - time->delay_ns : 0;
}

void
uprof_own_time_pause(UprofOwnTime *time)
{
    if (time->start_ns == 0)
        return;
    const uint64_t passed_ns = uprof_clock_now_ns() - time->start_ns;
    time->before_ns += passed_ns - MIN(passed_ns, find_waits(time));
    time->start_ns = 0;
}

bool
uprof_own_time_is_over(UprofOwnTime *time, uint64_t limit_ns)
{
    if (time->start_ns == 0)
        return false;
    const uint64_t shown_ns = time->before_ns + uprof_clock_now_ns() - time->start_ns;
    if (time->has_delay && shown_ns < limit_ns)
        return false;
    return shown_ns >= limit_ns + find_waits(time);
}
