/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sampling of a guest whose vCPUs are held one by one: each vCPU has a ticker of its own. */
#include <string.h>

#include "sampling.h"
#include "../../../src/sampler/sampler-priv.h"
#include "uprof/clock.h"

enum {
    PROBE_NS = 1000, /* length of a hold that the backend reports: no trial holds, full rate */
    STEPS_MAX = 8,
    VET_TIMES_MAX = 64,
    FOREVER = G_MAXINT,
};

/* Calls that the hook has counted, by vCPU. */
static struct {
    uint64_t vets[SAMPLING_VCPUS_MAX];
    uint64_t vet_ns[VET_TIMES_MAX]; /* times of the first vets, of all vCPUs */
    uint64_t n_vets;
    uint64_t holds[SAMPLING_VCPUS_MAX];
    uint64_t n_absent; /* vets answered by ABSENT, which are not ticks */
} seen;

static void
count_calls(MemoryGuest *guest, MemoryCall call, gint n)
{
    if (call == MEMORY_VET) {
        seen.vets[guest->vcpu]++;
        if (seen.n_vets < VET_TIMES_MAX)
            seen.vet_ns[seen.n_vets++] = uprof_clock_now_ns();
        seen.n_absent += g_atomic_int_get(&guest->vets[guest->vcpu]) == UPROF_ABSENT;
    }
    if (call == MEMORY_HOLD)
        seen.holds[guest->vcpu]++;
}

static void
init_sampling(Sampling *sampling, unsigned n_vcpus)
{
    memset(&seen, 0, sizeof(seen));
    sampling_init(sampling, n_vcpus, UPROF_GRAIN_VCPU);
    sampling->guest->base.probe_ns = PROBE_NS;
    sampling->guest->hook = count_calls;
}

/* Returns: the sum of the counts of all snapshots of @vcpu */
static uint64_t
count_samples(const SamplingResult *result, unsigned vcpu)
{
    uint64_t n = 0;

    for (guint i = 0; i < result->snapshots->len; i++)
        if (sampling_at(result, i)->vcpu == vcpu)
            n += sampling_at(result, i)->count;
    return n;
}

static uint64_t
count_all(const SamplingResult *result)
{
    uint64_t n = 0;

    for (unsigned vcpu = 0; vcpu < SAMPLING_VCPUS_MAX; vcpu++)
        n += count_samples(result, vcpu);
    return n;
}

/* Each vet was a tick (unless ABSENT), and each tick became a sample or is in one of the counts. */
static void
check_each_tick_counted(const SamplingResult *result)
{
    const UprofSamplerCounts *counts = &result->counts;
    uint64_t vets = 0;

    for (unsigned vcpu = 0; vcpu < SAMPLING_VCPUS_MAX; vcpu++)
        vets += seen.vets[vcpu];
    g_assert_cmpuint(count_all(result) + counts->busy + counts->skipped + counts->stuck, ==,
                     vets - seen.n_absent);
}

static void
test_plain(void)
{
    g_auto(Sampling) sampling;
    g_auto(SamplingResult) result;
    uint64_t last_ns = 0;

    init_sampling(&sampling, 3);
    sampling.n_slots = 256; /* enough for the complete run */
    sampling_run(&sampling, &result);
    g_assert_cmpint(result.counts.end, ==, UPROF_SAMPLER_DURATION);
    g_assert_cmpuint(result.counts.busy + result.counts.skipped + result.counts.stuck, ==, 0);
    g_assert_cmpuint(result.counts.n_holds, ==, result.snapshots->len);
    check_each_tick_counted(&result);
    sampling_check_ticks(&sampling, &result, 3, result.snapshots->len);
    for (unsigned vcpu = 0; vcpu < 3; vcpu++) {
        g_assert_cmpuint(count_samples(&result, vcpu), ==, seen.vets[vcpu]);
        g_assert_cmpuint(seen.holds[vcpu], ==, seen.vets[vcpu]);
        g_assert_cmpuint(count_samples(&result, vcpu), >, 0);
    }
    for (guint i = 0; i < result.snapshots->len; i++) {
        const UprofSnapshot *snapshot = sampling_at(&result, i);
        g_assert_cmpuint(snapshot->hold, ==, i);
        g_assert_cmpuint(snapshot->time_ns, >=, last_ns);
        g_assert_cmpuint(snapshot->grain, ==, UPROF_GRAIN_VCPU);
        g_assert_cmpuint(snapshot->weight, ==, 1);
        g_assert_cmpuint(snapshot->count, ==, 1);
        g_assert_false(snapshot->same || snapshot->idle || snapshot->stale);
        g_assert_true(snapshot->owner == &sampling);
        g_assert_cmpuint(snapshot->n_windows, ==, 1);
        g_assert_cmphex(snapshot->windows[0].gva, ==,
                        SAMPLING_STACK + 0x100 * snapshot->vcpu - 256);
        last_ns = snapshot->time_ns;
    }
}

/*
 * The ticks of the vCPUs are spread evenly over an interval, on average. Ticks are taken before
 * their time, so that none is missed.
 */
