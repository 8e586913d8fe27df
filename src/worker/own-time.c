/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "own-time-priv.h"

#include "uprof/clock.h"
#include "uprof/process-stat.h"

void
uprof_own_time_start(UprofOwnTime *time, pid_t process)
{
    *time = (UprofOwnTime){ .process = process, .start_ns = uprof_clock_now_ns() };
}

bool
uprof_own_time_is_over(UprofOwnTime *time, uint64_t limit_ns)
{
    if (time->start_ns == 0)
        return false;
    const uint64_t passed_ns = uprof_clock_now_ns() - time->start_ns;
    if (time->has_delay && passed_ns < limit_ns)
        return false;
    const uint64_t delay_ns = uprof_process_stat_run_delay(time->process);
    if (!time->has_delay) {
        time->has_delay = true;
        time->delay_ns = delay_ns;
    }
    const uint64_t waited_ns = delay_ns > time->delay_ns ? delay_ns - time->delay_ns : 0;
    return passed_ns >= limit_ns + waited_ns;
}
