/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sampler.h - takes the samples of one guest: vet, hold, copy, release, publish
 *
 * Knows when each is due and what it may cost, counts what became of every
 * tick, and knows nothing of names and unwinding: in a hold it only copies. A
 * loop (loop.h) calls it.
 *
 * What is held at once has one line of ticks: the whole guest, or each vCPU for
 * itself. The lines of vCPUs are spread, so that their holds do not coincide.
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
 * @links: (nullable): borrowed: where to find, atomically, what else belongs to a sample
 * @goes_on: after another sampler of the asked rate: a rate that must be lowered
 *   makes samples weigh more from the first on
 * @gone_ns: how long that other one has sampled
 * @idle_stacks: of a halted vCPU the stack is copied too
 * @wanted: of each vCPU, whether it is sampled; borrowed
 * @sizes: of each vCPU's window; borrowed
 * @seed: of the jitter
 * @owner: borrowed: goes into each snapshot
 */
typedef struct {
    uint64_t rate_mhz;
    uint64_t duration_ns;
    uint64_t budget_ppm;
    uint64_t max_pause_ns;
    const UprofLinks **links;
    bool goes_on;
    uint64_t gone_ns;
    bool idle_stacks;
    const bool *wanted;
    UprofWindowSize *sizes;
    uint64_t seed;
    void *owner;
} UprofSamplerPlan;

/** UprofSamplerEnd: why sampling ended */
typedef enum {
    UPROF_SAMPLER_RUNNING,
    UPROF_SAMPLER_DURATION,
    UPROF_SAMPLER_STOPPED,
    UPROF_SAMPLER_GONE,
    UPROF_SAMPLER_STUCK, /* a vCPU did not stop in time, again and again */
    UPROF_SAMPLER_ERROR,
} UprofSamplerEnd;

/**
 * UprofSamplerCounts:
 * @divisor: the asked rate was divided by this, to keep to the budget, before
 *   the first sample; ticks below are ticks of that rate
 * @stride: ticks per sample now; more than 1 if holds have become longer since;
 *   of the line where it is largest
 * @late: ticks missed; @busy: guest stopped or moved by others; @skipped: no free
 *   slot; @stuck: the vCPU did not stop in time
 * @elapsed_ns: since the first tick
 * @held_ns, @n_holds: of the holds since then, and of stops that gave no sample; of
 *   single vCPUs only the time in which they stood still, or may have
 * @most_held_ns: likewise, of the vCPU that was held longest in all
 * @probe_ns: median hold of the trial before the first sample
 */
typedef struct {
    UprofSamplerEnd end;
    uint64_t divisor;
    uint64_t stride;
    uint64_t late, busy, skipped, stuck;
    uint64_t elapsed_ns;
    uint64_t held_ns, n_holds;
    uint64_t most_held_ns;
    uint64_t probe_ns;
} UprofSamplerCounts;

typedef struct _UprofSampler UprofSampler;

/**
 * uprof_sampler_new:
 * @guest: borrowed; open, not held
 * @plan: copied
 * @ring: (nullable): borrowed: where snapshots go; needed for all but
 *   uprof_sampler_shoot(). It gets as many slots as two holds need.
 */
UprofSampler *uprof_sampler_new(UprofGuest *guest, const UprofSamplerPlan *plan, UprofRing *ring);
void uprof_sampler_free(UprofSampler *sampler);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofSampler, uprof_sampler_free)

/** uprof_sampler_limit: before it is begun: another duration than its plan's */
void uprof_sampler_limit(UprofSampler *sampler, uint64_t duration_ns);

/** uprof_sampler_asked_ns: Returns: for how long it is to sample; 0: until stopped */
uint64_t uprof_sampler_asked_ns(const UprofSampler *sampler);

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
 * uprof_sampler_take_error: once it has ended
 *
 * Returns: (transfer full) (nullable): why, if it was an error
 */
GError *uprof_sampler_take_error(UprofSampler *sampler);

/** uprof_sampler_guest: Returns: (transfer none): the guest it samples */
UprofGuest *uprof_sampler_guest(UprofSampler *sampler);

/*
 * For the loop, all in one thread; each may end the sampler:
 *
 * uprof_sampler_begin: finds the rate that fits the budget, by a few holds that
 * nobody counts unless the guest's open has measured some; then time begins.
 * uprof_sampler_next_ns: Returns: when it is to be called again, monotonic; @early_ns:
 * (out) (optional): by how much it may be earlier, to save a wake-up.
 * uprof_sampler_tick: does what is due.
 * uprof_sampler_has_ended: Returns: whether nothing will be due any more, also
 * when it was told to stop; what was not yet published is then.
 */
void uprof_sampler_begin(UprofSampler *sampler);
uint64_t uprof_sampler_next_ns(const UprofSampler *sampler, uint64_t *early_ns);
void uprof_sampler_tick(UprofSampler *sampler);
bool uprof_sampler_has_ended(UprofSampler *sampler);

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
