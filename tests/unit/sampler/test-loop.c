/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <unistd.h>

#include "../../../src/sampler/sampler-priv.h"
#include "sampling.h"
#include "uprof/clock.h"

enum {
    PROBE_NS = 1000, /* length of a hold that the backend reports: no trial holds */
    STEP_US = 1000,
    PATIENCE_S = 30,
    FOREVER = G_MAXINT,
};

/* Facts that the hook notes of one guest. One thread writes at a time. */
typedef struct {
    gint first_thread, last_thread; /* tids of the threads that held it first and last */
    gint late_stop_at;              /* number of the hold that leaves a late stop; 0: none */
} Seen;

static void
note_thread(MemoryGuest *guest, MemoryCall call, gint n)
{
    Seen *seen = guest->hook_data;
    const gint thread = (gint)gettid();

    if (call == MEMORY_HOLD) {
        if (!g_atomic_int_get(&seen->first_thread))
            g_atomic_int_set(&seen->first_thread, thread);
        g_atomic_int_set(&seen->last_thread, thread);
    }
    if (call == MEMORY_RELEASE && n == seen->late_stop_at)
        g_atomic_int_set(&guest->base.has_late_stops, 1);
}

static void
init_sampling(Sampling *sampling, Seen *seen, uint64_t rate_mhz, uint64_t duration_ms)
{
    sampling_init(sampling, 2, UPROF_GRAIN_VCPU);
    sampling->guest->base.probe_ns = PROBE_NS;
    sampling->guest->hook = note_thread;
    sampling->guest->hook_data = seen;
    sampling->settings.rate_mhz = rate_mhz;
    sampling->settings.duration_ns = duration_ms * UPROF_NS_PER_MS;
}

static gint
count_holds(const Sampling *sampling)
{
    return g_atomic_int_get(&sampling->guest->tally->holds);
}

static void
drain_ring(UprofRing *ring)
{
    while (peek_slot(ring))
        uprof_ring_drop(ring);
}

/* Waits for @n more holds. */
static void
wait_for_holds(const Sampling *sampling, UprofRing *ring, gint n)
{
    const uint64_t until_ns = uprof_clock_now_ns() + PATIENCE_S * UPROF_NS_PER_S;
    const gint holds = count_holds(sampling);

    while (count_holds(sampling) < holds + n) {
        g_assert_cmpuint(uprof_clock_now_ns(), <, until_ns);
        drain_ring(ring);
        g_usleep(STEP_US);
    }
}

static void
wait_for_end(UprofSampler *sampler, UprofLoop *loop, UprofRing *ring, UprofSamplerEnd expected)
{
    UprofSamplerCounts counts;

    do {
        drain_ring(ring);
        g_usleep(STEP_US);
        uprof_sampler_counts(sampler, &counts);
    } while (counts.end == UPROF_SAMPLER_RUNNING);
    uprof_loop_sync(loop);
    g_assert_cmpint(counts.end, ==, expected);
}

/* One thread samples two guests: each keeps its own rate, and each snapshot has its owner. */
static void
test_two_rates(void)
{
    Seen slow_seen = { 0 }, fast_seen = { 0 };
    g_auto(Sampling) slow, fast;
    g_auto(SamplingResult) result;
    SamplingResult slow_result = { 0 }, fast_result = { 0 };
    uint64_t n_slow = 0, n_fast = 0;

    init_sampling(&slow, &slow_seen, 50 * 1000, 600);
    init_sampling(&fast, &fast_seen, 300 * 1000, 400);
    g_autoptr(UprofRing) ring = uprof_ring_new(SAMPLING_SLOTS, NULL);
    g_autoptr(UprofSampler) slow_sampler =
        uprof_sampler_new(&slow.guest->base, &slow.settings, ring);
    g_autoptr(UprofSampler) fast_sampler =
        uprof_sampler_new(&fast.guest->base, &fast.settings, ring);
    g_autoptr(UprofLoop) loop = uprof_loop_new(NULL);
    uprof_loop_add(loop, slow_sampler);
    uprof_loop_add(loop, fast_sampler);
    sampling_end(&slow, loop, slow_sampler, ring, &result);
    uprof_sampler_counts(slow_sampler, &slow_result.counts);
    uprof_sampler_counts(fast_sampler, &fast_result.counts);
    g_assert_cmpint(slow_result.counts.end, ==, UPROF_SAMPLER_DURATION);
    g_assert_cmpint(fast_result.counts.end, ==, UPROF_SAMPLER_DURATION);
    for (guint i = 0; i < result.snapshots->len; i++) {
        const UprofSnapshot *snapshot = sampling_at(&result, i);
        n_slow += snapshot->owner == &slow;
        n_fast += snapshot->owner == &fast;
    }
    g_assert_cmpuint(n_slow + n_fast, ==, result.snapshots->len);
    g_assert_cmpuint(n_slow, ==, count_holds(&slow));
    g_assert_cmpuint(n_fast, ==, count_holds(&fast));
    g_assert_cmpuint(n_slow, >, 0);
    g_assert_cmpuint(n_fast, >, 0);
    sampling_check_ticks(&slow, &slow_result, 2, n_slow);
    sampling_check_ticks(&fast, &fast_result, 2, n_fast);
    g_assert_cmpint(slow_seen.last_thread, ==, fast_seen.last_thread);
    g_assert_cmpint(slow_seen.first_thread, ==, slow_seen.last_thread);
}

