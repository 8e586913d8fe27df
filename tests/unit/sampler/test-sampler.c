/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../../src/sampler/sampler-priv.h"
#include "alloc-watch.h"
#include "sampling.h"
#include "uprof/clock.h"

enum { FOREVER = G_MAXINT };

static bool
is_in_hold(void)
{
    return memory_guest_in_hold;
}

static void
test_plain(gconstpointer data)
{
    const UprofGrain grain = GPOINTER_TO_INT(data);
    g_auto(Sampling) sampling;
    g_auto(SamplingResult) result;
    uint64_t last_ns = 0, last_hold = 0;

    sampling_init(&sampling, 2, grain);
    sampling_run(&sampling, &result);
    g_assert_no_error(result.error);
    g_assert_cmpint(result.counts.end, ==, UPROF_SAMPLER_DURATION);
    g_assert_cmpuint(result.counts.busy + result.counts.skipped, ==, 0);
    g_assert_cmpuint(result.counts.divisor, ==, 1);
    g_assert_cmpuint(result.counts.elapsed_ns, >=, sampling.settings.duration_ns);
    g_assert_cmpuint(result.snapshots->len, >, 0);
    g_assert_cmpuint(result.snapshots->len % 2, ==, 0);
    sampling_check_ticks(&sampling, &result, 1, result.snapshots->len / 2);
    if (grain != UPROF_GRAIN_NONE)
        g_assert_cmpint(sampling.guest->tally->holds, ==,
                        (gint)result.snapshots->len / 2 + UPROF_SAMPLER_PROBES);
    for (guint i = 0; i < result.snapshots->len; i++) {
        const UprofSnapshot *snapshot = sampling_at(&result, i);
        g_assert_cmpuint(snapshot->vcpu, ==, i % 2);
        g_assert_cmpuint(snapshot->hold, ==, i / 2);
        g_assert_cmpuint(snapshot->time_ns, >=, last_ns);
        g_assert_cmpuint(snapshot->weight, ==, 1);
        g_assert_cmpuint(snapshot->grain, ==, grain);
        g_assert_false(snapshot->stale || snapshot->idle);
        g_assert_cmpuint(snapshot->hold_ns, >=, snapshot->stopped_ns);
        g_assert_cmpint(snapshot->hold_ns > 0, ==, grain != UPROF_GRAIN_NONE);
        g_assert_cmpuint(snapshot->n_windows, ==, 1);
        g_assert_cmphex(snapshot->windows[0].gva, ==,
                        SAMPLING_STACK + 0x100 * snapshot->vcpu - 256);
        g_assert_cmpuint(snapshot->windows[0].len, ==, UPROF_WINDOW_BYTES_FIRST);
        last_ns = snapshot->time_ns;
        last_hold = snapshot->hold;
    }
    g_assert_cmpuint(last_hold, ==, result.snapshots->len / 2 - 1);
}