static void
test_spread(void)
{
    enum { N = 1000, VCPUS = 4 };
    static const uint64_t interval_ns = 10 * UPROF_NS_PER_MS;
    double sum[VCPUS] = { 0 }; /* of the distances from the first tick of all, in intervals */
    unsigned n[VCPUS] = { 0 }, n_full = 0;
    uint64_t first_ns = 0;
    g_auto(Sampling) sampling;

    init_sampling(&sampling, VCPUS);
    sampling.settings.rate_mhz = 100 * 1000;
    sampling.settings.duration_ns = 0;
    sampling.settings.budget_ppm = 1000 * 1000;
    g_autoptr(UprofRing) ring = uprof_ring_new(1, NULL);
    g_autoptr(UprofSampler) sampler =
        uprof_sampler_new(&sampling.guest->base, &sampling.settings, ring);
    uprof_sampler_begin(sampler);
    while (n_full < VCPUS) {
        uint64_t early_ns = UINT64_MAX;
        const uint64_t next_ns = uprof_sampler_next_ns(sampler, &early_ns);
        g_assert_cmpuint(early_ns, <, interval_ns / 8);
        if (first_ns == 0)
            first_ns = next_ns;
        uprof_sampler_tick(sampler, uprof_clock_now_ns());
        while (peek_slot(ring))
            uprof_ring_drop(ring);
        const unsigned vcpu = sampling.guest->vcpu;
        if (n[vcpu] == N)
            continue;
        sum[vcpu] += ((double)next_ns - (double)first_ns) / (double)interval_ns - n[vcpu];
        n_full += ++n[vcpu] == N;
    }
    /* the random offsets move each average by about 0.01 intervals */
    for (unsigned i = 0; i < VCPUS; i++) {
        double apart = (sum[(i + 1) % VCPUS] - sum[i]) / N;
        while (apart < 0)
            apart += 1;
        while (apart >= 1)
            apart -= 1;
        g_assert_cmpfloat(apart, >, 0.15);
        g_assert_cmpfloat(apart, <, 0.35);
    }
}

static void
test_only_wanted(void)
{
    g_auto(Sampling) sampling;
    g_auto(SamplingResult) result;

    init_sampling(&sampling, 4);
    sampling.wanted[0] = sampling.wanted[2] = false;
    sampling_run(&sampling, &result);
    g_assert_cmpuint(seen.vets[0] + seen.vets[2] + seen.holds[0] + seen.holds[2], ==, 0);
    g_assert_cmpuint(count_samples(&result, 1), ==, seen.vets[1]);
    g_assert_cmpuint(count_samples(&result, 3), ==, seen.vets[3]);
    check_each_tick_counted(&result);
    sampling_check_ticks(&sampling, &result, 2, count_all(&result));
}

/* A vCPU that is not plugged in has no ticks, also if only the hold finds it unplugged. */
static void
test_absent(void)
{
    g_auto(Sampling) sampling;
    g_auto(SamplingResult) result;

    init_sampling(&sampling, 3);
    sampling.n_slots = 32;
    g_atomic_int_set(&sampling.guest->vets[1], UPROF_ABSENT);
    sampling.guest->is_absent[2] = true;
    sampling_run_early(&sampling, &result);
    g_assert_cmpint(result.counts.end, ==, UPROF_SAMPLER_DURATION);
    g_assert_cmpuint(result.counts.busy + result.counts.skipped + result.counts.stuck, ==, 0);
    g_assert_cmpuint(count_samples(&result, 0), ==, seen.vets[0]);
    g_assert_cmpuint(count_all(&result), ==, seen.vets[0]);
    /* an absent vCPU is checked ten times a second, not at each tick */
    g_assert_cmpuint(seen.vets[1], >=, 3);
    g_assert_cmpuint(seen.vets[1], <=, 4);
    g_assert_cmpuint(seen.holds[1], ==, 0);
    g_assert_cmpuint(seen.holds[2], >, sampling.n_slots); /* each hold returned its slot */
    g_assert_cmpuint(seen.vets[0], >, sampling.n_slots);
}

/* Trial holds cover all vCPUs, unless the backend has measured a hold when it opened. */
static void
test_trial_holds(void)
{
    g_auto(Sampling) sampling;
    g_auto(SamplingResult) result;

    init_sampling(&sampling, 3);
    sampling.guest->base.probe_ns = 0;
    sampling_run(&sampling, &result);
    for (unsigned vcpu = 0; vcpu < 3; vcpu++)
        g_assert_cmpuint(seen.holds[vcpu], ==,
                         count_samples(&result, vcpu) + UPROF_SAMPLER_PROBES / 3);
    g_assert_cmpuint(result.counts.probe_ns, >, 0);
    g_assert_cmpuint(sampling_at(&result, 0)->hold, ==, 0);
}

static void
test_known_hold(void)
{
    g_auto(Sampling) sampling;
    g_auto(SamplingResult) result;

    init_sampling(&sampling, 2);
    sampling.guest->base.probe_ns =
        5 * UPROF_NS_PER_MS; /* one interval: holds would take 100 % of the time */
    sampling.settings.budget_ppm = 100 * 1000;
    sampling_run(&sampling, &result);
    g_assert_cmpuint(result.counts.probe_ns, ==, 5 * UPROF_NS_PER_MS);
    g_assert_cmpuint(result.counts.divisor, ==, 10);
    g_assert_cmpuint(seen.holds[0], ==, count_samples(&result, 0));
    g_assert_cmpuint(seen.holds[1], ==, count_samples(&result, 1));
    check_each_tick_counted(&result);
    sampling_check_ticks(&sampling, &result, 2, count_all(&result));
}

/* A sampler that continues a run keeps the grid of ticks, so its samples get more weight. */
static void
test_continues_run(void)
{
    g_auto(Sampling) sampling;
    g_auto(SamplingResult) result;

    init_sampling(&sampling, 2);
    sampling.guest->base.probe_ns = 5 * UPROF_NS_PER_MS;
    sampling.settings.budget_ppm = 100 * 1000;
    sampling.settings.continues_run = true;
    sampling_run(&sampling, &result);
    g_assert_cmpuint(result.counts.divisor, ==, 1);
    g_assert_cmpuint(result.counts.stride, ==, 10);
    for (guint i = 0; i < result.snapshots->len; i++)
        g_assert_cmpuint(sampling_at(&result, i)->weight, ==, 10);
    const uint64_t ticks = result.snapshots->len * 10 + result.counts.late;
    g_assert_cmpuint(ticks + 2 * 10, >=, 2 * 60);
    if (result.counts.elapsed_ns < sampling.settings.duration_ns + 5 * UPROF_NS_PER_MS)
        g_assert_cmpuint(ticks, <=, 2 * (60 + 10));
}

