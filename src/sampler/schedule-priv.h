/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * schedule-priv.h - the times at which samples are taken
 *
 * Ticks have an absolute grid, so that lateness does not add up. Each tick is at a random
 * point of its interval, so that sampling cannot fall into step with the guest. A missed
 * tick is counted, but not taken later.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/** UprofSchedule: one series of ticks */
typedef struct {
    uint64_t start_ns;     /* monotonic time of tick 0 on the grid */
    uint64_t interval_ns;  /* between ticks */
    uint64_t next;         /* number of the next tick */
    uint64_t random_state; /* of xorshift64*; never 0 */
} UprofSchedule;

/**
 * uprof_schedule_init:
 * @start_ns: monotonic
 * @rate_mhz: ticks per second, in millihertz; not 0
 * @seed: seed of the random points
 */
void
uprof_schedule_init(UprofSchedule *schedule, uint64_t start_ns, uint64_t rate_mhz, uint64_t seed);

/**
 * uprof_schedule_take:
 * @now_ns: monotonic
 * @stride: how many intervals the next tick stands for; at least 1
 * @missed: (out): how many strides had passed completely at @now_ns
 *
 * A stride begins half an interval before the point of its tick on the grid.
 *
 * Returns: monotonic time of the next tick, at random in its stride. If it lies before
 *   @now_ns, the tick is due at once.
 */
uint64_t
uprof_schedule_take(UprofSchedule *schedule, uint64_t now_ns, uint64_t stride, uint64_t *missed);
