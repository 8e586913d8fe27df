/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/sampler.h"

#include "uprof/clock.h"
#include "uprof/schedule.h"
#include "waits-priv.h"

#include <signal.h>
#include <string.h>

enum {
    PROBES_MIN = 3, /* where holds are long and the budget is small, these must do */
    PROBES_NS_MAX = 1000 * 1000 * 1000,
    PROBE_PERCENT = 175, /* holds in a row are short: caches are warm, QEMU and libvirt awake */
    REVIEW_HOLDS = 16,   /* between looks at the share of time held */
    FAILURES_MAX = 5,    /* in a row, before a guest is given up */
    STUCK_MAX = 5,       /* likewise, of one vCPU that does not stop ... */
    STUCK_NS_MIN = 1000 * 1000 * 1000, /* ... for so long */
    SLEEP_MS = 20,                     /* how late a stop may be noticed */
    REST_MS_MAX = 2500,        /* longer than a keeper's round: it may say that it was a pause */
    SHORT_HOLD_NS = 50 * 1000, /* not worth a look at what it was spent on */
    ABSENT_MS = 100,
    COLD_NS = 200 * 1000,
    EARLY_PARTS = 16, /* of an interval: well within what chance moves a tick by */
    FLUSH_TRIES = 100,
    FLUSH_STEP_US = 1000,
};

/*
 * A line of ticks: of one vCPU, or of the whole guest.
 *
 * Ticks in which the vCPU had not run are put together and published as one
 * snapshot when it runs again, so that an idle guest costs next to nothing.
 */
typedef struct {
    unsigned vcpu; /* that it holds; 0 for the whole guest */
    UprofSchedule schedule;
    uint64_t at_ns; /* its next tick */
    uint64_t stride;
    uint64_t held_ns;

    UprofAnswer rest; /* IDLE or SAME */
    uint64_t rest_ns; /* since the run began, of its first tick */
    uint32_t n_rests; /* 0: it does not rest */

    /* budget: since the last review, and of those before with less and less weight */
    uint64_t review_ns;
    uint64_t review_held_ns;
    uint64_t review_elapsed_ns;
    unsigned review_holds;

    bool is_absent;   /* its place is empty: looked at now and then, and no tick */
    unsigned n_stuck; /* in a row */
    uint64_t stuck_ns;
} Line;

struct _UprofSampler {
    UprofGuest *guest; /* borrowed */
    UprofSamplerPlan plan;
    UprofMem *mem;
    UprofRing *ring; /* borrowed */
    Line *lines;
    unsigned n_lines;
    unsigned n_slots; /* that one hold needs */
    UprofWaits waits;
    UprofSnapshot **slots; /* of the present hold; borrowed */
    bool *absent;          /* of each vCPU, whether the last hold found its place empty */
    UprofRegs *lasts;      /* of each vCPU, at its last stack; without a word size: none */
    uint64_t last_ns;      /* of the last hold, since the run began */
    GMutex hold_lock;      /* held around each hold */
    gint stop;
    GError *error;
    uint64_t start_ns;
    uint64_t n_holds;
    unsigned n_failures; /* in a row */

    GMutex counts_lock;
    UprofSamplerCounts counts;
};

static void
make_lines(UprofSampler *sampler)
{
    const UprofGuest *guest = sampler->guest;
    const bool each = guest->grain == UPROF_GRAIN_VCPU;
    unsigned n_wanted = 0;

    sampler->lines = g_new0(Line, guest->n_vcpus);
    for (unsigned i = 0; i < guest->n_vcpus; i++) {
        if (!sampler->plan.wanted[i])
            continue;
        sampler->lines[n_wanted++] = (Line){ .vcpu = each ? i : 0, .stride = 1 };
    }
    g_assert(n_wanted > 0);
    sampler->n_lines = each ? n_wanted : 1;
    sampler->n_slots = each ? 1 : n_wanted;
}