static void
slow_vcpu_1(MemoryGuest *guest, MemoryCall call, gint n)
{
    count_calls(guest, call, n);
    if (call == MEMORY_READ_REGS && guest->vcpu == 1)
        uprof_clock_sleep_until(uprof_clock_now_ns() + 8 * UPROF_NS_PER_MS);
    /* one delay makes all tickers late: missed ticks weigh as much as taken ones */
    if (call == MEMORY_VET && guest->vcpu == 0 && seen.vets[0] == 45)
        g_usleep(400 * 1000);
}

/*
 * The first review lowers the rate according to the share of time that the first holds took. If a
 * busy machine delayed these holds, their share is small, and the rate is lowered only a little.
 */
static bool
was_delayed_at_first(unsigned n_vcpus, uint64_t interval_ns)
{
    enum { REVIEW_HOLDS = 16 };
    const uint64_t first_ns = seen.vet_ns[0], last_ns = seen.vet_ns[n_vcpus * (REVIEW_HOLDS + 1)];

    return last_ns < first_ns || last_ns - first_ns > 3 * REVIEW_HOLDS * interval_ns / 2;
}

/* Long holds of one vCPU lower the rate of that vCPU only. */
static bool
try_budget(void)
{
    g_auto(Sampling) sampling;
    g_auto(SamplingResult) result;
    uint64_t weights[3] = { 0 };
    unsigned n_slow = 0, last_weight = 1;

    init_sampling(&sampling, 3);
    sampling.settings.rate_mhz = 50 * 1000;
    sampling.settings.duration_ns = 1600 * UPROF_NS_PER_MS;
    sampling.settings.budget_ppm = 100 * 1000; /* the holds take 40 % */
    sampling.guest->hook = slow_vcpu_1;
    sampling_run(&sampling, &result);
    if (was_delayed_at_first(3, 20 * UPROF_NS_PER_MS))
        return false;
    g_assert_cmpuint(result.counts.divisor, ==, 1);
    g_assert_cmpuint(result.counts.stride, >=, 3);
    for (guint i = 0; i < result.snapshots->len; i++) {
        const UprofSnapshot *snapshot = sampling_at(&result, i);
        weights[snapshot->vcpu] += snapshot->weight;
        if (snapshot->vcpu != 1 || n_slow++ < 16)
            g_assert_cmpuint(snapshot->weight, ==, 1);
        else
            last_weight = snapshot->weight;
    }
    g_assert_cmpuint(last_weight, ==, result.counts.stride);
    g_assert_cmpuint(weights[0], ==, seen.vets[0]);
    g_assert_cmpuint(weights[2], ==, seen.vets[2]);
    g_assert_cmpuint(weights[1], >, seen.vets[1]);
    g_assert_cmpuint(result.counts.most_held_ns, >=, seen.vets[1] * 8 * UPROF_NS_PER_MS);
    g_assert_cmpuint(result.counts.held_ns, >=, result.counts.most_held_ns);
    /* of 80 ticks of each vCPU, only those after its last sample are missing: less than a stride */
    const uint64_t ticks = weights[0] + weights[1] + weights[2] + result.counts.late;
    g_assert_cmpuint(ticks + 3 + result.counts.stride, >=, 3 * 80);
    if (result.counts.elapsed_ns < sampling.settings.duration_ns + 20 * UPROF_NS_PER_MS)
        g_assert_cmpuint(ticks, <=, 3 * 80 + 3 + result.counts.stride);
    return true;
}

/* Time lost in stops without a sample lowers the rate like the time of samples. */
static void
test_lost_time(void)
{
    g_auto(Sampling) sampling;
    g_auto(SamplingResult) result;

    init_sampling(&sampling, 2);
    sampling.settings.rate_mhz = 100 * 1000;
    sampling.settings.duration_ns = 1600 * UPROF_NS_PER_MS;
    sampling.settings.budget_ppm = 100 * 1000; /* the holds take 40 % */
    sampling.guest->failed_ns = 4 * UPROF_NS_PER_MS;
    sampling.guest->lost_ns[1] = UPROF_NS_PER_S; /* lost before the run: not counted */
    g_atomic_int_set(&sampling.guest->stops[1], UPROF_BUSY);
    sampling_run(&sampling, &result);
    g_assert_cmpuint(count_samples(&result, 1), ==, 0);
    g_assert_cmpuint(count_samples(&result, 0), >, 0);
    g_assert_cmpuint(result.counts.stride, >=, 3);
    g_assert_cmpuint(result.counts.busy, >, seen.holds[1]);
    g_assert_cmpuint(result.counts.most_held_ns, ==, seen.holds[1] * 4 * UPROF_NS_PER_MS);
    for (guint i = 0; i < result.snapshots->len; i++)
        g_assert_cmpuint(sampling_at(&result, i)->weight, ==, 1);
}

