/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * schedule.h - the moments at which samples are taken
 *
 * Ticks lie on an absolute grid, so that lateness never adds up, and each is
 * anywhere in its interval by chance, so that sampling falls in step with nothing
 * the guest does. A tick that is missed is counted and not made up for.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/**
 * UprofSchedule:
 * @start_ns: monotonic time of the grid's first tick
 * @interval_ns: between ticks
 * @next: number of the next tick
 * @state: of the random numbers
 */
typedef struct {
    uint64_t start_ns;
    uint64_t interval_ns;
    uint64_t next;
    uint64_t state;
} UprofSchedule;

/**
 * uprof_schedule_init:
 * @rate_mhz: ticks per second, in millihertz, not 0
 * @seed: of the jitter
 */
void
uprof_schedule_init(UprofSchedule *schedule, uint64_t start_ns, uint64_t rate_mhz, uint64_t seed);

/**
 * uprof_schedule_take:
 * @now_ns: monotonic
 * @stride: ticks to go on by, at least 1: a rate divided by so much
 * @missed: (out): strides that were over at @now_ns
 *
 * Returns: when the next tick is to be: at a moment of its stride, which begins half an
 *   interval before its place on the grid. That may be over, if the stride is not: the tick
 *   is due at once then.
 */
uint64_t
uprof_schedule_take(UprofSchedule *schedule, uint64_t now_ns, uint64_t stride, uint64_t *missed);
