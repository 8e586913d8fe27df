/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/sampler.h"

#include "uprof/clock.h"
#include "uprof/schedule.h"

#include <signal.h>
#include <string.h>

enum {
    POOL_BYTES_MAX = 4 * 1024 * 1024, /* root's usual limit of locked memory is 8 MiB */
    SLOTS_PER_VCPU = 4,
    SLOTS_MIN = 16,
    PROBES_MIN = 3, /* where holds are long and the budget is small, these must do */
    PROBES_NS_MAX = 1000 * 1000 * 1000,
    PROBE_PERCENT = 175, /* holds in a row are short: caches are warm, QEMU and libvirt awake */
    REVIEW_HOLDS = 16,   /* between looks at the share of time held */
    FAILURES_MAX = 5,    /* in a row, before a guest is given up */
    SLEEP_MS = 20,       /* how late a stop may be noticed */
};

struct _UprofSampler {
    UprofGuest *guest; /* borrowed */
    UprofSamplerPlan plan;
    UprofMem *mem;
    UprofRing *ring;
    UprofSnapshot **slots; /* of the present hold; borrowed */
    unsigned n_wanted;
    GThread *thread;
    GMutex hold_lock; /* held around each hold */
    gint stop;
    GError *error;
    uint64_t start_ns;
    uint64_t n_holds;

    /* budget: since the last review, and of those before with less and less weight */
    uint64_t review_ns;
    uint64_t review_held_ns;
    uint64_t review_elapsed_ns;
    unsigned review_holds;

    GMutex counts_lock;
    UprofSamplerCounts counts;
};

static unsigned
count_wanted(const UprofGuest *guest, const bool *wanted)
{
    unsigned n = 0;

    for (unsigned i = 0; i < guest->n_vcpus; i++)
        n += wanted[i];
    return n;
}

UprofSampler *
uprof_sampler_new(UprofGuest *guest, const UprofSamplerPlan *plan)
{
    UprofSampler *sampler = g_new0(UprofSampler, 1);
    const unsigned n_wanted = count_wanted(guest, plan->wanted);
    const size_t n_pool = POOL_BYTES_MAX / sizeof(UprofSnapshot);

    g_assert(n_wanted > 0 && plan->budget_ppm > 0 && plan->rate_mhz > 0);
    sampler->guest = guest;
    sampler->plan = *plan;
    sampler->n_wanted = n_wanted;
    sampler->mem = uprof_mem_new(guest, UPROF_LANE_SAMPLER);
    sampler->ring = uprof_ring_new(MAX(
        MIN(MAX((size_t)n_wanted * SLOTS_PER_VCPU, (size_t)SLOTS_MIN), n_pool), (size_t)n_wanted));
    sampler->slots = g_new0(UprofSnapshot *, n_wanted);
    sampler->counts.divisor = sampler->counts.stride = 1;
    g_mutex_init(&sampler->hold_lock);
    g_mutex_init(&sampler->counts_lock);
    return sampler;
}

void
uprof_sampler_free(UprofSampler *sampler)
{
    if (!sampler)
        return;
    g_assert(!sampler->thread);
    uprof_mem_free(sampler->mem);
    uprof_ring_free(sampler->ring);
    g_clear_error(&sampler->error);
    g_free(sampler->slots);
    g_mutex_clear(&sampler->hold_lock);
    g_mutex_clear(&sampler->counts_lock);
    g_free(sampler);
}

UprofRing *
uprof_sampler_ring(UprofSampler *sampler)
{
    return sampler->ring;
}

void
uprof_sampler_stop(UprofSampler *sampler)
{
    g_atomic_int_set(&sampler->stop, 1);
}

void
uprof_sampler_park(UprofSampler *sampler)
{
    g_mutex_lock(&sampler->hold_lock);
}

void
uprof_sampler_unpark(UprofSampler *sampler)
{
    g_mutex_unlock(&sampler->hold_lock);
}

void
uprof_sampler_counts(UprofSampler *sampler, UprofSamplerCounts *counts)
{
    g_mutex_lock(&sampler->counts_lock);
    *counts = sampler->counts;
    if (counts->end == UPROF_SAMPLER_RUNNING && sampler->start_ns > 0)
        counts->elapsed_ns = uprof_clock_now_ns() - sampler->start_ns;
    g_mutex_unlock(&sampler->counts_lock);
}

static void
add_count(UprofSampler *sampler, uint64_t *count, uint64_t n)
{
    g_mutex_lock(&sampler->counts_lock);
    *count += n;
    g_mutex_unlock(&sampler->counts_lock);
}