/* Holds in which no registers can be read lower the rate, too. */
static bool
try_unreadable_holds(void)
{
    g_auto(Sampling) sampling;
    g_auto(SamplingResult) result;

    init_sampling(&sampling, 2);
    sampling.settings.rate_mhz = 50 * 1000;
    sampling.settings.duration_ns = 1600 * UPROF_NS_PER_MS;
    sampling.settings.budget_ppm = 100 * 1000; /* the holds take 40 % */
    sampling.guest->hook = slow_vcpu_1;
    memory_guest_rule(sampling.guest, MEMORY_READ_REGS, 1, G_MAXINT, UPROF_BUSY);
    sampling_run(&sampling, &result);
    if (was_delayed_at_first(2, 20 * UPROF_NS_PER_MS))
        return false;
    g_assert_cmpuint(count_all(&result), ==, 0);
    g_assert_cmpuint(result.counts.stride, >=, 3);
    g_assert_cmpuint(result.counts.n_holds, ==, seen.holds[0] + seen.holds[1]);
    g_assert_cmpuint(result.counts.most_held_ns, >=, seen.holds[1] * 8 * UPROF_NS_PER_MS);
    return true;
}

/* Repeats a run that a busy machine has spoiled. */
static void
test_with_retries(gconstpointer data)
{
    enum { TRIES_MAX = 20 };
    bool (*const *try)(void) = data;
    unsigned n = 1;

    for (; !(*try)(); n++)
        g_assert_cmpuint(n, <, TRIES_MAX);
}

/*
 * Scripts of answers, and the outcome of their ticks. The hook gives the answers in turn and ends
 * the run after the last one, so that the result does not depend on time.
 */
typedef enum { NOBODY, SOMEBODY } PausedBy;

typedef struct {
    UprofAnswer answer;
    unsigned times;     /* 0: end of the script */
    PausedBy paused_by; /* if the answer is BUSY */
} Step;

typedef struct {
    UprofAnswer answer; /* OK: samples; IDLE or SAME: one rest */
    unsigned count;     /* ticks; 0: end of the list */
} Outcome;

/* clang-format off */
static const struct {
    const char *name;
    Step steps[STEPS_MAX];
    Outcome outcomes[STEPS_MAX];
    unsigned busy, stuck;
} rests[] = {
    { "idle-to-the-end", { { UPROF_IDLE, 30 } }, { { UPROF_IDLE, 30 } }, 0, 0 },
    { "same-to-the-end", { { UPROF_SAME, 30 } }, { { UPROF_SAME, 30 } }, 0, 0 },
    { "runs-again", { { UPROF_IDLE, 10 }, { UPROF_OK, 5 }, { UPROF_IDLE, 7 }, { UPROF_OK, 1 } },
      { { UPROF_IDLE, 10 }, { UPROF_OK, 5 }, { UPROF_IDLE, 7 }, { UPROF_OK, 1 } }, 0, 0 },
    { "same-between", { { UPROF_OK, 3 }, { UPROF_SAME, 1 }, { UPROF_OK, 2 } },
      { { UPROF_OK, 3 }, { UPROF_SAME, 1 }, { UPROF_OK, 2 } }, 0, 0 },
    { "rest-of-another-kind", { { UPROF_IDLE, 4 }, { UPROF_SAME, 5 }, { UPROF_IDLE, 6 }, { UPROF_OK, 1 } },
      { { UPROF_IDLE, 4 }, { UPROF_SAME, 5 }, { UPROF_IDLE, 6 }, { UPROF_OK, 1 } }, 0, 0 },
    /* a short BUSY without a pause does not end a rest */
    { "busy-by-nobody", { { UPROF_IDLE, 4 }, { UPROF_BUSY, 3 }, { UPROF_IDLE, 5 }, { UPROF_OK, 1 } },
      { { UPROF_IDLE, 9 }, { UPROF_OK, 1 } }, 3, 0 },
    /* the vCPU did not rest: it was paused, which the poller found later */
    { "busy-by-somebody", { { UPROF_OK, 2 }, { UPROF_SAME, 4 }, { UPROF_BUSY, 3, SOMEBODY }, { UPROF_OK, 1 } },
      { { UPROF_OK, 3 } }, 7, 0 },
    { "busy-then-another-rest", { { UPROF_SAME, 4 }, { UPROF_BUSY, 3, SOMEBODY }, { UPROF_SAME, 5 } },
      { { UPROF_SAME, 5 } }, 7, 0 },
    /* a published rest is not corrected */
    { "busy-after-a-sample", { { UPROF_IDLE, 4 }, { UPROF_OK, 1 }, { UPROF_BUSY, 3, SOMEBODY } },
      { { UPROF_IDLE, 4 }, { UPROF_OK, 1 } }, 3, 0 },
    { "absent-between", { { UPROF_IDLE, 4 }, { UPROF_ABSENT, 3 }, { UPROF_IDLE, 5 }, { UPROF_OK, 1 } },
      { { UPROF_IDLE, 9 }, { UPROF_OK, 1 } }, 0, 0 },
    /* a vCPU that does not stop in time runs, which ends its rest */
    { "stuck-between", { { UPROF_IDLE, 4 }, { UPROF_STUCK, 3 }, { UPROF_IDLE, 5 }, { UPROF_OK, 1 } },
      { { UPROF_IDLE, 4 }, { UPROF_IDLE, 5 }, { UPROF_OK, 1 } }, 0, 3 },
    { "stuck-often", { { UPROF_OK, 1 }, { UPROF_STUCK, 40 }, { UPROF_OK, 2 } }, { { UPROF_OK, 3 } }, 0, 40 },
};
/* clang-format on */

typedef struct {
    const Step *steps;
    unsigned n; /* vets so far */
    UprofSampler *sampler;
} Script;

static const Step *
find_step(const Script *script, unsigned n, bool *is_last)
{
    unsigned i = 0;

    for (; n >= script->steps[i].times; i++)
        n -= script->steps[i].times;
    *is_last =
        n + 1 == script->steps[i].times && (i + 1 == STEPS_MAX || !script->steps[i + 1].times);
    return &script->steps[i];
}

