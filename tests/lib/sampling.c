/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sampling.h"

#include <string.h>

#include "alloc-watch.h"
#include "../../src/sampler/sampler-priv.h"
#include "uprof/clock.h"

enum { DRAIN_US = 1000 };

static bool
is_in_hold(void)
{
    return memory_guest_in_hold;
}

void
sampling_init(Sampling *sampling, unsigned n_vcpus, UprofGrain grain)
{
    const MemoryPlan plan = { .n_vcpus = n_vcpus, .grain = grain, .ram_len = SAMPLING_RAM_LEN };

    g_assert(n_vcpus <= SAMPLING_VCPUS_MAX);
    memset(sampling, 0, sizeof(*sampling));
    sampling->guest = memory_guest_open(&plan);
    sampling->n_slots = SAMPLING_SLOTS;
    for (unsigned i = 0; i < n_vcpus; i++) {
        memory_guest_identity(sampling->guest, i, SAMPLING_PC, SAMPLING_STACK + 0x100 * i,
                              SAMPLING_STACK);
        uprof_window_size_init(&sampling->sizes[i]);
        sampling->wanted[i] = true;
    }
    sampling->settings = (UprofSamplerSettings){
        .rate_mhz = SAMPLING_RATE_MHZ,
        .duration_ns = SAMPLING_RUN_MS * UPROF_NS_PER_MS,
        .budget_ppm = 1000 * 1000,
        .max_pause_ns = UPROF_NS_PER_S,
        .wanted = sampling->wanted,
        .sizes = sampling->sizes,
        .seed = 1,
        .owner = sampling,
    };
    alloc_watch_start(is_in_hold);
}

void
sampling_clear(Sampling *sampling)
{
    g_assert_cmpint(sampling->guest->tally->holds, ==, sampling->guest->tally->releases);
    g_assert_cmpint(sampling->guest->tally->is_held, ==, 0);
    g_assert_cmpint(alloc_watch_count(), ==, 0);
    memory_guest_close(sampling->guest);
}

void
sampling_result_clear(SamplingResult *result)
{
    g_clear_pointer(&result->snapshots, g_ptr_array_unref);
    g_clear_error(&result->error);
}

void
sampling_drain(UprofRing *ring, SamplingResult *result)
{
    const UprofSnapshot *snapshot;

    while ((snapshot = peek_slot(ring))) {
        g_assert_cmpuint(snapshot->weight, >, 0);
        g_assert_cmpuint(snapshot->count, >, 0);
        g_ptr_array_add(result->snapshots,
                        g_memdup2(snapshot, G_STRUCT_OFFSET(UprofSnapshot, bytes)));
        uprof_ring_drop(ring);
    }
}

static void
take_end(UprofSampler *sampler, UprofRing *ring, SamplingResult *result)
{
    sampling_drain(ring, result);
    uprof_sampler_counts(sampler, &result->counts);
    result->error = uprof_sampler_take_error(sampler);
    g_assert_cmpint(result->counts.end == UPROF_SAMPLER_ERROR, ==, result->error != NULL);
}

void
sampling_end(Sampling *sampling, UprofLoop *loop, UprofSampler *sampler, UprofRing *ring,
             SamplingResult *result)
{
    *result = (SamplingResult){ .snapshots = g_ptr_array_new_with_free_func(g_free) };
    do {
        uprof_sampler_counts(sampler, &result->counts);
        if (!sampling->nobody_drains)
            sampling_drain(ring, result);
        g_usleep(DRAIN_US);
    } while (result->counts.end == UPROF_SAMPLER_RUNNING);
    uprof_loop_sync(loop);
    take_end(sampler, ring, result);
}

void
sampling_run(Sampling *sampling, SamplingResult *result)
{
    g_autoptr(UprofRing) ring = uprof_ring_new(sampling->n_slots, NULL);
    g_autoptr(UprofSampler) sampler =
        uprof_sampler_new(&sampling->guest->base, &sampling->settings, ring);
    g_autoptr(UprofLoop) loop = uprof_loop_new(NULL);

    uprof_loop_add(loop, sampler);
    sampling_end(sampling, loop, sampler, ring, result);
}

void
sampling_run_early(Sampling *sampling, SamplingResult *result)
{
    g_autoptr(UprofRing) ring = uprof_ring_new(sampling->n_slots, NULL);
    g_autoptr(UprofSampler) sampler =
        uprof_sampler_new(&sampling->guest->base, &sampling->settings, ring);

    *result = (SamplingResult){ .snapshots = g_ptr_array_new_with_free_func(g_free) };
    uprof_sampler_begin(sampler);
    while (!uprof_sampler_has_ended(sampler)) {
        uprof_sampler_tick(sampler, uprof_clock_now_ns());
        if (!sampling->nobody_drains)
            sampling_drain(ring, result);
    }
    take_end(sampler, ring, result);
}

const UprofSnapshot *
sampling_at(const SamplingResult *result, guint i)
{
    return g_ptr_array_index(result->snapshots, i);
}

void
sampling_check_ticks(const Sampling *sampling, const SamplingResult *result, unsigned n_lines,
                     uint64_t n_samples)
{
    const UprofSamplerCounts *counts = &result->counts;
    const uint64_t interval_ns =
        UPROF_NS_PER_S * 1000 / (sampling->settings.rate_mhz / counts->divisor);
    const uint64_t ticks =
        n_samples + counts->late + counts->busy + counts->skipped + counts->stuck;

    /* on a busy host the last tick may be late, and then also counts ticks after the end */
    if (counts->elapsed_ns < sampling->settings.duration_ns + interval_ns)
        g_assert_cmpuint(
            ticks, <=,
            n_lines * ((sampling->settings.duration_ns + interval_ns / 2) / interval_ns + 1));
    g_assert_cmpuint(ticks + n_lines, >=, n_lines * (sampling->settings.duration_ns / interval_ns));
}