UprofSampler *
uprof_sampler_new(UprofGuest *guest, const UprofSamplerPlan *plan, UprofRing *ring)
{
    UprofSampler *sampler = g_new0(UprofSampler, 1);

    g_assert(plan->budget_ppm > 0 && plan->rate_mhz > 0);
    sampler->guest = guest;
    sampler->plan = *plan;
    sampler->mem = uprof_mem_new(guest, UPROF_LANE_SAMPLER);
    sampler->ring = ring;
    make_lines(sampler);
    /* twice: others take some too, and a hold needs all of its own at once */
    if (ring)
        uprof_ring_reserve(ring, 2 * (size_t)sampler->n_slots);
    uprof_waits_init(&sampler->waits);
    sampler->slots = g_new0(UprofSnapshot *, sampler->n_slots);
    sampler->absent = g_new0(bool, guest->n_vcpus);
    sampler->lasts = g_new0(UprofRegs, guest->n_vcpus);
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
    uprof_mem_free(sampler->mem);
    uprof_waits_clear(&sampler->waits);
    g_clear_error(&sampler->error);
    g_free(sampler->lines);
    g_free(sampler->slots);
    g_free(sampler->absent);
    g_free(sampler->lasts);
    g_mutex_clear(&sampler->hold_lock);
    g_mutex_clear(&sampler->counts_lock);
    g_free(sampler);
}

UprofGuest *
uprof_sampler_guest(UprofSampler *sampler)
{
    return sampler->guest;
}

void
uprof_sampler_limit(UprofSampler *sampler, uint64_t duration_ns)
{
    g_assert(sampler->start_ns == 0 && duration_ns > 0);
    sampler->plan.duration_ns = duration_ns;
}