static void
follow_script(MemoryGuest *guest, MemoryCall call, gint n)
{
    Script *script = guest->hook_data;
    bool is_last;

    if (call == MEMORY_VET) {
        const Step *step = find_step(script, script->n++, &is_last);
        const bool is_stuck = step->answer == UPROF_STUCK; /* STUCK is an answer of the hold */
        g_atomic_int_set(&guest->vets[guest->vcpu], is_stuck ? UPROF_OK : step->answer);
        g_atomic_int_set(&guest->stops[guest->vcpu], is_stuck ? UPROF_STUCK : UPROF_OK);
        g_atomic_int_set(&guest->base.hindrance, step->paused_by == SOMEBODY
                                                     ? UPROF_HINDRANCE_PAUSED
                                                     : UPROF_HINDRANCE_NONE);
        if (is_last)
            uprof_sampler_stop(script->sampler);
    }
    count_calls(guest, call, n);
}

static void
run_script(Sampling *sampling, const Step *steps, SamplingResult *result)
{
    Script script = { .steps = steps };

    sampling->settings.duration_ns = 0;
    sampling->guest->hook = follow_script;
    sampling->guest->hook_data = &script;
    g_autoptr(UprofRing) ring = uprof_ring_new(sampling->n_slots, NULL);
    g_autoptr(UprofSampler) sampler =
        uprof_sampler_new(&sampling->guest->base, &sampling->settings, ring);
    g_autoptr(UprofLoop) loop = uprof_loop_new(NULL);
    script.sampler = sampler;
    uprof_loop_add(loop, sampler);
    sampling_end(sampling, loop, sampler, ring, result);
}

/* Consecutive samples are one outcome. The snapshots in @result are in order of time. */
static unsigned
find_outcomes(const SamplingResult *result, Outcome *outcomes, unsigned max)
{
    unsigned n = 0;

    for (guint i = 0; i < result->snapshots->len; i++) {
        const UprofSnapshot *snapshot = sampling_at(result, i);
        const UprofAnswer answer =
            !snapshot->same ? UPROF_OK : (snapshot->idle ? UPROF_IDLE : UPROF_SAME);
        if (answer == UPROF_OK && n > 0 && outcomes[n - 1].answer == UPROF_OK) {
            outcomes[n - 1].count++;
            continue;
        }
        g_assert_cmpuint(n, <, max);
        outcomes[n++] = (Outcome){ answer, snapshot->count };
    }
    return n;
}

/*
 * The time of a rest is the time of its first tick, which is before the vet of its second tick.
 * The sample after the rest is not earlier than its own vet. So rest and sample are at least as
 * far apart as these two vets. Only for runs in which each vet became a sample.
 */
static void
check_rest_times(const SamplingResult *result)
{
    uint64_t vet = 0;

    for (guint i = 0; i + 1 < result->snapshots->len; i++) {
        const UprofSnapshot *rest = sampling_at(result, i), *next = sampling_at(result, i + 1);
        const uint64_t first = vet;
        vet += rest->count;
        if (!rest->same || next->same || rest->count < 2)
            continue;
        g_assert_cmpuint(next->time_ns - rest->time_ns, >=,
                         seen.vet_ns[vet] - seen.vet_ns[first + 1]);
    }
}

static void
test_rest(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_auto(Sampling) sampling;
    g_auto(SamplingResult) result;
    Outcome outcomes[STEPS_MAX];
    unsigned expected = 0;
    uint64_t last_ns = 0;

    init_sampling(&sampling, 2);
    sampling.wanted[0] = false;
    sampling.settings.rate_mhz = 1000 * 1000;
    g_atomic_int_set(&sampling.guest->base.resets, 3);
    run_script(&sampling, rests[i].steps, &result);

    g_assert_cmpint(result.counts.end, ==, UPROF_SAMPLER_STOPPED);
    g_assert_cmpuint(result.counts.busy, ==, rests[i].busy);
    g_assert_cmpuint(result.counts.stuck, ==, rests[i].stuck);
    g_assert_cmpuint(result.counts.skipped, ==, 0);
    check_each_tick_counted(&result);
    if (count_all(&result) == seen.vets[1])
        check_rest_times(&result);
    const unsigned n = find_outcomes(&result, outcomes, STEPS_MAX);
    for (; expected < STEPS_MAX && rests[i].outcomes[expected].count > 0; expected++) {
        g_assert_cmpuint(expected, <, n);
        g_assert_cmpint(outcomes[expected].answer, ==, rests[i].outcomes[expected].answer);
        g_assert_cmpuint(outcomes[expected].count, ==, rests[i].outcomes[expected].count);
    }
    g_assert_cmpuint(expected, ==, n);
    for (guint j = 0; j < result.snapshots->len; j++) {
        const UprofSnapshot *snapshot = sampling_at(&result, j);
        g_assert_cmpuint(snapshot->vcpu, ==, 1);
        g_assert_cmpuint(snapshot->weight, ==, 1);
        g_assert_cmpuint(snapshot->grain, ==, UPROF_GRAIN_VCPU);
        g_assert_cmpuint(snapshot->reset, ==, 3);
        g_assert_true(snapshot->owner == &sampling);
        g_assert_cmpuint(snapshot->time_ns, >=, last_ns); /* for a rest: of its first tick */
        last_ns = snapshot->time_ns;
        if (!snapshot->same)
            continue;
        g_assert_cmpuint(snapshot->n_windows, ==, 0);
        g_assert_cmpuint(snapshot->hold_ns + snapshot->stopped_ns, ==, 0);
    }
}

