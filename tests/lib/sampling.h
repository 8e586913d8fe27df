/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sampling.h - runs a sampler over a guest that is an array of bytes, for tests
 *
 * sampling_clear() asserts that each hold was released, and that nothing was allocated in a hold.
 */
#pragma once

#include "memory-guest.h"
#include "uprof/loop.h"

enum {
    SAMPLING_VCPUS_MAX = 4,
    SAMPLING_RAM_LEN = 0x20000,
    SAMPLING_PC = 0x1000,
    SAMPLING_STACK = 0x8000,
    SAMPLING_RATE_MHZ = 200 * 1000,
    SAMPLING_RUN_MS = 300,
    SAMPLING_SLOTS = 128,
};

/** Sampling: a guest and settings; a test may change them before it runs the sampler */
typedef struct {
    MemoryGuest *guest; /* owned; the stack of each vCPU is 0x100 bytes above the previous one */
    UprofSamplerSettings settings;
    UprofWindowSize sizes[SAMPLING_VCPUS_MAX]; /* for @settings */
    bool wanted[SAMPLING_VCPUS_MAX];           /* for @settings */
    size_t n_slots;                            /* of the ring */
    bool nobody_drains;                        /* the ring is drained only at the end */
} Sampling;

/** sampling_init: the sampler makes trial holds, unless a test sets @probe_ns of the guest */
void sampling_init(Sampling *sampling, unsigned n_vcpus, UprofGrain grain);
void sampling_clear(Sampling *sampling);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Sampling, sampling_clear)

/** SamplingResult: the result of a run */
typedef struct {
    UprofSamplerCounts counts;
    GPtrArray *snapshots; /* owned; of UprofSnapshot, without @bytes */
    GError *error;        /* (nullable): owned */
} SamplingResult;

void sampling_result_clear(SamplingResult *result);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(SamplingResult, sampling_result_clear)

/** sampling_run: runs the sampler in a new loop to its end; @result: (out) */
void sampling_run(Sampling *sampling, SamplingResult *result);

/**
 * sampling_run_early: runs the sampler without a loop and without waiting
 * @result: (out)
 *
 * Takes each tick before its time, and drains the ring after it. So the load of the machine has
 * no effect on the result.
 */
void sampling_run_early(Sampling *sampling, SamplingResult *result);

/** peek_slot: Returns: (nullable): the oldest filled slot */
static inline const UprofSnapshot *
peek_slot(UprofRing *ring)
{
    const UprofSnapshot *slot;

    return uprof_ring_peek(ring, &slot, 1) == 1 ? slot : NULL;
}

/** sampling_drain: moves the snapshots in @ring to @result */
void sampling_drain(UprofRing *ring, SamplingResult *result);

/** sampling_end: drains the ring until @sampler has ended; @result: (out) */
void sampling_end(Sampling *sampling, UprofLoop *loop, UprofSampler *sampler, UprofRing *ring,
                  SamplingResult *result);

const UprofSnapshot *sampling_at(const SamplingResult *result, guint i);

/**
 * sampling_check_ticks: asserts that every tick is a sample, or is counted as late, busy, skipped
 *   or stuck
 * @n_lines: series of ticks in the run
 * @n_samples: number of ticks that the published samples stand for
 */
void sampling_check_ticks(const Sampling *sampling, const SamplingResult *result, unsigned n_lines,
                          uint64_t n_samples);
