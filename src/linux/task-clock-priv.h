/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * task-clock-priv.h - the clocks by which tasks leave their CPUs
 *
 * A CPU notes the time by a clock that stands still during interrupts and while the host does not
 * let it run. It has a second clock that always goes on and is about the same on all CPUs.
 */
#pragma once

#include "kernel-priv.h"

/** UprofTaskClock */
typedef struct {
    uint64_t now;   /* the newest time of a CPU; 0: not known. The clock of an idle CPU is old. */
    GArray *behind; /* of uint64_t: by CPU: how far its first clock is behind its second; owned */
} UprofTaskClock;

/** uprof_task_clock_init: reads the clocks of all CPUs */
void uprof_task_clock_init(UprofTaskClock *clock, const UprofLinux *kernel,
                           const UprofKernelMemory *memory, const UprofTaskOffsets *offsets);
void uprof_task_clock_clear(UprofTaskClock *clock);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(UprofTaskClock, uprof_task_clock_clear)

/** uprof_task_clock_since: Returns: ns since @left, a time of the first clock of @cpu; 0: it is
 * later */
uint64_t uprof_task_clock_since(const UprofTaskClock *clock, uint32_t cpu, uint64_t left);