/* A long rest is published in parts, so that consumers do not wait for its end. */
static void
test_long_rest(void)
{
    g_auto(Sampling) sampling;
    g_auto(SamplingResult) result;
    uint64_t last_ns = 0;

    init_sampling(&sampling, 1);
    sampling.settings.rate_mhz = 100 * 1000;
    sampling.settings.duration_ns = 3500 * UPROF_NS_PER_MS;
    g_atomic_int_set(&sampling.guest->vets[0], UPROF_IDLE);
    sampling_run(&sampling, &result);
    g_assert_cmpuint(result.snapshots->len, ==, 2);
    g_assert_cmpuint(count_samples(&result, 0), ==, seen.vets[0]);
    g_assert_cmpuint(seen.holds[0], ==, 0);
    for (guint i = 0; i < 2; i++) {
        g_assert_true(sampling_at(&result, i)->same && sampling_at(&result, i)->idle);
        g_assert_cmpuint(sampling_at(&result, i)->time_ns - last_ns, <,
                         2600 * UPROF_NS_PER_MS + 100 * UPROF_NS_PER_MS * result.counts.late);
        last_ns = sampling_at(&result, i)->time_ns;
    }
    /* a part is longer than the period of the poller, which may report a pause */
    g_assert_cmpuint(last_ns, >, 2 * UPROF_NS_PER_S);
}

/* vCPU 1 rests and runs in turns. */
static void
alternate_vcpu_1(MemoryGuest *guest, MemoryCall call, gint n)
{
    static const UprofAnswer answers[] = { UPROF_IDLE, UPROF_IDLE, UPROF_OK, UPROF_SAME };

    if (call == MEMORY_VET && guest->vcpu == 1)
        g_atomic_int_set(&guest->vets[1], answers[seen.vets[1] / 3 % G_N_ELEMENTS(answers)]);
    count_calls(guest, call, n);
}

/* If the ring is full, each lost tick is counted. */
static void
test_full_ring(void)
{
    g_auto(Sampling) sampling;
    g_auto(SamplingResult) result;

    init_sampling(&sampling, 2);
    sampling.guest->hook = alternate_vcpu_1;
    sampling.n_slots = 3;
    sampling.nobody_drains = true;
    sampling_run(&sampling, &result);
    g_assert_cmpuint(result.snapshots->len, ==, 3);
    g_assert_cmpuint(result.counts.skipped, >, 0);
    g_assert_cmpuint(seen.holds[0] + seen.holds[1], <=, 3);
    check_each_tick_counted(&result);
    sampling_check_ticks(&sampling, &result, 2, count_all(&result));
}

/* A late consumer still gets rests, which were published late because the ring was full. */
static void
test_late_consumer(void)
{
    g_auto(Sampling) sampling;
    g_auto(SamplingResult) result;

    init_sampling(&sampling, 2);
    sampling.settings.duration_ns = 0;
    g_atomic_int_set(&sampling.guest->vets[1], UPROF_IDLE);
    g_autoptr(UprofRing) ring = uprof_ring_new(1, NULL);
    g_autoptr(UprofSampler) sampler =
        uprof_sampler_new(&sampling.guest->base, &sampling.settings, ring);
    g_autoptr(UprofLoop) loop = uprof_loop_new(NULL);
    uprof_loop_add(loop, sampler);
    do {
        g_usleep(1000);
        uprof_sampler_counts(sampler, &result.counts);
    } while (result.counts.skipped < 4 && result.counts.elapsed_ns < 30 * UPROF_NS_PER_S);
    uprof_sampler_stop(sampler);
    sampling_end(&sampling, loop, sampler, ring, &result);
    check_each_tick_counted(&result);
    g_assert_cmpuint(seen.vets[1], >, 1);
    g_assert_cmpuint(result.counts.skipped, >, 0);
    if (count_samples(&result, 1) == 0) {
        g_test_skip("this machine is too busy: the sampler waited 0.1 s for free slots at its end");
        return;
    }
    g_assert_cmpuint(count_samples(&result, 1), ==, seen.vets[1]);
}

/* If a vCPU does not stop in time for a second, sampling ends without an error. */
static void
test_stuck(void)
{
    g_auto(Sampling) sampling;
    g_auto(SamplingResult) result;

    init_sampling(&sampling, 2);
    sampling.settings.rate_mhz = 100 * 1000;
    sampling.settings.duration_ns = 20 * UPROF_NS_PER_S;
    g_atomic_int_set(&sampling.guest->stops[1], UPROF_STUCK);
    sampling_run(&sampling, &result);
    g_assert_cmpint(result.counts.end, ==, UPROF_SAMPLER_STUCK);
    g_assert_cmpuint(result.counts.elapsed_ns, >=, UPROF_NS_PER_S);
    g_assert_cmpuint(result.counts.elapsed_ns, <, 10 * UPROF_NS_PER_S);
    g_assert_cmpuint(result.counts.stuck, >=, 5);
    g_assert_cmpuint(result.counts.stuck, ==, seen.vets[1]);
    g_assert_cmpuint(count_samples(&result, 0), ==,
                     seen.vets[0]); /* failed holds returned their slots */
    g_assert_cmpuint(result.counts.busy + result.counts.skipped, ==, 0);
    g_assert_false(sampling.guest->base.left_held);
}

/* At a low rate a few timeouts in a row last longer than a second, but do not end sampling. */
static void
test_stuck_few(void)
{
    static const Step steps[STEPS_MAX] = { { UPROF_STUCK, 4 } };
    g_auto(Sampling) sampling;
    g_auto(SamplingResult) result;

    init_sampling(&sampling, 1);
    sampling.settings.rate_mhz = 2 * 1000;
    run_script(&sampling, steps, &result);
    g_assert_cmpuint(seen.vet_ns[3] - seen.vet_ns[0], >, UPROF_NS_PER_S);
    g_assert_cmpint(result.counts.end, ==, UPROF_SAMPLER_STOPPED);
    g_assert_cmpuint(result.counts.stuck, ==, 4);
}

