/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * own-time-priv.h - how long another process could have worked
 *
 * On a busy host a process waits for a processor, and does nothing although it is not to blame. So
 * these waits do not count. A process that sleeps or is stopped uses up its time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/** UprofOwnTime: a clock of one process with one thread; zeros: it does not run */
typedef struct {
    pid_t process;
    uint64_t start_ns; /* monotonic; 0: the clock does not run */
    bool has_delay;
    uint64_t delay_ns; /* what the process had waited for a processor, at the first look */
} UprofOwnTime;

/** uprof_own_time_start: starts the clock at 0; takes no system call */
void uprof_own_time_start(UprofOwnTime *time, pid_t process);

/** uprof_own_time_is_over: has the process had @limit_ns since the start? Call it repeatedly. */
bool uprof_own_time_is_over(UprofOwnTime *time, uint64_t limit_ns);
