/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * budget-priv.h - lowers the rate so that holds keep to their share of time
 *
 * Two factors lower the rate that was asked for. Here the divisor is 2 and the stride 3:
 *
 *   asked rate   | | | | | | | | | | | | | | | | | | |
 *   ticks        |   |   |   |   |   |   |   |   |   |   every 2nd: the divisor
 *   samples      |           |           |           |   every 3rd tick: the stride
 *
 *   samples per second = asked rate / (divisor * stride)
 *
 * The divisor is set once, before the first tick, from the length of a trial hold. All
 * samples then have equal weight. The stride changes while the run goes on, because holds
 * may become longer (disks, load). A sample has the stride as its weight, so a profile
 * counts ticks. A sampler that continues a run must keep the ticks of that run: its trial
 * sets the first stride in place of the divisor.
 *
 * Pure functions: no clock, no lock, no allocation.
 */
#pragma once

#include <stdint.h>

/** UprofBudget: the holds of one vCPU, or of a guest that is held as a whole */
typedef struct {
    /* the share of time that holds may take, in millionths; not 0 */
    uint64_t share_ppm;
    /* ticks per sample; 1 to G_MAXUINT16 */
    uint64_t stride;
    /* monotonic time at which the present period began */
    uint64_t period_ns;
    /* length of all holds; earlier periods count less and less */
    uint64_t held_ns;
    /* length of the periods of these holds, with the same weights */
    uint64_t elapsed_ns;
    /* holds in the present period */
    unsigned n_holds;
} UprofBudget;

/**
 * uprof_budget_divide:
 * @hold_ns: length of one hold
 * @interval_ns: between ticks of the rate that was asked for; not 0
 * @share_ppm: the share of time that holds may take, in millionths; not 0
 *
 * Returns: the divisor of the rate with which holds keep to @share_ppm; at least 1
 */
uint64_t uprof_budget_divide(uint64_t hold_ns, uint64_t interval_ns, uint64_t share_ppm);

/** uprof_budget_set_stride: @stride: limited to the largest weight of a sample */
void uprof_budget_set_stride(UprofBudget *budget, uint64_t stride);

/**
 * uprof_budget_review:
 * @budget: (inout)
 * @held_ns: length of a hold that has just ended
 * @now_ns: monotonic
 *
 * Adds a hold. After every 16 holds it compares their share of time with the budget, and raises or
 * lowers the stride. One slow hold is not a trend: each review keeps three quarters of the weight
 * of all earlier holds.
 *
 * Returns: the stride from now on
 */
uint64_t uprof_budget_review(UprofBudget *budget, uint64_t held_ns, uint64_t now_ns);
