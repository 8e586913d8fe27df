/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sampler.h - the loop that takes samples: vet, hold, copy, release, publish
 *
 * One thread per guest that is held as a whole: a slow daemon must delay nobody
 * else. Knows nothing of names and unwinding; in a hold it only copies.
 */
#pragma once

#include "uprof/guest.h"
#include "uprof/ring.h"
#include "uprof/windows.h"

enum { UPROF_SAMPLER_PROBES = 9 }; /* trial holds that nobody counts */

/**
 * UprofSamplerPlan:
 * @rate_mhz: samples per second and vCPU, in millihertz
 * @duration_ns: 0: until stopped
 * @budget_ppm: share of time that a vCPU may be held, in millionths; not 0
 * @max_pause_ns: once a hold is that old nothing more is copied in it
 * @wanted: of each vCPU, whether it is sampled; borrowed
 * @sizes: of each vCPU's window; borrowed
 * @seed: of the jitter
 */
typedef struct {
    uint64_t rate_mhz;
    uint64_t duration_ns;
    uint64_t budget_ppm;
    uint64_t max_pause_ns;
    const bool *wanted;
    UprofWindowSize *sizes;
    uint64_t seed;
} UprofSamplerPlan;

/** UprofSamplerEnd: why sampling ended */
typedef enum {
    UPROF_SAMPLER_RUNNING,
    UPROF_SAMPLER_DURATION,
    UPROF_SAMPLER_STOPPED,
    UPROF_SAMPLER_GONE,
    UPROF_SAMPLER_ERROR,
} UprofSamplerEnd;

/**
 * UprofSamplerCounts:
 * @divisor: the asked rate was divided by this, to keep to the budget, before
 *   the first sample; ticks below are ticks of that rate
 * @stride: ticks per sample now; more than 1 if holds have become longer since
 * @late: ticks missed; @busy: guest stopped or moved by others; @skipped: no free slot
 * @elapsed_ns: since the first tick
 * @held_ns, @n_holds: of the holds since then
 * @probe_ns: median hold of the trial before the first sample
 */
typedef struct {
    UprofSamplerEnd end;
    uint64_t divisor;
    uint64_t stride;
    uint64_t late, busy, skipped;
    uint64_t elapsed_ns;
    uint64_t held_ns, n_holds;
    uint64_t probe_ns;
} UprofSamplerCounts;

typedef struct _UprofSampler UprofSampler;

/**
 * uprof_sampler_new:
 * @guest: borrowed; open, not held
 * @plan: copied
 */
UprofSampler *uprof_sampler_new(UprofGuest *guest, const UprofSamplerPlan *plan);
void uprof_sampler_free(UprofSampler *sampler);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofSampler, uprof_sampler_free)

/** uprof_sampler_ring: Returns: (transfer none): where snapshots come out */
UprofRing *uprof_sampler_ring(UprofSampler *sampler);

/** uprof_sampler_start: in a thread of its own */
void uprof_sampler_start(UprofSampler *sampler);

/** uprof_sampler_stop: from any thread; ends it after the present hold */
void uprof_sampler_stop(UprofSampler *sampler);

/*
 * uprof_sampler_park, uprof_sampler_unpark: between the two no guest is held;
 * for a process that is about to be stopped itself.
 */
void uprof_sampler_park(UprofSampler *sampler);
void uprof_sampler_unpark(UprofSampler *sampler);

/** uprof_sampler_counts: from any thread */
void uprof_sampler_counts(UprofSampler *sampler, UprofSamplerCounts *counts);

/**
 * uprof_sampler_join:
 *
 * Waits for the end. What was published stands.
 *
 * Returns: false with the error that ended it
 */
bool uprof_sampler_join(UprofSampler *sampler, GError **error);

/**
 * uprof_sampler_shoot:
 * @slots: at least as many as vCPUs are wanted
 * @n: (out): how many were filled
 *
 * One sample of all wanted vCPUs, now, without a thread. A guest that somebody
 * else had stopped is looked at as it is.
 */
UprofAnswer
uprof_sampler_shoot(UprofSampler *sampler, UprofSnapshot **slots, unsigned *n, GError **error);