/* While one guest is sampled, another is added and removed three times. */
static void
test_add_and_remove(void)
{
    Seen stays_seen = { 0 }, goes_seen = { 0 };
    g_auto(Sampling) stays, goes;

    init_sampling(&stays, &stays_seen, 500 * 1000, 0);
    init_sampling(&goes, &goes_seen, 500 * 1000, 0);
    g_autoptr(UprofRing) ring = uprof_ring_new(SAMPLING_SLOTS, NULL);
    g_autoptr(UprofSampler) sampler = uprof_sampler_new(&stays.guest->base, &stays.settings, ring);
    g_autoptr(UprofLoop) loop = uprof_loop_new(NULL);
    uprof_loop_add(loop, sampler);
    wait_for_holds(&stays, ring, 20);
    for (unsigned round = 0; round < 3; round++) {
        g_autoptr(UprofSampler) other = uprof_sampler_new(&goes.guest->base, &goes.settings, ring);
        uprof_loop_add(loop, other);
        wait_for_holds(&goes, ring, 10);
        wait_for_holds(&stays, ring, 10);
        uprof_sampler_stop(other);
        wait_for_end(other, loop, ring, UPROF_SAMPLER_STOPPED);
        /* after the sync the loop does not use the sampler, so it can be freed */
        const gint holds = count_holds(&goes);
        g_clear_pointer(&other, uprof_sampler_free);
        wait_for_holds(&stays, ring, 20);
        g_assert_cmpint(count_holds(&goes), ==, holds);
    }
    uprof_sampler_stop(sampler);
    wait_for_end(sampler, loop, ring, UPROF_SAMPLER_STOPPED);
}

static void
test_sync(void)
{
    Seen seen = { 0 };
    g_auto(Sampling) sampling;

    init_sampling(&sampling, &seen, 500 * 1000, 0);
    g_autoptr(UprofRing) ring = uprof_ring_new(SAMPLING_SLOTS, NULL);
    g_autoptr(UprofSampler) sampler =
        uprof_sampler_new(&sampling.guest->base, &sampling.settings, ring);
    g_autoptr(UprofLoop) loop = uprof_loop_new(NULL);
    uprof_loop_sync(loop); /* returns at once: the loop has no sampler */
    uprof_loop_add(loop, sampler);
    wait_for_holds(&sampling, ring, 2);
    uprof_loop_sync(loop); /* does not wait for a sampler that still runs */
    wait_for_holds(&sampling, ring, 2);
}

static void
release_late_slowly(MemoryGuest *guest, MemoryCall call, gint n)
{
    note_thread(guest, call, n);
    if (call == MEMORY_RELEASE_LATE)
        g_usleep(30 * 1000);
}

