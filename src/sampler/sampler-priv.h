/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sampler-priv.h - the steps of a sampler, for the loop
 */
#pragma once

#include "uprof/sampler.h"

enum {
    UPROF_SAMPLER_PROBES = 9, /* trial holds at most, before the first tick */
};

/** uprof_sampler_guest: Returns: (transfer none): the guest */
UprofGuest *uprof_sampler_guest(UprofSampler *sampler);

/**
 * uprof_sampler_begin:
 *
 * Finds the rate that fits the budget, by a few trial holds that are not counted. If the
 * backend measured a hold when it opened the guest, no trial is made. After the trials the time
 * of the run begins.
 */
void uprof_sampler_begin(UprofSampler *sampler);

/**
 * uprof_sampler_next_ns:
 * @early_ns: (out) (optional): uprof_sampler_tick() may be called this much earlier, to
 *   save a wake-up
 *
 * Returns: monotonic time at which to call uprof_sampler_tick(); %UINT64_MAX after the end
 */
uint64_t uprof_sampler_next_ns(const UprofSampler *sampler, uint64_t *early_ns);

/**
 * uprof_sampler_tick: takes the sample that is due
 * @now_ns: the clock is not earlier
 *
 * In dom0 of Xen each reading of the clock is a system call, so a tick reads the clock as seldom as
 * possible.
 *
 * Returns: the clock when the tick read it last, at the end of a hold
 */
uint64_t uprof_sampler_tick(UprofSampler *sampler, uint64_t now_ns);

/**
 * uprof_sampler_has_ended:
 *
 * Carries out uprof_sampler_stop(): publishes the remaining samples, and may wait for free slots
 * for a short time.
 */
bool uprof_sampler_has_ended(UprofSampler *sampler);