/* In the hold: registers, and the stack unless that would make it too long. */
static UprofAnswer
copy_vcpus(UprofSampler *sampler, const UprofHold *hold, UprofSnapshot **slots, unsigned *n,
           GError **error)
{
    UprofGuest *guest = sampler->guest;
    const unsigned last = hold->guest ? hold->vcpu + hold->n_vcpus : guest->n_vcpus;

    for (unsigned vcpu = hold->vcpu; vcpu < last; vcpu++) {
        if (!sampler->plan.wanted[vcpu])
            continue;
        UprofSnapshot *slot = slots[*n];
        uprof_snapshot_clear(slot);
        slot->vcpu = vcpu;
        slot->grain = (uint8_t)guest->grain;
        slot->weight = 1;
        const UprofAnswer answer = uprof_guest_read_regs(guest, vcpu, &slot->regs, error);
        if (answer == UPROF_ABSENT)
            continue;
        if (answer != UPROF_OK)
            return answer;
        slot->idle = slot->regs.halted;
        const bool too_long =
            hold->guest && uprof_clock_now_ns() - hold->stood_ns > sampler->plan.max_pause_ns;
        if (!slot->idle && !slot->regs.smm && !too_long)
            uprof_windows_copy(sampler->mem, &sampler->plan.sizes[vcpu], slot);
        (*n)++;
    }
    return UPROF_OK;
}

/* Nothing stood still: a stack is whole only if its registers are the same after it. */
static void
mark_torn(UprofSampler *sampler, UprofSnapshot **slots, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        const UprofRegs *before = &slots[i]->regs;
        UprofRegs after;
        g_autoptr(GError) error = NULL;
        if (slots[i]->idle)
            continue;
        if (uprof_guest_read_regs(sampler->guest, slots[i]->vcpu, &after, &error) != UPROF_OK ||
            after.sp != before->sp || after.fp != before->fp ||
            memcmp(after.sys, before->sys, sizeof(after.sys)) != 0)
            slots[i]->stale = true;
    }
}

static void
finish_slots(UprofSampler *sampler, UprofSnapshot **slots, unsigned n, uint64_t time_ns,
             uint64_t hold_ns, uint64_t stopped_ns)
{
    for (unsigned i = 0; i < n; i++) {
        UprofSnapshot *slot = slots[i];
        slot->time_ns = time_ns;
        slot->hold = sampler->n_holds;
        slot->hold_ns = hold_ns;
        slot->stopped_ns = stopped_ns;
        slot->weight = (uint32_t)sampler->counts.stride;
        slot->reset = (uint32_t)g_atomic_int_get(&sampler->guest->resets);
        if (slot->stale)
            slot->n_windows = 0;
    }
    sampler->n_holds++;
}

/*
 * The hold. Slots are ready before it; after the release everything runs again
 * and what was copied is looked at.
 */
static UprofAnswer
take_sample(UprofSampler *sampler, UprofSnapshot **slots, unsigned *n, uint64_t *held_ns,
            GError **error)
{
    UprofGuest *guest = sampler->guest;
    const bool as_it_is = guest->paused;
    uint64_t hold_ns = 0, stopped_ns = 0;
    g_autoptr(GError) release_error = NULL;
    UprofAnswer answer = UPROF_OK, released;
    uint64_t time_ns;

    *n = 0;
    g_mutex_lock(&sampler->hold_lock);
    {
        g_auto(UprofHold) hold = { 0 };
        if (!as_it_is)
            answer = uprof_guest_hold(guest, 0, &hold, error);
        time_ns = uprof_clock_now_ns() - sampler->start_ns;
        if (answer == UPROF_OK)
            answer = copy_vcpus(sampler, &hold, slots, n, error);
        released = uprof_hold_release(&hold, &hold_ns, &stopped_ns, &release_error);
    }
    g_mutex_unlock(&sampler->hold_lock);

    if (guest->grain == UPROF_GRAIN_NONE && !as_it_is && answer == UPROF_OK)
        mark_torn(sampler, slots, *n);
    if (!uprof_mem_check(sampler->mem))
        for (unsigned i = 0; i < *n; i++)
            slots[i]->stale = true;
    finish_slots(sampler, slots, *n, time_ns, hold_ns, stopped_ns);
    *held_ns = hold_ns;
    if (released == UPROF_FAILED) {
        g_clear_error(error);
        g_propagate_error(error, g_steal_pointer(&release_error));
        return UPROF_FAILED;
    }
    return answer == UPROF_OK ? released : answer;
}