/* clang-format off */
static const struct {
    const char *name;
    MemoryRule rule;
    UprofSamplerEnd end;
    const char *error; /* NULL: none */
    uint64_t busy_min;
    bool samples;      /* there are snapshots */
    bool left_held;
} answers[] = {
    { "busy-for-a-while",    { MEMORY_VET, 20, 24, UPROF_BUSY },               UPROF_SAMPLER_DURATION, NULL, 5, true, false },
    { "busy-when-held",      { MEMORY_HOLD, 20, 24, UPROF_BUSY },              UPROF_SAMPLER_DURATION, NULL, 5, true, false },
    { "busy-registers",      { MEMORY_READ_REGS, 20, 20, UPROF_BUSY },         UPROF_SAMPLER_DURATION, NULL, 1, true, false },
    { "busy-forever",       { MEMORY_VET, 1, FOREVER, UPROF_BUSY },          UPROF_SAMPLER_DURATION, NULL, 5, false, false },
    { "gone",                { MEMORY_VET, 20, FOREVER, UPROF_GONE },         UPROF_SAMPLER_GONE,     NULL, 0, true, false },
    { "gone-at-once",        { MEMORY_VET, 1, FOREVER, UPROF_GONE },          UPROF_SAMPLER_GONE,     NULL, 0, false, false },
    { "gone-when-held",      { MEMORY_HOLD, 20, FOREVER, UPROF_GONE },        UPROF_SAMPLER_GONE,     NULL, 0, true, false },
    { "gone-in-the-hold",    { MEMORY_READ_REGS, 20, FOREVER, UPROF_GONE },   UPROF_SAMPLER_GONE,     NULL, 0, true, false },
    { "gone-when-released",  { MEMORY_RELEASE, 20, FOREVER, UPROF_GONE },     UPROF_SAMPLER_GONE,     NULL, 0, true, false },
    { "four-failures",       { MEMORY_READ_REGS, 20, 23, UPROF_FAILED },       UPROF_SAMPLER_DURATION, NULL, 4, true, false },
    { "hold-fails",          { MEMORY_HOLD, 20, FOREVER, UPROF_FAILED },      UPROF_SAMPLER_ERROR, "scripted failure of hold", 1, true, true },
    { "vet-fails",           { MEMORY_VET, 20, FOREVER, UPROF_FAILED },       UPROF_SAMPLER_ERROR, "scripted failure of vet", 5, true, false },
    { "registers-fail",      { MEMORY_READ_REGS, 20, FOREVER, UPROF_FAILED }, UPROF_SAMPLER_ERROR, "scripted failure of read_regs", 5, true, false },
    { "fails-from-the-start", { MEMORY_HOLD, 1, FOREVER, UPROF_FAILED },      UPROF_SAMPLER_ERROR, "scripted failure of hold", 0, false, true },
    { "release-fails",       { MEMORY_RELEASE, 20, 20, UPROF_FAILED },         UPROF_SAMPLER_ERROR, "scripted failure of release", 1, true, true },
    { "release-fails-early", { MEMORY_RELEASE, 1, 1, UPROF_FAILED },           UPROF_SAMPLER_ERROR, "scripted failure of release", 0, false, true },
    { "release-fails-late",  { MEMORY_RELEASE, UPROF_SAMPLER_PROBES, UPROF_SAMPLER_PROBES, UPROF_FAILED }, UPROF_SAMPLER_ERROR, "scripted failure of release", 0, false, true },
};
/* clang-format on */

static void
test_answer(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    const MemoryRule *rule = &answers[i].rule;
    g_auto(Sampling) sampling;
    g_auto(SamplingResult) result;

    sampling_init(&sampling, 1, UPROF_GRAIN_GUEST);
    memory_guest_rule(sampling.guest, rule->call, rule->first, rule->last, rule->answer);
    sampling_run_early(&sampling, &result);
    g_assert_cmpint(result.counts.end, ==, answers[i].end);
    g_assert_cmpuint(result.counts.busy, >=, answers[i].busy_min);
    g_assert_cmpint(result.snapshots->len > 0, ==, answers[i].samples);
    g_assert_cmpint(sampling.guest->base.left_held, ==, answers[i].left_held);
    if (answers[i].error) {
        g_assert_error(result.error, UPROF_ERROR, UPROF_ERROR_FAILED);
        g_assert_cmpstr(result.error->message, ==, answers[i].error);
    } else {
        g_assert_no_error(result.error);
    }
    /* a guest that may still be stopped is not stopped again */
    if (answers[i].left_held)
        g_assert_cmpint(sampling.guest->tally->releases, ==,
                        rule->first - (rule->call == MEMORY_HOLD));
}

/* For each kind of call and each n, the n-th call fails: the guest runs, or left_held is set. */
static void
test_every_call_fails(void)
{
    for (MemoryCall call = MEMORY_VET; call <= MEMORY_READ_REGS; call++) {
        for (gint n = 1; n <= 12; n++) {
            g_auto(Sampling) sampling;
            g_auto(SamplingResult) result;
            sampling_init(&sampling, 2, UPROF_GRAIN_GUEST);
            sampling.settings.duration_ns = 15 * UPROF_NS_PER_MS;
            sampling.settings.rate_mhz = 1000 * 1000;
            memory_guest_rule(sampling.guest, call, n, n, UPROF_FAILED);
            sampling_run(&sampling, &result);
            g_assert_cmpint(sampling.guest->base.left_held, ==,
                            (call == MEMORY_HOLD || call == MEMORY_RELEASE) &&
                                sampling.guest->tally->calls[call] >= n);
        }
    }
}

