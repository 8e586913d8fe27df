/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sampling.h - runs a sampler over a guest that is an array of bytes, for tests
 *
 * However a run goes: what was held was released, and nothing was allocated
 * meanwhile. That is asserted when the fixture is cleared.
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

/**
 * Sampling: the guest and the plan that a test changes before it runs
 * @n_slots: of the ring
 * @nobody_drains: until the end
 * @guest: of which each vCPU has a stack, 0x100 above that of the one before
 */
typedef struct {
    MemoryGuest *guest;
    UprofSamplerPlan plan;
    UprofWindowSize sizes[SAMPLING_VCPUS_MAX];
    bool wanted[SAMPLING_VCPUS_MAX];
    size_t n_slots;
    bool nobody_drains;
} Sampling;

/** sampling_init: with a trial before the run, unless a test sets the guest's probe_ns */
void sampling_init(Sampling *sampling, unsigned n_vcpus, UprofGrain grain);
void sampling_clear(Sampling *sampling);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Sampling, sampling_clear)

/** SamplingResult: what came out of a run; @snapshots without their windows' bytes */
typedef struct {
    UprofSamplerCounts counts;
    GPtrArray *snapshots;
    GError *error;
} SamplingResult;

void sampling_result_clear(SamplingResult *result);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(SamplingResult, sampling_result_clear)

/** sampling_run: through a loop of its own, to its end; @result: (out) */
void sampling_run(Sampling *sampling, SamplingResult *result);

/**
 * sampling_run_early: without a loop, each tick before its time and drained at once, to the
 *   end of the plan: what a busy machine does to threads is not in it
 * @result: (out)
 */
void sampling_run_early(Sampling *sampling, SamplingResult *result);

/** sampling_drain: @result: (inout): gets what is in @ring */
void sampling_drain(UprofRing *ring, SamplingResult *result);

/** sampling_end: waits until @sampler has ended, draining; then as sampling_run() */
void sampling_end(Sampling *sampling, UprofLoop *loop, UprofSampler *sampler, UprofRing *ring,
                  SamplingResult *result);

const UprofSnapshot *sampling_at(const SamplingResult *result, guint i);

/**
 * sampling_check_ticks: every tick of the run is a sample, or counted as late, busy, skipped or stuck
 * @n_lines: that tick
 * @n_holds: holds and rests that were published; each stands for its weight
 */
void sampling_check_ticks(const Sampling *sampling, const SamplingResult *result, unsigned n_lines,
                          uint64_t n_samples);