/* After a sync, the loop uses neither an ended sampler nor its guest. */
static void
test_sync_waits(void)
{
    Seen seen = { .late_stop_at = 1 };
    g_auto(Sampling) sampling;
    UprofSamplerCounts counts;

    init_sampling(&sampling, &seen, 100 * 1000, 100);
    memory_guest_rule(sampling.guest, MEMORY_RELEASE_LATE, 1, FOREVER, UPROF_BUSY);
    sampling.guest->hook = release_late_slowly;
    g_autoptr(UprofRing) ring = uprof_ring_new(SAMPLING_SLOTS, NULL);
    g_autoptr(UprofSampler) sampler =
        uprof_sampler_new(&sampling.guest->base, &sampling.settings, ring);
    g_autoptr(UprofLoop) loop = uprof_loop_new(NULL);
    uprof_loop_add(loop, sampler);
    do
        uprof_sampler_counts(sampler, &counts);
    while (counts.end == UPROF_SAMPLER_RUNNING);
    uprof_loop_sync(loop);
    const gint n_calls = g_atomic_int_get(&sampling.guest->tally->calls[MEMORY_RELEASE_LATE]);
    g_usleep(100 * 1000);
    g_assert_cmpint(g_atomic_int_get(&sampling.guest->tally->calls[MEMORY_RELEASE_LATE]), ==,
                    n_calls);
}

/* uprof_loop_free() ends all samplers soon, and no guest is held afterwards. */
static void
test_free(void)
{
    for (unsigned wait_us = 0; wait_us <= 40 * 1000; wait_us += 8 * 1000) {
        Seen one_seen = { 0 }, other_seen = { 0 };
        g_auto(Sampling) one, other;
        UprofSamplerCounts counts;
        init_sampling(&one, &one_seen, 1000 * 1000, 0);
        init_sampling(&other, &other_seen, 10, 0); /* its next tick is 100 seconds away */
        g_autoptr(UprofRing) ring = uprof_ring_new(SAMPLING_SLOTS, NULL);
        g_autoptr(UprofSampler) one_sampler =
            uprof_sampler_new(&one.guest->base, &one.settings, ring);
        g_autoptr(UprofSampler) other_sampler =
            uprof_sampler_new(&other.guest->base, &other.settings, ring);
        UprofLoop *loop = uprof_loop_new(NULL);
        uprof_loop_add(loop, one_sampler);
        uprof_loop_add(loop, other_sampler);
        g_usleep(wait_us);
        const uint64_t asked_ns = uprof_clock_now_ns();
        uprof_loop_free(loop);
        g_assert_cmpuint(uprof_clock_now_ns() - asked_ns, <, 5 * UPROF_NS_PER_S);
        const gint holds = count_holds(&one);
        uprof_sampler_counts(one_sampler, &counts);
        g_assert_cmpint(counts.end, ==, UPROF_SAMPLER_STOPPED);
        uprof_sampler_counts(other_sampler, &counts);
        g_assert_cmpint(counts.end, ==, UPROF_SAMPLER_STOPPED);
        g_usleep(5 * 1000);
        g_assert_cmpint(count_holds(&one), ==, holds);
    }
}

/* A loop that ends makes no trial holds for a sampler that was just added. */
static void
test_free_before_trial(void)
{
    g_auto(Sampling) sampling;
    UprofSamplerCounts counts;

    sampling_init(&sampling, 1, UPROF_GRAIN_GUEST);
    sampling.guest->hold_ns = 20 * UPROF_NS_PER_MS;
    g_autoptr(UprofRing) ring = uprof_ring_new(SAMPLING_SLOTS, NULL);
    g_autoptr(UprofSampler) first =
        uprof_sampler_new(&sampling.guest->base, &sampling.settings, ring);
    g_autoptr(UprofSampler) second =
        uprof_sampler_new(&sampling.guest->base, &sampling.settings, ring);
    UprofLoop *loop = uprof_loop_new(NULL);
    uprof_loop_add(loop, first);
    while (count_holds(&sampling) == 0)
        g_usleep(STEP_US);
    uprof_loop_add(loop, second);
    uprof_loop_free(loop);
    /* only the first sampler has made trial holds */
    g_assert_cmpint(count_holds(&sampling), <=, UPROF_SAMPLER_PROBES + 1);
    uprof_sampler_counts(second, &counts);
    g_assert_cmpint(counts.end, ==, UPROF_SAMPLER_STOPPED);
}