static void
set_hold_after(MemoryGuest *guest, MemoryCall call, gint n)
{
    if (call == MEMORY_HOLD && n == UPROF_SAMPLER_PROBES + 1)
        guest->hold_ns = *(const uint64_t *)guest->hook_data;
}

static void
test_budget(void)
{
    g_auto(Sampling) sampling;
    g_auto(SamplingResult) result;

    sampling_init(&sampling, 1, UPROF_GRAIN_GUEST);
    sampling.guest->hold_ns =
        5 * UPROF_NS_PER_MS; /* one interval: holds would take 100 % of the time */
    sampling.settings.budget_ppm = 100 * 1000;
    sampling_run(&sampling, &result);
    g_assert_cmpuint(result.counts.probe_ns, >=, sampling.guest->hold_ns);
    g_assert_cmpuint(result.counts.divisor, >=, 10);
    g_assert_cmpuint(result.snapshots->len, >, 0);
    g_assert_cmpuint(result.snapshots->len, <=,
                     SAMPLING_RUN_MS * SAMPLING_RATE_MHZ / 1000 / 1000 / 10 + 1);
    sampling_check_ticks(&sampling, &result, 1, result.snapshots->len);
}

/* If holds become longer after the trial holds, each later sample counts for more ticks. */
static void
test_budget_in_mid_run(void)
{
    static const uint64_t slow_ns = 5 * UPROF_NS_PER_MS;
    g_auto(Sampling) sampling;
    g_auto(SamplingResult) result;
    uint64_t last_weight = 1;

    sampling_init(&sampling, 1, UPROF_GRAIN_GUEST);
    sampling.settings.budget_ppm = 200 * 1000;
    sampling.settings.duration_ns = UPROF_NS_PER_S;
    sampling.guest->hook = set_hold_after;
    sampling.guest->hook_data = (gpointer)&slow_ns;
    sampling_run(&sampling, &result);
    g_assert_cmpuint(result.counts.divisor, ==, 1);
    g_assert_cmpuint(result.counts.stride, >=, 3);
    for (guint i = 0; i < result.snapshots->len; i++) {
        const UprofSnapshot *snapshot = sampling_at(&result, i);
        if (i < 16)
            g_assert_cmpuint(snapshot->weight, ==, 1);
        last_weight = snapshot->weight;
    }
    g_assert_cmpuint(last_weight, >, 1);
}

static void
sleep_once(MemoryGuest *guest, MemoryCall call, gint n)
{
    if (call == MEMORY_VET && n == 10)
        g_usleep(100 * 1000);
}

static void
test_late(void)
{
    g_auto(Sampling) sampling;
    g_auto(SamplingResult) result;

    sampling_init(&sampling, 1, UPROF_GRAIN_GUEST);
    sampling.guest->hook = sleep_once;
    sampling_run(&sampling, &result);
    /* ticks of 5 ms that were missed in 100 ms are not made up for */
    g_assert_cmpuint(result.counts.late, >=, 18);
    sampling_check_ticks(&sampling, &result, 1, result.snapshots->len);
}

static void
test_skipped(void)
{
    g_auto(Sampling) sampling;
    g_auto(SamplingResult) result;

    sampling_init(&sampling, 1, UPROF_GRAIN_GUEST);
    sampling.n_slots = 16;
    sampling.nobody_drains = true;
    sampling_run_early(&sampling, &result);
    g_assert_cmpuint(result.counts.skipped, >, 0);
    /* a tick without a free slot does not hold the guest */
    g_assert_cmpint(sampling.guest->tally->holds, ==,
                    (gint)result.snapshots->len + UPROF_SAMPLER_PROBES);
    sampling_check_ticks(&sampling, &result, 1, result.snapshots->len);
}

