/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * own-time-priv.h - a clock for the time in which another process could have worked
 *
 * On a busy host a process waits for a processor. The clock does not count these waits. It counts
 * the time in which the process works, sleeps or is stopped.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/** UprofOwnTime: a clock for a process with one thread; all zeros: it shows 0 and does not run */
typedef struct {
    pid_t process;
    uint64_t before_ns; /* counted before @start_ns */
    uint64_t start_ns;  /* monotonic; 0: the clock does not run */
    bool has_delay;     /* @delay_ns is known */
    uint64_t delay_ns;  /* waits of the process for a processor, when they were first read */
} UprofOwnTime;

/** uprof_own_time_start: starts the clock at 0; makes no system call */
void uprof_own_time_start(UprofOwnTime *time, pid_t process);

/** uprof_own_time_resume: starts the clock at the time at which it was paused */
void uprof_own_time_resume(UprofOwnTime *time, pid_t process);

/** uprof_own_time_pause: stops the clock until it is started or resumed */
void uprof_own_time_pause(UprofOwnTime *time);

/**
 * uprof_own_time_is_over: does the running clock show @limit_ns or more?
 *
 * Call it repeatedly: the clock leaves out only waits after the first call.
 */
bool uprof_own_time_is_over(UprofOwnTime *time, uint64_t limit_ns);