/* The loop retries the release of a late stop between other holds, until it succeeds. */
static void
test_release_late(void)
{
    Seen seen = { .late_stop_at = 5 };
    g_auto(Sampling) sampling;

    init_sampling(&sampling, &seen, 100 * 1000, 0);
    memory_guest_rule(sampling.guest, MEMORY_RELEASE_LATE, 1, 9, UPROF_BUSY);
    g_autoptr(UprofRing) ring = uprof_ring_new(SAMPLING_SLOTS, NULL);
    g_autoptr(UprofSampler) sampler =
        uprof_sampler_new(&sampling.guest->base, &sampling.settings, ring);
    g_autoptr(UprofLoop) loop = uprof_loop_new(NULL);
    uprof_loop_add(loop, sampler);
    wait_for_holds(&sampling, ring, 40);
    g_assert_cmpint(g_atomic_int_get(&sampling.guest->base.has_late_stops), ==, 0);
    g_assert_cmpint(g_atomic_int_get(&sampling.guest->tally->calls[MEMORY_RELEASE_LATE]), ==, 10);
    uprof_sampler_stop(sampler);
    wait_for_end(sampler, loop, ring, UPROF_SAMPLER_STOPPED);
    g_assert_cmpint(sampling.guest->tally->calls[MEMORY_RELEASE_LATE], ==, 10);
    g_assert_cmpint(seen.first_thread, ==, seen.last_thread);
}

/* The loop retries often also at a low rate, because the vCPU may stand still. */
static void
test_release_late_soon(void)
{
    Seen seen = { .late_stop_at = 1 };
    g_auto(Sampling) sampling;

    init_sampling(&sampling, &seen, 10, 0); /* one tick in 100 seconds */
    memory_guest_rule(sampling.guest, MEMORY_RELEASE_LATE, 1, 399, UPROF_BUSY);
    g_atomic_int_set(&sampling.guest->base.has_late_stops, 1);
    g_autoptr(UprofRing) ring = uprof_ring_new(SAMPLING_SLOTS, NULL);
    g_autoptr(UprofSampler) sampler =
        uprof_sampler_new(&sampling.guest->base, &sampling.settings, ring);
    g_autoptr(UprofLoop) loop = uprof_loop_new(NULL);
    uprof_loop_add(loop, sampler);
    const uint64_t began_ns = uprof_clock_now_ns();
    while (g_atomic_int_get(&sampling.guest->base.has_late_stops)) {
        /* at the pace of the checks for stops, 400 retries would take eight seconds */
        g_assert_cmpuint(uprof_clock_now_ns() - began_ns, <, 5 * UPROF_NS_PER_S);
        g_usleep(STEP_US);
    }
    g_assert_cmpint(g_atomic_int_get(&sampling.guest->tally->calls[MEMORY_RELEASE_LATE]), ==, 400);
}

/* clang-format off */
static const struct {
    const char *name;
    bool is_released; /* before the sampler has ended */
    bool is_alone;    /* no other guest is sampled */
} late_stops[] = {
    { "released-in-time",   true,  false },
    { "never-released",     false, false },
    { "alone",             false, true },
};
/* clang-format on */

/*
 * A late stop that is never released ends with the thread that requested it: the loop
 * replaces its thread, and the new one continues to sample the other guest.
 */
static void
test_late_stop(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    Seen stays_seen = { 0 }, sticks_seen = { .late_stop_at = 1 };
    g_auto(Sampling) stays, sticks;

    init_sampling(&stays, &stays_seen, 500 * 1000, 0);
    init_sampling(&sticks, &sticks_seen, 500 * 1000, 60);
    if (!late_stops[i].is_released)
        memory_guest_rule(sticks.guest, MEMORY_RELEASE_LATE, 1, FOREVER, UPROF_BUSY);
    g_autoptr(UprofRing) ring = uprof_ring_new(SAMPLING_SLOTS, NULL);
    g_autoptr(UprofSampler) stays_sampler =
        uprof_sampler_new(&stays.guest->base, &stays.settings, ring);
    g_autoptr(UprofSampler) sticks_sampler =
        uprof_sampler_new(&sticks.guest->base, &sticks.settings, ring);
    g_autoptr(UprofLoop) loop = uprof_loop_new(NULL);
    if (!late_stops[i].is_alone)
        uprof_loop_add(loop, stays_sampler);
    uprof_loop_add(loop, sticks_sampler);
    wait_for_end(sticks_sampler, loop, ring, UPROF_SAMPLER_DURATION);
    const gint n_calls = sticks.guest->tally->calls[MEMORY_RELEASE_LATE];
    g_assert_cmpint(n_calls, >=, 1);
    g_assert_cmpint(sticks.guest->base.has_late_stops, ==, !late_stops[i].is_released);
    if (late_stops[i].is_alone)
        uprof_loop_add(loop, stays_sampler); /* the loop takes new samplers */
    wait_for_holds(&stays, ring, 20);
    if (late_stops[i].is_released)
        g_assert_cmpint(stays_seen.last_thread, ==, sticks_seen.last_thread);
    else
        g_assert_cmpint(stays_seen.last_thread, !=, sticks_seen.last_thread);
    if (!late_stops[i].is_alone)
        g_assert_cmpint(stays_seen.first_thread, ==, sticks_seen.first_thread);
    g_assert_cmpint(sticks.guest->tally->calls[MEMORY_RELEASE_LATE], ==,
                    n_calls); /* no retry after the sampler has ended */
    uprof_sampler_stop(stays_sampler);
    wait_for_end(stays_sampler, loop, ring, UPROF_SAMPLER_STOPPED);
}