static void
wait_for_end(UprofSampler *sampler)
{
    UprofSamplerCounts counts;

    do {
        g_usleep(1000);
        uprof_sampler_counts(sampler, &counts);
    } while (counts.end == UPROF_SAMPLER_RUNNING);
}

static void
test_stop(void)
{
    g_auto(Sampling) sampling;
    UprofSamplerCounts counts;

    sampling_init(&sampling, 1, UPROF_GRAIN_GUEST);
    sampling.settings.duration_ns = 0;
    g_autoptr(UprofRing) ring = uprof_ring_new(sampling.n_slots, NULL);
    g_autoptr(UprofSampler) sampler =
        uprof_sampler_new(&sampling.guest->base, &sampling.settings, ring);
    g_autoptr(UprofLoop) loop = uprof_loop_new(NULL);
    uprof_loop_add(loop, sampler);
    g_usleep(100 * 1000);
    uprof_sampler_counts(sampler, &counts);
    g_assert_cmpint(counts.end, ==, UPROF_SAMPLER_RUNNING);
    const uint64_t asked_ns = uprof_clock_now_ns();
    uprof_sampler_stop(sampler);
    wait_for_end(sampler);
    g_assert_cmpuint(uprof_clock_now_ns() - asked_ns, <, 10 * UPROF_NS_PER_S);
    uprof_sampler_counts(sampler, &counts);
    g_assert_cmpint(counts.end, ==, UPROF_SAMPLER_STOPPED);
}

/* A sampler with a long interval still notices a stop soon. */
static void
test_stop_slow_rate(void)
{
    g_auto(Sampling) sampling;

    sampling_init(&sampling, 1, UPROF_GRAIN_GUEST);
    sampling.settings.duration_ns = 0;
    sampling.settings.rate_mhz = 10;
    g_autoptr(UprofRing) ring = uprof_ring_new(sampling.n_slots, NULL);
    g_autoptr(UprofSampler) sampler =
        uprof_sampler_new(&sampling.guest->base, &sampling.settings, ring);
    g_autoptr(UprofLoop) loop = uprof_loop_new(NULL);
    uprof_loop_add(loop, sampler);
    g_usleep(50 * 1000);
    const uint64_t asked_ns = uprof_clock_now_ns();
    uprof_sampler_stop(sampler);
    wait_for_end(sampler);
    g_assert_cmpuint(uprof_clock_now_ns() - asked_ns, <, 10 * UPROF_NS_PER_S);
}

static void
test_park(void)
{
    g_auto(Sampling) sampling;

    sampling_init(&sampling, 1, UPROF_GRAIN_GUEST);
    sampling.settings.duration_ns = 0;
    sampling.guest->hold_ns = UPROF_NS_PER_MS;
    g_autoptr(UprofRing) ring = uprof_ring_new(sampling.n_slots, NULL);
    g_autoptr(UprofSampler) sampler =
        uprof_sampler_new(&sampling.guest->base, &sampling.settings, ring);
    g_autoptr(UprofLoop) loop = uprof_loop_new(NULL);
    uprof_loop_add(loop, sampler);
    g_usleep(50 * 1000);
    for (unsigned i = 0; i < 5; i++) {
        uprof_sampler_park(sampler);
        g_assert_cmpint(g_atomic_int_get(&sampling.guest->tally->is_held), ==, 0);
        const gint holds = g_atomic_int_get(&sampling.guest->tally->holds);
        g_usleep(20 * 1000);
        g_assert_cmpint(g_atomic_int_get(&sampling.guest->tally->holds), ==, holds);
        uprof_sampler_unpark(sampler);
        g_usleep(10 * 1000);
    }
    uprof_sampler_stop(sampler);
    wait_for_end(sampler);
}

/* In every other sample, the stack pointer moves between the two reads of the registers. */
static void
move_sp(MemoryGuest *guest, MemoryCall call, gint n)
{
    if (call == MEMORY_READ_REGS && n % 4 == 2)
        guest->regs[0].sp += 16;
}