uint64_t
uprof_sampler_asked_ns(const UprofSampler *sampler)
{
    return sampler->plan.duration_ns;
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

static uint64_t
in_run(const UprofSampler *sampler, uint64_t at_ns)
{
    return sampler->plan.gone_ns + at_ns - sampler->start_ns;
}

static uint64_t
now_in_run(const UprofSampler *sampler)
{
    return in_run(sampler, uprof_clock_now_ns());
}

static void
begin_slot(const UprofSampler *sampler, UprofSnapshot *slot, unsigned vcpu)
{
    uprof_snapshot_clear(slot);
    slot->vcpu = vcpu;
    slot->grain = (uint8_t)sampler->guest->grain;
    slot->weight = slot->count = 1;
    slot->owner = sampler->plan.owner;
}

static void
copy_windows(UprofSampler *sampler, UprofSnapshot *slot)
{
    const UprofLinks *links =
        sampler->plan.links ? g_atomic_pointer_get(sampler->plan.links) : NULL;

    uprof_windows_copy(sampler->mem, &sampler->plan.sizes[slot->vcpu], links, slot);
}

/* In the hold, into slots that have begun: registers, and the stack unless it were too long. */
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
        slot->vcpu = vcpu;
        const UprofAnswer answer = uprof_guest_read_regs(guest, vcpu, &slot->regs, error);
        sampler->absent[vcpu] = answer == UPROF_ABSENT;
        if (answer == UPROF_ABSENT)
            continue;
        if (answer != UPROF_OK)
            return answer;
        slot->idle = slot->regs.halted;
        /* in Xen's dom0 reading the clock takes as long as copying a stack, and registers no time */
        const bool too_long = hold->guest && (*n > 0 || !guest->maps_late) &&
                              uprof_clock_now_ns() - hold->stood_ns > sampler->plan.max_pause_ns;
        const bool has_stack = !slot->idle || sampler->plan.idle_stacks;
        /* of a vCPU at rest there may be no registers */
        if (has_stack && !slot->regs.smm && slot->regs.word_bytes > 0 && !too_long)
            copy_windows(sampler, slot);
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
finish_slots(UprofSampler *sampler, const Line *line, UprofSnapshot **slots, unsigned n,
             uint64_t time_ns, uint64_t hold_ns, uint64_t stopped_ns)
{
    for (unsigned i = 0; i < n; i++) {
        UprofSnapshot *slot = slots[i];
        slot->time_ns = time_ns;
        slot->hold = sampler->n_holds;
        slot->hold_ns = hold_ns;
        slot->stopped_ns = stopped_ns;
        slot->weight = (uint32_t)line->stride;
        slot->reset = (uint32_t)g_atomic_int_get(&sampler->guest->resets);
        if (slot->stale)
            slot->n_windows = 0;
    }
    sampler->n_holds++;
}

/*
 * A vCPU's thread that waits for a CPU before it can stop loses nothing by our
 * hold. But once it has stopped, we may have to wait for one ourselves before we
 * see that; and that is the guest's loss. What this thread has waited for in all
 * is no less.
 */
static uint64_t
find_stopped_ns(UprofSampler *sampler, uint64_t hold_ns, uint64_t stopped_ns, uint64_t waited_ns)
{
    if (hold_ns <= SHORT_HOLD_NS)
        return hold_ns;
    return MIN(hold_ns, stopped_ns + uprof_waits_ns(&sampler->waits) - waited_ns);
}

/*
 * Copies each vCPU's stack as it was the last time, with nothing held, and drops it:
 * after some time off all that a copy needs has gone cold, and a hold in which it
 * is fetched again takes a quarter longer (10 ms; a tenth after 1 ms).
 */
static void
rehearse(UprofSampler *sampler, const Line *line, UprofSnapshot **slots)
{
    const UprofGuest *guest = sampler->guest;
    const unsigned last = guest->grain == UPROF_GRAIN_VCPU ? line->vcpu + 1 : guest->n_vcpus;
    unsigned n = 0;

    if (guest->slow_reads || uprof_guest_translates(guest) || guest->grain == UPROF_GRAIN_NONE ||
        now_in_run(sampler) - sampler->last_ns < COLD_NS)
        return;
    for (unsigned vcpu = line->vcpu; vcpu < last && n < sampler->n_slots; vcpu++) {
        UprofSnapshot *slot = slots[n];
        if (!sampler->plan.wanted[vcpu])
            continue;
        n++;
        if (sampler->lasts[vcpu].word_bytes == 0)
            continue;
        slot->vcpu = vcpu;
        slot->regs = sampler->lasts[vcpu];
        copy_windows(sampler, slot);
        begin_slot(sampler, slot, line->vcpu);
    }
}

/* For the next rehearsal. */
static void
note_regs(UprofSampler *sampler, UprofSnapshot *const *slots, unsigned n)
{
    sampler->last_ns = now_in_run(sampler);
    for (unsigned i = 0; i < n; i++)
        if (slots[i]->n_windows > 0)
            sampler->lasts[slots[i]->vcpu] = slots[i]->regs;
}

/*
 * The hold. Slots are ready before it; after the release everything runs again
 * and what was copied is looked at.
 */
static UprofAnswer
take_sample(UprofSampler *sampler, const Line *line, UprofSnapshot **slots, unsigned *n,
            uint64_t *held_ns, GError **error)
{
    UprofGuest *guest = sampler->guest;
    const bool as_it_is = guest->paused;
    uint64_t hold_ns = 0, stopped_ns = 0;
    g_autoptr(GError) release_error = NULL;
    UprofAnswer answer = UPROF_OK, released;
    uint64_t time_ns;

    *n = 0;
    for (unsigned i = 0; i < sampler->n_slots; i++)
        begin_slot(sampler, slots[i], line->vcpu);
    rehearse(sampler, line, slots);
    const uint64_t waited_ns =
        guest->grain == UPROF_GRAIN_VCPU ? uprof_waits_ns(&sampler->waits) : 0;
    g_mutex_lock(&sampler->hold_lock);
    {
        g_auto(UprofHold) hold = { 0 };
        if (!as_it_is)
            answer = uprof_guest_hold(guest, line->vcpu, &hold, error);
        time_ns = hold.guest ? in_run(sampler, hold.stood_ns) : now_in_run(sampler);
        if (answer == UPROF_OK)
            answer = copy_vcpus(sampler, &hold, slots, n, error);
        released = uprof_hold_release(&hold, &hold_ns, &stopped_ns, &release_error);
    }
    g_mutex_unlock(&sampler->hold_lock);
    if (guest->grain == UPROF_GRAIN_VCPU)
        stopped_ns = find_stopped_ns(sampler, hold_ns, stopped_ns, waited_ns);

    if (guest->grain == UPROF_GRAIN_NONE && !as_it_is && answer == UPROF_OK)
        mark_torn(sampler, slots, *n);
    if (!uprof_mem_check(sampler->mem))
        for (unsigned i = 0; i < *n; i++)
            slots[i]->stale = true;
    note_regs(sampler, slots, *n);
    finish_slots(sampler, line, slots, *n, time_ns, hold_ns, stopped_ns);
    *held_ns = guest->grain == UPROF_GRAIN_VCPU ? stopped_ns : hold_ns;
    if (released == UPROF_FAILED) {
        g_clear_error(error);
        g_propagate_error(error, g_steal_pointer(&release_error));
        return UPROF_FAILED;
    }
    return answer == UPROF_OK ? released : answer;
}

/* One line, now. Whether its vCPU has run lately does not matter. */
static UprofAnswer
shoot_line(UprofSampler *sampler, const Line *line, UprofSnapshot **slots, unsigned *n,
           GError **error)
{
    uint64_t held_ns;

    *n = 0;
    if (!sampler->guest->paused) {
        const UprofAnswer answer = uprof_guest_vet(sampler->guest, line->vcpu, error);
        if (answer != UPROF_OK && answer != UPROF_IDLE && answer != UPROF_SAME)
            return answer;
        /* the first shows what to map: no sample follows that could make up for it */
        if (sampler->guest->maps_late) {
            const UprofAnswer first = take_sample(sampler, line, slots, n, &held_ns, error);
            if (first != UPROF_OK)
                return first;
        }
    }
    return take_sample(sampler, line, slots, n, &held_ns, error);
}

typedef struct {
    UprofSampler *sampler;
    UprofSnapshot **slots;
    unsigned n;
    UprofAnswer answer;
    GError *error;
} Shot;

static gpointer
run_shot(gpointer data)
{
    Shot *shot = data;
    UprofSampler *sampler = shot->sampler;

    for (unsigned i = 0; i < sampler->n_lines; i++) {
        unsigned n_line;
        const UprofAnswer said =
            shoot_line(sampler, &sampler->lines[i], shot->slots + shot->n, &n_line, &shot->error);
        shot->n += n_line;
        if (said != UPROF_OK && said != UPROF_ABSENT)
            shot->answer = said;
        if (said == UPROF_GONE || said == UPROF_FAILED)
            break;
    }
    return NULL;
}

UprofAnswer
uprof_sampler_shoot(UprofSampler *sampler, UprofSnapshot **slots, unsigned *n, GError **error)
{
    Shot shot = { .sampler = sampler, .slots = slots, .answer = UPROF_OK };
    sigset_t all, before;

    /*
     * Ctrl-Z and the like wait for the end of the hold; and what has not stopped
     * in time is let go by the end of the thread that has tried (see loop.c).
     */
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    g_thread_join(g_thread_new("sampler", run_shot, &shot));
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    uprof_guest_settle(sampler->guest);
    *n = shot.n;
    if (shot.error)
        g_propagate_error(error, shot.error);
    return shot.n > 0 && shot.answer != UPROF_FAILED ? UPROF_OK : shot.answer;
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

/* One hold that nobody counts. Returns: whether it succeeded */
static bool
probe(UprofSampler *sampler, const Line *line, uint64_t *hold_ns)
{
    g_autoptr(GError) error = NULL;
    unsigned n;

    if (!uprof_ring_take(sampler->ring, sampler->slots, sampler->n_slots))
        return false;
    const bool ok = uprof_guest_vet(sampler->guest, line->vcpu, &error) == UPROF_OK &&
                    take_sample(sampler, line, sampler->slots, &n, hold_ns, &error) == UPROF_OK;
    uprof_ring_give(sampler->ring, sampler->slots, sampler->n_slots);
    /* the run itself will meet it and say so, unless there must be none */
    if (!ok && sampler->guest->left_held)
        sampler->error = g_steal_pointer(&error);
    return ok;
}

/* Returns: median hold of a few, 0 if there was none */
static uint64_t
probe_holds(UprofSampler *sampler)
{
    uint64_t holds_ns[UPROF_SAMPLER_PROBES];
    const uint64_t began_ns = uprof_clock_now_ns();
    unsigned n_holds = 0;

    for (unsigned i = 0; i < UPROF_SAMPLER_PROBES && !g_atomic_int_get(&sampler->stop); i++) {
        if (!probe(sampler, &sampler->lines[i % sampler->n_lines], &holds_ns[n_holds]))
            break;
        const uint64_t rest_ns = holds_ns[n_holds] * 1000000 / sampler->plan.budget_ppm;
        n_holds++;
        sleep_until(sampler, uprof_clock_now_ns() + rest_ns);
        if (n_holds >= PROBES_MIN && uprof_clock_now_ns() - began_ns > PROBES_NS_MAX)
            break;
    }
    qsort(holds_ns, n_holds, sizeof(holds_ns[0]), compare_times);
    return n_holds > 0 ? holds_ns[n_holds / 2] : 0;
}

/* What a hold costs gives the rate that fits. */
static void
find_divisor(UprofSampler *sampler)
{
    const UprofSamplerPlan *plan = &sampler->plan;
    const uint64_t interval_ns = UPROF_NS_PER_S * 1000 / plan->rate_mhz;
    const bool is_known = sampler->guest->probe_ns > 0;
    const uint64_t hold_ns = is_known ? sampler->guest->probe_ns : probe_holds(sampler);
    const uint64_t percent = is_known ? 100 : PROBE_PERCENT;
    /* parts per million of the time that holds would take at the asked rate */
    const uint64_t share_ppm = hold_ns * percent / 100 * 1000000 / interval_ns;

    const uint64_t divisor = MAX((share_ppm + plan->budget_ppm - 1) / plan->budget_ppm, 1);

    for (unsigned i = 0; plan->goes_on && i < sampler->n_lines; i++)
        sampler->lines[i].stride = MIN(divisor, (uint64_t)G_MAXUINT16);
    g_mutex_lock(&sampler->counts_lock);
    sampler->counts.probe_ns = hold_ns;
    if (plan->goes_on)
        sampler->counts.stride = divisor;
    else
        sampler->counts.divisor = divisor;
    g_mutex_unlock(&sampler->counts_lock);
}

static void
note_stride(UprofSampler *sampler)
{
    uint64_t stride = 1;

    for (unsigned i = 0; i < sampler->n_lines; i++)
        stride = MAX(stride, sampler->lines[i].stride);
    g_mutex_lock(&sampler->counts_lock);
    sampler->counts.stride = stride;
    g_mutex_unlock(&sampler->counts_lock);
}

/*
 * Holds may get longer in mid-run (disks, load): then each sample stands for more
 * ticks. One slow hold is not a change: what lies back counts, with three
 * quarters of its weight after every look.
 */
static void
review_budget(UprofSampler *sampler, Line *line, uint64_t held_ns)
{
    const uint64_t now_ns = uprof_clock_now_ns();
    const uint64_t budget_ppm = sampler->plan.budget_ppm;
    uint64_t stride = line->stride;

    line->review_held_ns += held_ns;
    if (++line->review_holds < REVIEW_HOLDS)
        return;
    line->review_elapsed_ns += MAX(now_ns - line->review_ns, 1);
    const uint64_t share_ppm = line->review_held_ns * 1000000 / line->review_elapsed_ns;
    if (share_ppm > budget_ppm)
        stride = (stride * share_ppm + budget_ppm - 1) / budget_ppm;
    else if (stride > 1 && share_ppm * 2 < budget_ppm)
        stride = stride / 2;
    line->review_ns = now_ns;
    line->review_held_ns -= line->review_held_ns / 4;
    line->review_elapsed_ns -= line->review_elapsed_ns / 4;
    line->review_holds = 0;
    if (stride == line->stride)
        return;
    line->stride = MIN(stride, (uint64_t)G_MAXUINT16);
    note_stride(sampler);
}

static void
fill_rest(const UprofSampler *sampler, const Line *line, UprofSnapshot *slot, unsigned vcpu)
{
    begin_slot(sampler, slot, vcpu);
    slot->time_ns = line->rest_ns;
    slot->weight = (uint32_t)line->stride;
    slot->count = line->n_rests;
    slot->reset = (uint32_t)g_atomic_int_get(&sampler->guest->resets);
    slot->same = true;
    slot->idle = line->rest == UPROF_IDLE;
}

/*
 * Publishes the ticks in which the line's vCPU, or none of the whole guest's, had
 * run. Returns: false without a slot
 */
static bool
publish_rest(UprofSampler *sampler, Line *line)
{
    const bool each = sampler->guest->grain == UPROF_GRAIN_VCPU;
    UprofSnapshot **slots = sampler->slots;
    unsigned n = 0;

    if (line->n_rests == 0)
        return true;
    if (!uprof_ring_take(sampler->ring, slots, sampler->n_slots))
        return false;
    if (each)
        fill_rest(sampler, line, slots[n++], line->vcpu);
    for (unsigned vcpu = 0; !each && vcpu < sampler->guest->n_vcpus; vcpu++)
        if (sampler->plan.wanted[vcpu] && !sampler->absent[vcpu])
            fill_rest(sampler, line, slots[n++], vcpu);
    uprof_ring_publish(sampler->ring, slots, n);
    uprof_ring_give(sampler->ring, slots + n, sampler->n_slots - n);
    line->n_rests = 0;
    return true;
}

static void
note_rest(UprofSampler *sampler, Line *line, UprofAnswer rest)
{
    const uint64_t now_ns = now_in_run(sampler);

    if (line->n_rests > 0 &&
        (line->rest != rest || now_ns - line->rest_ns > REST_MS_MAX * UPROF_NS_PER_MS) &&
        !publish_rest(sampler, line)) {
        add_count(sampler, &sampler->counts.skipped, line->stride);
        return;
    }
    if (line->n_rests == 0)
        line->rest_ns = now_ns;
    line->rest = rest;
    line->n_rests++;
}

/* It had not run because somebody else had stopped it, as is known now. */
static void
note_busy(UprofSampler *sampler, Line *line)
{
    uint64_t n = 1;

    if (g_atomic_int_get(&sampler->guest->hindrance) != UPROF_HINDRANCE_NONE) {
        n += line->n_rests;
        line->n_rests = 0;
    }
    add_count(sampler, &sampler->counts.busy, n * line->stride);
}

static UprofSamplerEnd
note_stuck(UprofSampler *sampler, Line *line)
{
    const uint64_t now_ns = uprof_clock_now_ns();

    add_count(sampler, &sampler->counts.stuck, line->stride);
    if (line->n_stuck++ == 0)
        line->stuck_ns = now_ns;
    return line->n_stuck >= STUCK_MAX && now_ns - line->stuck_ns >= STUCK_NS_MIN
               ? UPROF_SAMPLER_STUCK
               : UPROF_SAMPLER_RUNNING;
}

/*
 * @held_ns: of a hold, 0: there was none; what was lost in stops that became none counts, too
 * Returns: both
 */
static uint64_t
count_hold(UprofSampler *sampler, Line *line, uint64_t held_ns)
{
    held_ns += uprof_guest_take_lost(sampler->guest, line->vcpu);
    if (held_ns == 0)
        return 0;
    line->held_ns += held_ns;
    g_mutex_lock(&sampler->counts_lock);
    sampler->counts.held_ns += held_ns;
    sampler->counts.n_holds++;
    sampler->counts.most_held_ns = MAX(sampler->counts.most_held_ns, line->held_ns);
    g_mutex_unlock(&sampler->counts_lock);
    return held_ns;
}

/*
 * Returns: what became of the tick; %UPROF_OK too if there was no room
 * @held_ns: (inout): of a hold, whatever came of it
 */
static UprofAnswer
sample_line(UprofSampler *sampler, Line *line, uint64_t *held_ns, GError **error)
{
    unsigned n = 0;

    UprofAnswer answer = uprof_guest_vet(sampler->guest, line->vcpu, error);
    if (answer != UPROF_OK)
        return answer;
    if (!publish_rest(sampler, line) ||
        !uprof_ring_take(sampler->ring, sampler->slots, sampler->n_slots)) {
        add_count(sampler, &sampler->counts.skipped, line->stride);
        return UPROF_OK;
    }
    answer = take_sample(sampler, line, sampler->slots, &n, held_ns, error);
    uprof_ring_publish(sampler->ring, sampler->slots, n);
    uprof_ring_give(sampler->ring, sampler->slots + n, sampler->n_slots - n);
    return answer;
}

/* Returns: why sampling ends here, or that it goes on */
static UprofSamplerEnd
note_answer(UprofSampler *sampler, Line *line, UprofAnswer answer, GError **error)
{
    if (answer != UPROF_FAILED)
        sampler->n_failures = 0;
    if (answer != UPROF_STUCK)
        line->n_stuck = 0;
    line->is_absent = answer == UPROF_ABSENT;
    switch (answer) {
    case UPROF_OK:
    case UPROF_ABSENT:
        return UPROF_SAMPLER_RUNNING;
    case UPROF_IDLE:
    case UPROF_SAME:
        note_rest(sampler, line, answer);
        return UPROF_SAMPLER_RUNNING;
    case UPROF_BUSY:
        note_busy(sampler, line);
        return UPROF_SAMPLER_RUNNING;
    case UPROF_STUCK:
        return note_stuck(sampler, line);
    case UPROF_GONE:
        return UPROF_SAMPLER_GONE;
    default:
        add_count(sampler, &sampler->counts.busy, line->stride);
        if (!sampler->guest->left_held && ++sampler->n_failures < FAILURES_MAX)
            return UPROF_SAMPLER_RUNNING;
        sampler->error = g_steal_pointer(error);
        return UPROF_SAMPLER_ERROR;
    }
}

/* One tick whose moment has come. */
static UprofSamplerEnd
tick(UprofSampler *sampler, Line *line)
{
    g_autoptr(GError) error = NULL;
    uint64_t held_ns = 0;
    const UprofAnswer answer = sample_line(sampler, line, &held_ns, &error);
    const UprofSamplerEnd why = note_answer(sampler, line, answer, &error);

    /* the last, since it may change the stride by which ticks are counted: rests that wait, too */
    if (line->n_rests == 0) {
        held_ns = count_hold(sampler, line, held_ns);
        if (held_ns > 0)
            review_budget(sampler, line, held_ns);
    }
    return why;
}

static void
end(UprofSampler *sampler, UprofSamplerEnd why)
{
    for (unsigned i = 0; i < sampler->n_lines; i++) {
        Line *line = &sampler->lines[i];
        for (unsigned tries = 0; !publish_rest(sampler, line) && tries < FLUSH_TRIES; tries++)
            g_usleep(FLUSH_STEP_US);
        add_count(sampler, &sampler->counts.skipped, line->n_rests * line->stride);
        count_hold(sampler, line, 0);
    }
    g_mutex_lock(&sampler->counts_lock);
    sampler->counts.elapsed_ns = uprof_clock_now_ns() - sampler->start_ns;
    sampler->counts.end = why;
    g_mutex_unlock(&sampler->counts_lock);
}

static void
plan_tick(UprofSampler *sampler, Line *line)
{
    uint64_t missed;

    if (line->is_absent)
        line->schedule.next += ABSENT_MS * UPROF_NS_PER_MS / line->schedule.interval_ns;
    line->at_ns = uprof_schedule_take(&line->schedule, uprof_clock_now_ns(), line->stride, &missed);
    add_count(sampler, &sampler->counts.late, missed * line->stride);
}

/* The lines of vCPUs lie evenly in an interval, from a place that chance has chosen. */
static uint64_t
line_offset_ns(const UprofSampler *sampler, unsigned i, uint64_t interval_ns)
{
    if (sampler->guest->grain != UPROF_GRAIN_VCPU)
        return UPROF_NS_PER_MS;
    const uint64_t first_ns =
        (sampler->plan.seed * UINT64_C(0x9e3779b97f4a7c15) >> 16) % interval_ns;
    return (first_ns + interval_ns * i / sampler->n_lines) % interval_ns;
}

void
uprof_sampler_begin(UprofSampler *sampler)
{
    sampler->start_ns = uprof_clock_now_ns();
    find_divisor(sampler);
    sampler->n_holds = 0;
    const uint64_t rate_mhz = MAX(sampler->plan.rate_mhz / sampler->counts.divisor, 1);
    g_mutex_lock(&sampler->counts_lock);
    sampler->start_ns = uprof_clock_now_ns();
    g_mutex_unlock(&sampler->counts_lock);
    for (unsigned i = 0; i < sampler->n_lines; i++) {
        Line *line = &sampler->lines[i];
        const uint64_t offset_ns = line_offset_ns(sampler, i, UPROF_NS_PER_S * 1000 / rate_mhz);
        line->review_ns = sampler->start_ns;
        uprof_guest_take_lost(sampler->guest, line->vcpu); /* not in this run */
        uprof_schedule_init(&line->schedule, sampler->start_ns + offset_ns, rate_mhz,
                            sampler->plan.seed + i);
        plan_tick(sampler, line);
    }
    if (sampler->error)
        end(sampler, UPROF_SAMPLER_ERROR);
}

static Line *
find_first(const UprofSampler *sampler)
{
    Line *first = &sampler->lines[0];

    for (unsigned i = 1; i < sampler->n_lines; i++)
        if (sampler->lines[i].at_ns < first->at_ns)
            first = &sampler->lines[i];
    return first;
}

static uint64_t
end_ns(const UprofSampler *sampler)
{
    return sampler->plan.duration_ns > 0 ? sampler->start_ns + sampler->plan.duration_ns
                                         : UINT64_MAX;
}

uint64_t
uprof_sampler_next_ns(const UprofSampler *sampler, uint64_t *early_ns)
{
    const Line *first = find_first(sampler);
    const bool is_end = end_ns(sampler) <= first->at_ns;

    if (early_ns)
        *early_ns = is_end ? 0 : first->schedule.interval_ns / EARLY_PARTS;
    if (sampler->counts.end != UPROF_SAMPLER_RUNNING)
        return UINT64_MAX;
    return MIN(first->at_ns, end_ns(sampler));
}

void
uprof_sampler_tick(UprofSampler *sampler)
{
    Line *line = find_first(sampler);

    if (uprof_sampler_has_ended(sampler))
        return;
    if (line->at_ns >= end_ns(sampler)) {
        end(sampler, UPROF_SAMPLER_DURATION);
        return;
    }
    const UprofSamplerEnd why = tick(sampler, line);
    if (why != UPROF_SAMPLER_RUNNING)
        end(sampler, why);
    else
        plan_tick(sampler, line);
}

bool
uprof_sampler_has_ended(UprofSampler *sampler)
{
    if (sampler->counts.end == UPROF_SAMPLER_RUNNING && g_atomic_int_get(&sampler->stop))
        end(sampler, UPROF_SAMPLER_STOPPED);
    return sampler->counts.end != UPROF_SAMPLER_RUNNING;
}

GError *
uprof_sampler_take_error(UprofSampler *sampler)
{
    return g_steal_pointer(&sampler->error);
}
