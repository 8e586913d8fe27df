/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * waits-priv.h - how long a thread of ours had to wait for a CPU
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/** UprofWaits: @thread: whose; @fd: its schedstat */
typedef struct {
    pid_t thread;
    int fd;
} UprofWaits;

/** uprof_waits_init, uprof_waits_clear: the file is opened by the first question */
void uprof_waits_init(UprofWaits *waits);
void uprof_waits_clear(UprofWaits *waits);

/**
 * uprof_waits_ns: one read of a microsecond; not in a hold
 *
 * Returns: how long the calling thread has been ready to run without running,
 *   since it began (proc(5), /proc/PID/schedstat, second number); 0 where the
 *   kernel does not count
 */
uint64_t uprof_waits_ns(UprofWaits *waits);