static void
test_torn(void)
{
    g_auto(Sampling) sampling;
    g_auto(SamplingResult) result;

    sampling_init(&sampling, 1, UPROF_GRAIN_NONE);
    sampling.guest->hook = move_sp;
    sampling_run_early(&sampling, &result);
    g_assert_cmpint(sampling.guest->tally->calls[MEMORY_HOLD], ==, 0);
    g_assert_cmpuint(result.snapshots->len, >, 10);
    for (guint i = 0; i < result.snapshots->len; i++) {
        const UprofSnapshot *snapshot = sampling_at(&result, i);
        /* trial holds have read registers, too */
        g_assert_cmpint(snapshot->stale, ==, (i + UPROF_SAMPLER_PROBES) % 2 == 0);
        g_assert_cmpuint(snapshot->n_windows, ==, snapshot->stale ? 0 : 1);
        g_assert_cmphex(snapshot->regs.pc, ==, 0x1000);
    }
}

static void
test_kinds_of_vcpus(gconstpointer data)
{
    const bool idle_stacks = GPOINTER_TO_INT(data);
    enum { PLAIN, ABSENT, HALTED, SMM };
    g_auto(Sampling) sampling;
    g_auto(SamplingResult) result;

    sampling_init(&sampling, SAMPLING_VCPUS_MAX, UPROF_GRAIN_GUEST);
    sampling.guest->is_absent[ABSENT] = true;
    sampling.guest->regs[HALTED].halted = true;
    sampling.guest->regs[SMM].smm = true;
    sampling.settings.idle_stacks = idle_stacks;
    sampling_run(&sampling, &result);
    g_assert_cmpuint(result.snapshots->len, >, 0);
    for (guint i = 0; i < result.snapshots->len; i++) {
        const UprofSnapshot *snapshot = sampling_at(&result, i);
        g_assert_cmpuint(snapshot->vcpu, !=, ABSENT);
        g_assert_cmpint(snapshot->idle, ==, snapshot->vcpu == HALTED);
        const bool has_stack = snapshot->vcpu == PLAIN || (idle_stacks && snapshot->vcpu == HALTED);
        g_assert_cmpuint(snapshot->n_windows, ==, has_stack);
    }
}

static void
test_only_wanted(void)
{
    g_auto(Sampling) sampling;
    g_auto(SamplingResult) result;

    sampling_init(&sampling, SAMPLING_VCPUS_MAX, UPROF_GRAIN_GUEST);
    sampling.wanted[0] = sampling.wanted[2] = false;
    sampling_run(&sampling, &result);
    g_assert_cmpuint(result.snapshots->len, >, 0);
    for (guint i = 0; i < result.snapshots->len; i++)
        g_assert_cmpuint(sampling_at(&result, i)->vcpu, ==, 1 + i % 2 * 2);
}

static void
read_regs_slowly(MemoryGuest *guest, MemoryCall call, gint n)
{
    if (call == MEMORY_READ_REGS)
        uprof_clock_sleep_until(uprof_clock_now_ns() + 3 * UPROF_NS_PER_MS);
}

static void
test_max_pause(void)
{
    g_auto(Sampling) sampling;
    g_auto(SamplingResult) result;

    sampling_init(&sampling, 2, UPROF_GRAIN_GUEST);
    sampling.guest->hook = read_regs_slowly;
    sampling.settings.max_pause_ns = UPROF_NS_PER_MS;
    sampling_run(&sampling, &result);
    g_assert_cmpuint(result.snapshots->len, >, 0);
    for (guint i = 0; i < result.snapshots->len; i++) {
        g_assert_cmpuint(sampling_at(&result, i)->n_windows, ==, 0);
        g_assert_cmphex(sampling_at(&result, i)->regs.pc, ==, 0x1000);
    }
}

