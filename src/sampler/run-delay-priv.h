/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * run-delay-priv.h - measures how long a thread of this process has waited for a CPU
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/** UprofRunDelay: belongs to the thread that last called uprof_run_delay_ns() */
typedef struct {
    pid_t thread; /* the thread that @fd describes */
    int fd;       /* its schedstat, owned; -1: not open */
} UprofRunDelay;

/** uprof_run_delay_init: opens nothing; the first uprof_run_delay_ns() does */
void uprof_run_delay_init(UprofRunDelay *delay);
void uprof_run_delay_clear(UprofRunDelay *delay);

/**
 * uprof_run_delay_ns:
 *
 * One read of about a microsecond. Do not call it in a hold.
 *
 * Returns: the total time that the calling thread has been ready to run without running
 *   (proc(5), /proc/PID/schedstat, second number); 0 if the kernel does not count this
 */
uint64_t uprof_run_delay_ns(UprofRunDelay *delay);