static void
stick_mostly(MemoryGuest *guest, MemoryCall call, gint n)
{
    if (call == MEMORY_HOLD)
        g_atomic_int_set(&guest->stops[guest->vcpu],
                         seen.holds[0] % 8 < 7 ? UPROF_STUCK : UPROF_OK);
    count_calls(guest, call, n);
}

static void
test_stuck_now_and_then(void)
{
    g_auto(Sampling) sampling;
    g_auto(SamplingResult) result;

    init_sampling(&sampling, 1);
    sampling.settings.rate_mhz = 100 * 1000;
    sampling.settings.duration_ns = 1500 * UPROF_NS_PER_MS;
    sampling.guest->hook = stick_mostly;
    sampling_run(&sampling, &result);
    g_assert_cmpint(result.counts.end, ==, UPROF_SAMPLER_DURATION);
    g_assert_cmpuint(result.counts.stuck, ==, seen.holds[0] - seen.holds[0] / 8);
    g_assert_cmpuint(result.snapshots->len, ==, seen.holds[0] / 8);
    check_each_tick_counted(&result);
}

/* clang-format off */
static const struct {
    const char *name;
    MemoryRule rule;
    UprofSamplerEnd end;
    const char *error; /* NULL: none */
    unsigned busy;
} answers[] = {
    { "hold-fails",         { MEMORY_HOLD, 20, FOREVER, UPROF_FAILED },    UPROF_SAMPLER_ERROR, "scripted failure of hold", 5 },
    { "hold-fails-a-while", { MEMORY_HOLD, 20, 23, UPROF_FAILED },          UPROF_SAMPLER_DURATION, NULL, 4 },
    { "hold-busy",          { MEMORY_HOLD, 20, 26, UPROF_BUSY },            UPROF_SAMPLER_DURATION, NULL, 7 },
    { "release-gone",       { MEMORY_RELEASE, 20, FOREVER, UPROF_GONE },   UPROF_SAMPLER_GONE, NULL, 0 },
    { "hold-gone",          { MEMORY_HOLD, 20, FOREVER, UPROF_GONE },      UPROF_SAMPLER_GONE, NULL, 0 },
    { "registers-fail",     { MEMORY_READ_REGS, 20, FOREVER, UPROF_FAILED }, UPROF_SAMPLER_ERROR, "scripted failure of read_regs", 5 },
    { "vet-fails",          { MEMORY_VET, 20, FOREVER, UPROF_FAILED },     UPROF_SAMPLER_ERROR, "scripted failure of vet", 5 },
};
/* clang-format on */

/* A failed hold of a single vCPU does not set left_held. */
static void
test_answer(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    const MemoryRule *rule = &answers[i].rule;
    g_auto(Sampling) sampling;
    g_auto(SamplingResult) result;

    init_sampling(&sampling, 2);
    memory_guest_rule(sampling.guest, rule->call, rule->first, rule->last, rule->answer);
    sampling_run_early(&sampling, &result);
    g_assert_cmpint(result.counts.end, ==, answers[i].end);
    g_assert_cmpuint(result.counts.busy, ==, answers[i].busy);
    g_assert_false(sampling.guest->base.left_held);
    g_assert_cmpuint(result.snapshots->len, >=, 18);
    if (answers[i].error)
        g_assert_cmpstr(result.error->message, ==, answers[i].error);
    else
        g_assert_no_error(result.error);
}

/* Only failures in a row end sampling. */
static void
test_failures_between(void)
{
    g_auto(Sampling) sampling;
    g_auto(SamplingResult) result;

    init_sampling(&sampling, 2);
    for (gint first = 10; first < 35; first += 5)
        memory_guest_rule(sampling.guest, MEMORY_HOLD, first, first + 3, UPROF_FAILED);
    sampling_run_early(&sampling, &result);
    g_assert_cmpint(result.counts.end, ==, UPROF_SAMPLER_DURATION);
    g_assert_cmpuint(result.counts.busy, ==, 5 * 4);
    check_each_tick_counted(&result);
}

static void
test_limit(void)
{
    g_auto(Sampling) sampling;
    g_auto(SamplingResult) result;

    init_sampling(&sampling, 2);
    sampling.settings.duration_ns = 0;
    g_autoptr(UprofRing) ring = uprof_ring_new(sampling.n_slots, NULL);
    g_autoptr(UprofSampler) sampler =
        uprof_sampler_new(&sampling.guest->base, &sampling.settings, ring);
    g_autoptr(UprofLoop) loop = uprof_loop_new(NULL);
    uprof_sampler_limit(sampler, 200 * UPROF_NS_PER_MS);
    uprof_loop_add(loop, sampler);
    sampling_end(&sampling, loop, sampler, ring, &result);
    g_assert_cmpint(result.counts.end, ==, UPROF_SAMPLER_DURATION);
    sampling.settings.duration_ns = 200 * UPROF_NS_PER_MS;
    sampling_check_ticks(&sampling, &result, 2, count_all(&result));
}