/* The page tables change after each hold, so the windows of a guest with slow reads are stale. */
static void
change_tables(MemoryGuest *guest, MemoryCall call, gint n)
{
    if (call == MEMORY_RELEASE)
        memory_guest_put_u64(guest, 0x4000, n % 2 ? 0x9003 : 0xa003);
}

static void
test_stale_tables(void)
{
    const MemoryPlan plan = {
        .n_vcpus = 1, .grain = UPROF_GRAIN_GUEST, .ram_len = SAMPLING_RAM_LEN, .slow_reads = true
    };
    g_auto(Sampling) sampling;
    g_auto(SamplingResult) result;

    sampling_init(&sampling, 1, UPROF_GRAIN_GUEST);
    memory_guest_close(sampling.guest);
    sampling.guest = memory_guest_open(&plan);
    UprofRegs *regs = &sampling.guest->regs[0];
    memory_guest_identity(sampling.guest, 0, 0x1000, 0x800, 0x800);
    regs->sys[UPROF_X86_CR0] = UPROF_X86_CR0_PG;
    regs->sys[UPROF_X86_CR3] = 0x1000;
    regs->sys[UPROF_X86_CR4] = UPROF_X86_CR4_PAE;
    regs->sys[UPROF_X86_EFER] = UPROF_X86_EFER_LMA;
    for (unsigned level = 1; level < 4; level++)
        memory_guest_put_u64(sampling.guest, level * 0x1000, (level + 1) * 0x1000 + 3);
    sampling.guest->hook = change_tables;
    sampling_run(&sampling, &result);
    g_assert_cmpuint(result.snapshots->len, >, 0);
    for (guint i = 0; i < result.snapshots->len; i++) {
        g_assert_true(sampling_at(&result, i)->stale);
        g_assert_cmpuint(sampling_at(&result, i)->n_windows, ==, 0);
    }
}

static void
test_resets(void)
{
    g_auto(Sampling) sampling;
    g_auto(SamplingResult) result;

    sampling_init(&sampling, 1, UPROF_GRAIN_GUEST);
    g_atomic_int_set(&sampling.guest->base.resets, 7);
    sampling_run(&sampling, &result);
    g_assert_cmpuint(result.snapshots->len, >, 0);
    g_assert_cmpuint(sampling_at(&result, 0)->reset, ==, 7);
}

static void
check_sample_once(UprofSampler *sampler, UprofAnswer expected, unsigned expected_n)
{
    g_autoptr(GError) error = NULL;
    g_autofree UprofSnapshot *pool = g_new0(UprofSnapshot, 2);
    UprofSnapshot *slots[] = { &pool[0], &pool[1] };
    unsigned n = 99;

    g_assert_cmpint(uprof_sampler_sample_once(sampler, slots, &n, &error), ==, expected);
    g_assert_cmpint(expected == UPROF_FAILED, ==, error != NULL);
    g_assert_cmpuint(n, ==, expected_n);
    for (unsigned i = 0; i < n; i++)
        g_assert_cmpuint(pool[i].n_windows, ==, 1);
}

static void
test_sample_once(void)
{
    g_auto(Sampling) sampling;

    sampling_init(&sampling, 2, UPROF_GRAIN_GUEST);
    g_autoptr(UprofSampler) sampler =
        uprof_sampler_new(&sampling.guest->base, &sampling.settings, NULL);
    check_sample_once(sampler, UPROF_OK, 2);
    g_assert_cmpint(sampling.guest->tally->holds, ==, 1);
    memory_guest_rule(sampling.guest, MEMORY_VET, 2, 2, UPROF_BUSY);
    check_sample_once(sampler, UPROF_BUSY, 0);
    memory_guest_rule(sampling.guest, MEMORY_VET, 3, 3, UPROF_GONE);
    check_sample_once(sampler, UPROF_GONE, 0);
    memory_guest_rule(sampling.guest, MEMORY_HOLD, 2, 2, UPROF_FAILED);
    check_sample_once(sampler, UPROF_FAILED, 0);
    g_assert_cmpint(sampling.guest->tally->holds, ==, 1);
    /* a guest that somebody else has stopped is sampled without a hold */
    sampling.guest->base.paused = true;
    check_sample_once(sampler, UPROF_OK, 2);
    g_assert_cmpint(sampling.guest->tally->calls[MEMORY_HOLD], ==, 2);
    g_assert_cmpint(sampling.guest->tally->calls[MEMORY_VET], ==, 4);
}