UprofAnswer
uprof_sampler_shoot(UprofSampler *sampler, UprofSnapshot **slots, unsigned *n, GError **error)
{
    sigset_t all, before;
    uint64_t held_ns;

    *n = 0;
    if (!sampler->guest->paused) {
        const UprofAnswer answer = uprof_guest_vet(sampler->guest, error);
        if (answer != UPROF_OK)
            return answer;
    }
    /* Ctrl-Z and the like wait for the end of the hold */
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    const UprofAnswer answer = take_sample(sampler, slots, n, &held_ns, error);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return answer;
}

static void
sleep_until(UprofSampler *sampler, uint64_t at_ns)
{
    uint64_t now_ns;

    while ((now_ns = uprof_clock_now_ns()) < at_ns && !g_atomic_int_get(&sampler->stop))
        uprof_clock_sleep_until(MIN(at_ns, now_ns + SLEEP_MS * UPROF_NS_PER_MS));
}

static int
compare_times(const void *a, const void *b)
{
    const uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;

    return one < other ? -1 : one > other;
}

/* A few holds that nobody counts tell what a hold costs, and so the rate that fits. */
static void
find_divisor(UprofSampler *sampler, UprofSnapshot **slots)
{
    const UprofSamplerPlan *plan = &sampler->plan;
    uint64_t holds_ns[UPROF_SAMPLER_PROBES];
    unsigned n_holds = 0;

    for (unsigned i = 0; i < UPROF_SAMPLER_PROBES && !g_atomic_int_get(&sampler->stop); i++) {
        g_autoptr(GError) error = NULL;
        unsigned n;
        if (uprof_guest_vet(sampler->guest, &error) != UPROF_OK ||
            take_sample(sampler, slots, &n, &holds_ns[n_holds], &error) != UPROF_OK) {
            /* the run itself will meet it and say so, unless there must be none */
            if (sampler->guest->left_held)
                sampler->error = g_steal_pointer(&error);
            break;
        }
        const uint64_t rest_ns = holds_ns[n_holds] * 1000000 / plan->budget_ppm;
        n_holds++;
        sleep_until(sampler, uprof_clock_now_ns() + rest_ns);
        if (n_holds >= PROBES_MIN && uprof_clock_now_ns() - sampler->start_ns > PROBES_NS_MAX)
            break;
    }
    if (n_holds == 0)
        return;
    qsort(holds_ns, n_holds, sizeof(holds_ns[0]), compare_times);
    const uint64_t hold_ns = holds_ns[n_holds / 2];
    const uint64_t interval_ns = UPROF_NS_PER_S * 1000 / plan->rate_mhz;
    /* parts per million of the time that holds would take at the asked rate */
    const uint64_t share_ppm = hold_ns * PROBE_PERCENT / 100 * 1000000 / interval_ns;
    g_mutex_lock(&sampler->counts_lock);
    sampler->counts.probe_ns = hold_ns;
    sampler->counts.divisor = MAX((share_ppm + plan->budget_ppm - 1) / plan->budget_ppm, 1);
    g_mutex_unlock(&sampler->counts_lock);
}

/*
 * Holds may get longer in mid-run (disks, load): then each sample stands for more
 * ticks. One slow hold is not a change: what lies back counts, with three
 * quarters of its weight after every look.
 */
static void
review_budget(UprofSampler *sampler, uint64_t held_ns)
{
    const uint64_t now_ns = uprof_clock_now_ns();
    const uint64_t budget_ppm = sampler->plan.budget_ppm;
    uint64_t stride = sampler->counts.stride;

    sampler->review_held_ns += held_ns;
    if (++sampler->review_holds < REVIEW_HOLDS)
        return;
    sampler->review_elapsed_ns += MAX(now_ns - sampler->review_ns, 1);
    const uint64_t share_ppm = sampler->review_held_ns * 1000000 / sampler->review_elapsed_ns;
    if (share_ppm > budget_ppm)
        stride = (stride * share_ppm + budget_ppm - 1) / budget_ppm;
    else if (stride > 1 && share_ppm * 2 < budget_ppm)
        stride = stride / 2;
    g_mutex_lock(&sampler->counts_lock);
    sampler->counts.stride = MIN(stride, (uint64_t)G_MAXUINT16);
    g_mutex_unlock(&sampler->counts_lock);
    sampler->review_ns = now_ns;
    sampler->review_held_ns -= sampler->review_held_ns / 4;
    sampler->review_elapsed_ns -= sampler->review_elapsed_ns / 4;
    sampler->review_holds = 0;
}

