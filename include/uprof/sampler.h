/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sampler.h - takes the samples of one guest: vet, hold, copy, release, publish
 *
 * A sampler knows when each sample is due and what it may cost, and counts the outcome of every
 * tick. It does not name or unwind: in a hold it only copies. A loop (loop.h) calls it.
 *
 * Each vCPU has its own ticks. They are spread, so that holds of two vCPUs do not coincide.
 * A guest that is held as a whole has one series of ticks for all vCPUs.
 */
#pragma once

#include "uprof/chains.h"
#include "uprof/guest.h"
#include "uprof/links.h"
#include "uprof/mem.h"
#include "uprof/ring.h"
#include "uprof/window-size.h"

/** UprofSamplerSettings: copied by uprof_sampler_new(); the pointers in it are borrowed */
typedef struct {
    /* samples per second and vCPU, in millihertz; not 0 */
    uint64_t rate_mhz;
    /* length of the run; 0: until stopped */
    uint64_t duration_ns;
    /* share of time that a vCPU may be held, in millionths; not 0 */
    uint64_t budget_ppm;
    /* a hold that lasts longer copies no more stacks */
    uint64_t max_pause_ns;
    /* (nullable): addresses of further memory to copy; read atomically at each sample */
    const UprofLinks **links;
    /* (nullable): pointers to follow in the memory of processes */
    const UprofChains *chains;
    /*
     * An earlier sampler has begun this run at the same rate. If holds are too long for the
     * budget, the rate of ticks stays, and each sample stands for more ticks from the start.
     */
    bool continues_run;
    /* how long the earlier sampler has sampled */
    uint64_t run_offset_ns;
    /* copy the stacks of halted vCPUs, too */
    bool idle_stacks;
    /* per vCPU: the run samples it */
    const bool *wanted;
    /* per vCPU: how much of its stack to copy */
    UprofWindowSize *sizes;
    /* seed of the random offsets of ticks */
    uint64_t seed;
    /* stored in each snapshot: see UprofSnapshot */
    void *owner;
} UprofSamplerSettings;

/** UprofSamplerEnd: why sampling ended */
typedef enum {
    UPROF_SAMPLER_RUNNING,  /* sampling has not ended */
    UPROF_SAMPLER_DURATION, /* the time is over */
    UPROF_SAMPLER_STOPPED,  /* uprof_sampler_stop() */
    UPROF_SAMPLER_GONE,     /* the guest has ended */
    UPROF_SAMPLER_STUCK,    /* a vCPU did not stop in time, again and again */
    UPROF_SAMPLER_ERROR,    /* uprof_sampler_take_error() returns the error */
} UprofSamplerEnd;

/** UprofSamplerCounts: the outcome of all ticks so far */
typedef struct {
    UprofSamplerEnd end;
    /*
     * The requested rate was divided by this number before the first tick, to keep the budget. All
     * ticks below are ticks of the divided rate.
     */
    uint64_t divisor;
    /*
     * Current ticks per sample, of the vCPU with the most. The number exceeds 1 if holds have
     * become longer since the first tick.
     */
    uint64_t stride;
    /* ticks that were missed because the sampler was late */
    uint64_t late;
    /* ticks at which somebody else had stopped the guest, or moved it */
    uint64_t busy;
    /* ticks for which no slot of the ring was free */
    uint64_t skipped;
    /* ticks at which the vCPU did not stop in time */
    uint64_t stuck;
    /* since the first tick */
    uint64_t elapsed_ns;
    /*
     * Length of all holds since the first tick, and of stops that did not become a hold. If vCPUs
     * are held one by one, only the time in which the vCPU may have stood still counts.
     */
    uint64_t held_ns;
    uint64_t n_holds;
    /* as @held_ns, of the vCPU that was held longest */
    uint64_t most_held_ns;
    /* length of a usual hold, estimated before the first tick from trial holds; 0: none */
    uint64_t probe_ns;
} UprofSamplerCounts;

typedef struct _UprofSampler UprofSampler;

/**
 * uprof_sampler_new:
 * @guest: borrowed; open, not held
 * @settings: copied
 * @ring: (nullable): borrowed: gets the snapshots; extended to the slots of two holds. Only
 *   uprof_sampler_sample_once() works without a ring.
 */
UprofSampler *
uprof_sampler_new(UprofGuest *guest, const UprofSamplerSettings *settings, UprofRing *ring);
void uprof_sampler_free(UprofSampler *sampler);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofSampler, uprof_sampler_free)

/** uprof_sampler_limit: replaces the duration, before uprof_sampler_begin() */
void uprof_sampler_limit(UprofSampler *sampler, uint64_t duration_ns);

/** uprof_sampler_asked_ns: Returns: the duration; 0: until stopped */
uint64_t uprof_sampler_asked_ns(const UprofSampler *sampler);

/** uprof_sampler_stop: from any thread: ends sampling after the present hold */
void uprof_sampler_stop(UprofSampler *sampler);

/**
 * uprof_sampler_park, uprof_sampler_unpark: from any thread
 *
 * Between the two calls the sampler holds no guest. Use them when a signal is about to stop this
 * process.
 */
void uprof_sampler_park(UprofSampler *sampler);
void uprof_sampler_unpark(UprofSampler *sampler);

/** uprof_sampler_counts: from any thread */
void uprof_sampler_counts(UprofSampler *sampler, UprofSamplerCounts *counts);

/**
 * uprof_sampler_take_error: after sampling has ended
 *
 * Returns: (transfer full) (nullable): the error that ended it; %NULL if none did
 */
GError *uprof_sampler_take_error(UprofSampler *sampler);

/*
 * The functions from here on are for the loop, all in one thread. Each of them may end
 * the sampling.
 */

/**
 * uprof_sampler_sample_once:
 * @slots: (out): one for each wanted vCPU; owned by the caller
 * @n: (out): how many of them were filled
 *
 * Takes one sample of all wanted vCPUs now, without a loop. A guest that somebody else
 * has paused is copied as it is.
 */
UprofAnswer uprof_sampler_sample_once(UprofSampler *sampler, UprofSnapshot **slots, unsigned *n,
                                      GError **error);