static void
allocate_in_hold(MemoryGuest *guest, MemoryCall call, gint n)
{
    if (call == MEMORY_READ_REGS)
        g_free(g_strdup("seen by alloc-watch"));
}

/* The test's own check: alloc-watch sees an allocation by GLib in a hold. */
static void
test_alloc_watch(void)
{
    g_auto(Sampling) sampling;

    sampling_init(&sampling, 1, UPROF_GRAIN_GUEST);
    sampling.guest->hook = allocate_in_hold;
    g_autoptr(UprofSampler) sampler =
        uprof_sampler_new(&sampling.guest->base, &sampling.settings, NULL);
    check_sample_once(sampler, UPROF_OK, 1);
    g_assert_cmpint(alloc_watch_count(), ==, 1);
    alloc_watch_start(is_in_hold);
}

/* A resting guest that can only be held as a whole is not held, and each vCPU gets all ticks. */
static void
test_guest_at_rest(void)
{
    g_auto(Sampling) sampling;
    g_auto(SamplingResult) result;

    sampling_init(&sampling, 3, UPROF_GRAIN_GUEST);
    sampling.guest->vets[0] = UPROF_IDLE;
    sampling_run(&sampling, &result);
    g_assert_no_error(result.error);
    g_assert_cmpint(sampling.guest->tally->holds, ==, 0);
    g_assert_cmpuint(result.snapshots->len, ==, 3);
    for (guint i = 0; i < result.snapshots->len; i++) {
        const UprofSnapshot *snapshot = sampling_at(&result, i);
        g_assert_cmpuint(snapshot->vcpu, ==, i);
        g_assert_true(snapshot->same && snapshot->idle);
        g_assert_cmpuint(snapshot->count, >, 1);
        g_assert_cmpuint(snapshot->count, ==, sampling_at(&result, 0)->count);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    g_test_add_func("/sampler/alloc-watch", test_alloc_watch);
    g_test_add_data_func("/sampler/plain/guest", GINT_TO_POINTER(UPROF_GRAIN_GUEST), test_plain);
    g_test_add_data_func("/sampler/plain/none", GINT_TO_POINTER(UPROF_GRAIN_NONE), test_plain);
    for (size_t i = 0; i < G_N_ELEMENTS(answers); i++) {
        g_autofree char *path = g_strdup_printf("/sampler/answer/%s", answers[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_answer);
    }
    g_test_add_func("/sampler/every-call-fails", test_every_call_fails);
    g_test_add_func("/sampler/budget", test_budget);
    g_test_add_func("/sampler/budget-in-mid-run", test_budget_in_mid_run);
    g_test_add_func("/sampler/late", test_late);
    g_test_add_func("/sampler/skipped", test_skipped);
    g_test_add_func("/sampler/stop", test_stop);
    g_test_add_func("/sampler/stop-slow-rate", test_stop_slow_rate);
    g_test_add_func("/sampler/park", test_park);
    g_test_add_func("/sampler/torn", test_torn);
    g_test_add_data_func("/sampler/kinds-of-vcpus", GINT_TO_POINTER(0), test_kinds_of_vcpus);
    g_test_add_data_func("/sampler/idle-stacks", GINT_TO_POINTER(1), test_kinds_of_vcpus);
    g_test_add_func("/sampler/only-wanted", test_only_wanted);
    g_test_add_func("/sampler/max-pause", test_max_pause);
    g_test_add_func("/sampler/stale-tables", test_stale_tables);
    g_test_add_func("/sampler/resets", test_resets);
    g_test_add_func("/sampler/guest-at-rest", test_guest_at_rest);
    g_test_add_func("/sampler/sample-once", test_sample_once);
    return g_test_run();
}