/* The end of the loop ends its thread, which also ends a late stop. */
static void
test_free_with_late_stop(void)
{
    Seen seen = { .late_stop_at = 4 };
    g_auto(Sampling) sampling;

    init_sampling(&sampling, &seen, 500 * 1000, 0);
    memory_guest_rule(sampling.guest, MEMORY_RELEASE_LATE, 1, FOREVER, UPROF_BUSY);
    g_autoptr(UprofRing) ring = uprof_ring_new(SAMPLING_SLOTS, NULL);
    g_autoptr(UprofSampler) sampler =
        uprof_sampler_new(&sampling.guest->base, &sampling.settings, ring);
    UprofLoop *loop = uprof_loop_new(NULL);
    uprof_loop_add(loop, sampler);
    wait_for_holds(&sampling, ring, 10);
    uprof_loop_free(loop);
    g_assert_cmpint(sampling.guest->tally->is_held, ==, 0);
}

static void
test_park(void)
{
    Seen one_seen = { 0 }, other_seen = { 0 };
    g_auto(Sampling) one, other;

    init_sampling(&one, &one_seen, 500 * 1000, 0);
    init_sampling(&other, &other_seen, 500 * 1000, 0);
    g_autoptr(UprofRing) ring = uprof_ring_new(SAMPLING_SLOTS, NULL);
    g_autoptr(UprofSampler) one_sampler = uprof_sampler_new(&one.guest->base, &one.settings, ring);
    g_autoptr(UprofSampler) other_sampler =
        uprof_sampler_new(&other.guest->base, &other.settings, ring);
    g_autoptr(UprofLoop) loop = uprof_loop_new(NULL);
    uprof_loop_add(loop, one_sampler);
    uprof_loop_add(loop, other_sampler);
    for (unsigned i = 0; i < 5; i++) {
        wait_for_holds(&one, ring, 10);
        wait_for_holds(&other, ring, 10);
        uprof_sampler_park(one_sampler);
        uprof_sampler_park(other_sampler);
        const gint one_holds = count_holds(&one), other_holds = count_holds(&other);
        g_assert_cmpint(g_atomic_int_get(&one.guest->tally->is_held), ==, 0);
        g_assert_cmpint(g_atomic_int_get(&other.guest->tally->is_held), ==, 0);
        g_usleep(20 * 1000);
        g_assert_cmpint(count_holds(&one), ==, one_holds);
        g_assert_cmpint(count_holds(&other), ==, other_holds);
        uprof_sampler_unpark(one_sampler);
        uprof_sampler_unpark(other_sampler);
    }
}

static void
test_free_null(void)
{
    uprof_loop_free(NULL);
    g_autoptr(UprofLoop) loop = uprof_loop_new(NULL);
    g_assert_nonnull(loop);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    g_test_add_func("/loop/two-rates", test_two_rates);
    g_test_add_func("/loop/add-and-remove", test_add_and_remove);
    g_test_add_func("/loop/sync", test_sync);
    g_test_add_func("/loop/sync-waits", test_sync_waits);
    g_test_add_func("/loop/free", test_free);
    g_test_add_func("/loop/free-before-trial", test_free_before_trial);
    g_test_add_func("/loop/release-late", test_release_late);
    g_test_add_func("/loop/release-late-soon", test_release_late_soon);
    for (size_t i = 0; i < G_N_ELEMENTS(late_stops); i++) {
        g_autofree char *path = g_strdup_printf("/loop/late-stop/%s", late_stops[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_late_stop);
    }
    g_test_add_func("/loop/free-with-late-stop", test_free_with_late_stop);
    g_test_add_func("/loop/park", test_park);
    g_test_add_func("/loop/free-null", test_free_null);
    return g_test_run();
}