/* One tick whose moment has come. Returns: why sampling ends here, or that it goes on */
static UprofSamplerEnd
tick(UprofSampler *sampler, unsigned *n_failures)
{
    g_autoptr(GError) error = NULL;
    const uint64_t stride = sampler->counts.stride;
    uint64_t held_ns = 0;
    unsigned n = 0;

    if (uprof_ring_room(sampler->ring) < sampler->n_wanted) {
        add_count(sampler, &sampler->counts.skipped, sampler->counts.stride);
        return UPROF_SAMPLER_RUNNING;
    }
    UprofAnswer answer = uprof_guest_vet(sampler->guest, &error);
    if (answer == UPROF_OK) {
        for (unsigned i = 0; i < sampler->n_wanted; i++)
            sampler->slots[i] = uprof_ring_slot(sampler->ring, i);
        answer = take_sample(sampler, sampler->slots, &n, &held_ns, &error);
        add_count(sampler, &sampler->counts.held_ns, held_ns);
        add_count(sampler, &sampler->counts.n_holds, 1);
        uprof_ring_publish(sampler->ring, n);
        review_budget(sampler, held_ns);
    }
    switch (answer) {
    case UPROF_OK:
    case UPROF_ABSENT:
        *n_failures = 0;
        return UPROF_SAMPLER_RUNNING;
    case UPROF_BUSY:
        add_count(sampler, &sampler->counts.busy, stride);
        return UPROF_SAMPLER_RUNNING;
    case UPROF_GONE:
        return UPROF_SAMPLER_GONE;
    default:
        add_count(sampler, &sampler->counts.busy, stride);
        if (!sampler->guest->left_held && ++*n_failures < FAILURES_MAX)
            return UPROF_SAMPLER_RUNNING;
        sampler->error = g_steal_pointer(&error);
        return UPROF_SAMPLER_ERROR;
    }
}

static UprofSamplerEnd
run(UprofSampler *sampler)
{
    const UprofSamplerPlan *plan = &sampler->plan;
    UprofSamplerEnd end = UPROF_SAMPLER_RUNNING;
    UprofSchedule schedule;
    unsigned n_failures = 0;

    for (unsigned i = 0; i < sampler->n_wanted; i++)
        sampler->slots[i] = uprof_ring_slot(sampler->ring, i);
    sampler->start_ns = uprof_clock_now_ns();
    find_divisor(sampler, sampler->slots);
    if (sampler->error)
        return UPROF_SAMPLER_ERROR;
    sampler->n_holds = 0;
    g_mutex_lock(&sampler->counts_lock);
    sampler->start_ns = sampler->review_ns = uprof_clock_now_ns();
    g_mutex_unlock(&sampler->counts_lock);
    uprof_schedule_init(&schedule, sampler->start_ns + UPROF_NS_PER_MS,
                        MAX(plan->rate_mhz / sampler->counts.divisor, 1), plan->seed);
    while (end == UPROF_SAMPLER_RUNNING) {
        uint64_t missed;
        const uint64_t at_ns =
            uprof_schedule_take(&schedule, uprof_clock_now_ns(), sampler->counts.stride, &missed);
        if (plan->duration_ns > 0 && at_ns >= sampler->start_ns + plan->duration_ns) {
            sleep_until(sampler, sampler->start_ns + plan->duration_ns);
            if (!g_atomic_int_get(&sampler->stop))
                return UPROF_SAMPLER_DURATION;
        }
        add_count(sampler, &sampler->counts.late, missed * sampler->counts.stride);
        sleep_until(sampler, at_ns);
        if (g_atomic_int_get(&sampler->stop))
            return UPROF_SAMPLER_STOPPED;
        end = tick(sampler, &n_failures);
    }
    return end;
}

static gpointer
run_thread(gpointer data)
{
    UprofSampler *sampler = data;
    const UprofSamplerEnd end = run(sampler);

    g_mutex_lock(&sampler->counts_lock);
    sampler->counts.elapsed_ns = uprof_clock_now_ns() - sampler->start_ns;
    sampler->counts.end = end;
    g_mutex_unlock(&sampler->counts_lock);
    return NULL;
}

void
uprof_sampler_start(UprofSampler *sampler)
{
    g_assert(!sampler->thread);
    sampler->thread = g_thread_new("sampler", run_thread, sampler);
}

bool
uprof_sampler_join(UprofSampler *sampler, GError **error)
{
    if (sampler->thread)
        g_thread_join(sampler->thread);
    sampler->thread = NULL;
    if (!sampler->error)
        return true;
    g_propagate_error(error, g_steal_pointer(&sampler->error));
    return false;
}