/* clang-format off */
static const struct {
    const char *name;
    UprofAnswer vets[SAMPLING_VCPUS_MAX], stops[SAMPLING_VCPUS_MAX]; /* vCPU 2 is not sampled */
    UprofAnswer answer;
    const char *taken; /* digits of the sampled vCPUs */
    unsigned holds;
} single_samples[] = {
    { "plain",         { 0 }, { 0 }, UPROF_OK, "013", 3 },
    { "in-rest",       { UPROF_IDLE, UPROF_SAME, UPROF_IDLE, UPROF_IDLE }, { 0 }, UPROF_OK, "013", 3 },
    { "one-absent",    { UPROF_ABSENT }, { 0 }, UPROF_OK, "13", 2 },
    { "all-absent",    { UPROF_ABSENT, UPROF_ABSENT, UPROF_ABSENT, UPROF_ABSENT }, { 0 }, UPROF_OK, "", 0 },
    { "one-stuck",     { 0 }, { UPROF_OK, UPROF_STUCK }, UPROF_OK, "03", 3 },
    { "all-stuck",     { 0 }, { UPROF_STUCK, UPROF_STUCK, UPROF_STUCK, UPROF_STUCK }, UPROF_STUCK, "", 3 },
    { "busy",          { UPROF_BUSY, UPROF_BUSY, UPROF_BUSY, UPROF_BUSY }, { 0 }, UPROF_BUSY, "", 0 },
    { "gone",          { UPROF_GONE }, { 0 }, UPROF_GONE, "", 0 },
    { "gone-after-first", { UPROF_OK, UPROF_GONE }, { 0 }, UPROF_OK, "0", 1 },
};
/* clang-format on */

static void
test_sample_once(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_auto(Sampling) sampling;
    g_autofree UprofSnapshot *pool = g_new0(UprofSnapshot, SAMPLING_VCPUS_MAX);
    UprofSnapshot *slots[SAMPLING_VCPUS_MAX];
    g_autoptr(GError) error = NULL;
    unsigned n = 99;

    init_sampling(&sampling, SAMPLING_VCPUS_MAX);
    sampling.wanted[2] = false;
    for (unsigned vcpu = 0; vcpu < SAMPLING_VCPUS_MAX; vcpu++) {
        slots[vcpu] = &pool[vcpu];
        g_atomic_int_set(&sampling.guest->vets[vcpu], single_samples[i].vets[vcpu]);
        g_atomic_int_set(&sampling.guest->stops[vcpu], single_samples[i].stops[vcpu]);
    }
    g_autoptr(UprofSampler) sampler =
        uprof_sampler_new(&sampling.guest->base, &sampling.settings, NULL);
    g_assert_cmpint(uprof_sampler_sample_once(sampler, slots, &n, &error), ==,
                    single_samples[i].answer);
    g_assert_no_error(error);
    g_assert_cmpuint(n, ==, strlen(single_samples[i].taken));
    for (unsigned j = 0; j < n; j++) {
        g_assert_cmpuint(pool[j].vcpu, ==, single_samples[i].taken[j] - '0');
        g_assert_cmphex(pool[j].windows[0].gva, ==, SAMPLING_STACK + 0x100 * pool[j].vcpu - 256);
        g_assert_false(pool[j].same);
    }
    g_assert_cmpuint(seen.holds[0] + seen.holds[1] + seen.holds[3], ==, single_samples[i].holds);
    g_assert_cmpuint(seen.holds[2], ==, 0);
}

static void
test_sample_once_fails(void)
{
    g_auto(Sampling) sampling;
    g_autofree UprofSnapshot *pool = g_new0(UprofSnapshot, 3);
    UprofSnapshot *slots[] = { &pool[0], &pool[1], &pool[2] };
    g_autoptr(GError) error = NULL;
    unsigned n;

    init_sampling(&sampling, 3);
    memory_guest_rule(sampling.guest, MEMORY_HOLD, 2, 2, UPROF_FAILED);
    g_autoptr(UprofSampler) sampler =
        uprof_sampler_new(&sampling.guest->base, &sampling.settings, NULL);
    g_assert_cmpint(uprof_sampler_sample_once(sampler, slots, &n, &error), ==, UPROF_FAILED);
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_FAILED);
    g_assert_cmpuint(seen.holds[2], ==, 0);
}

int
main(int argc, char **argv)
{
    static bool (*const budget)(void) = try_budget;
    static bool (*const unreadable_holds)(void) = try_unreadable_holds;

    g_test_init(&argc, &argv, NULL);

    g_test_add_func("/tickers/plain", test_plain);
    g_test_add_func("/tickers/spread", test_spread);
    g_test_add_func("/tickers/only-wanted", test_only_wanted);
    g_test_add_func("/tickers/absent", test_absent);
    g_test_add_func("/tickers/trial-holds", test_trial_holds);
    g_test_add_func("/tickers/known-hold", test_known_hold);
    g_test_add_func("/tickers/continues-run", test_continues_run);
    g_test_add_data_func("/tickers/budget", &budget, test_with_retries);
    g_test_add_func("/tickers/lost-time", test_lost_time);
    g_test_add_data_func("/tickers/unreadable-holds", &unreadable_holds, test_with_retries);
    for (size_t i = 0; i < G_N_ELEMENTS(rests); i++) {
        g_autofree char *path = g_strdup_printf("/tickers/rest/%s", rests[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_rest);
    }
    g_test_add_func("/tickers/long-rest", test_long_rest);
    g_test_add_func("/tickers/full-ring", test_full_ring);
    g_test_add_func("/tickers/late-consumer", test_late_consumer);
    g_test_add_func("/tickers/stuck", test_stuck);
    g_test_add_func("/tickers/stuck-few-times", test_stuck_few);
    g_test_add_func("/tickers/stuck-now-and-then", test_stuck_now_and_then);
    for (size_t i = 0; i < G_N_ELEMENTS(answers); i++) {
        g_autofree char *path = g_strdup_printf("/tickers/answer/%s", answers[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_answer);
    }
    g_test_add_func("/tickers/failures-between", test_failures_between);
    g_test_add_func("/tickers/limit", test_limit);
    for (size_t i = 0; i < G_N_ELEMENTS(single_samples); i++) {
        g_autofree char *path = g_strdup_printf("/tickers/sample-once/%s", single_samples[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_sample_once);
    }
    g_test_add_func("/tickers/sample-once-fails", test_sample_once_fails);
    return g_test_run();
}
