/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sampler-priv.h"

#include "uprof/clock.h"
#include "uprof/signal-mask.h"
#include "uprof/sorted.h"

#include "areas-priv.h"
#include "budget-priv.h"
#include "run-delay-priv.h"
#include "schedule-priv.h"
#include "seen-processes-priv.h"
#include "windows-priv.h"

#include <string.h>

enum {
    PROBES_MIN = 3, /* enough if holds are long and the budget is small */
    PROBES_NS_MAX = 1000 * 1000 * 1000,
    /* a usual hold, in percent of a trial hold, which finds warm caches, and QEMU and libvirt awake
     */
    PROBE_PERCENT = 175,
    FAILURES_MAX = 5, /* failures in a row, after which sampling ends */
    STUCK_MAX = 5,    /* timeouts of one vCPU in a row, after which sampling ends ... */
    STUCK_NS_MIN = 1000 * 1000 * 1000, /* ... if they took at least this long */
    STOP_CHECK_MS = 20,                /* longest delay of a stop */
    REST_MS_MAX = 2500, /* longer than the poller's period: the poller may find a pause instead */
    SHORT_HOLD_NS = 50 * 1000, /* shorter holds are not examined for CPU waits */
    DELAY_HOLDS = 8,           /* after a longer hold, the next so many are measured */
    DELAY_KEEP_MS = 1000,
    ABSENT_MS = 100,      /* between checks of a vCPU that is not plugged in */
    COLD_NS = 200 * 1000, /* caches are cold after this long without a sample */
    EARLY_PARTS = 16,     /* a tick may be early by one part of its interval; chance moves it
                           * more */
    NEWS_SHARE = 20,      /* one part in so many of the time may go to new processes */
    NEWS_APART_NS = 2 * 1000 * 1000, /* between two looks for new processes */
    FLUSH_TRIES = 100,
    FLUSH_STEP_US = 1000,
};

/* The ticks of one vCPU, or of a guest that is held as a whole. */
typedef struct {
    unsigned vcpu; /* the vCPU to hold; 0 for the complete guest */
    UprofSchedule schedule;
    uint64_t next_ns; /* monotonic time of its next tick */
    UprofBudget budget;
    uint64_t held_ns; /* all counted holds */

    /*
     * A rest is a series of ticks at which the vCPU had not run. The sampler publishes one
     * snapshot for all of them when the vCPU runs again, so an idle guest costs almost nothing.
     */
    UprofAnswer rest;    /* IDLE or SAME */
    uint64_t rest_ns;    /* time of its first tick, since the run began */
    uint32_t rest_ticks; /* 0: there is no rest to publish */

    bool is_absent;    /* the vCPU is not plugged in: checked now and then, without ticks */
    unsigned n_stuck;  /* timeouts in a row */
    uint64_t stuck_ns; /* monotonic time of the first of them */
} Ticker;

struct _UprofSampler {
    UprofGuest *guest; /* borrowed */
    UprofSamplerSettings settings;
    UprofMem *mem;   /* owned */
    UprofRing *ring; /* borrowed; NULL: only for uprof_sampler_sample_once() */
    Ticker *tickers; /* owned */
    unsigned n_tickers;
    unsigned n_slots; /* slots that one hold needs */
    UprofRunDelay run_delay;
    unsigned n_delay_holds; /* before which @run_delay is read: see find_stopped_ns() */
    uint64_t delay_ns;      /* what @run_delay said last */
    uint64_t delay_read_ns; /* monotonic: when */
    UprofSnapshot **slots;  /* @n_slots, for the present hold; the slots are borrowed */
    bool *absent;           /* per vCPU: not plugged in, by the last hold */
    UprofSeenProcesses seen;
    uint64_t news_ns;     /* monotonic: when to look for new processes again */
    UprofRegs *last_regs; /* per vCPU: of its last stack; word_bytes 0: none yet */
    uint64_t last_ns;     /* time of the last hold, since the run began */
    GMutex hold_lock;     /* held around each hold */
    gint stop;            /* atomic */
    GError *error;        /* owned: why sampling ended */
    uint64_t start_ns;    /* monotonic */
    uint64_t now_ns;      /* monotonic: the clock when this thread read it last */
    uint64_t n_holds;
    unsigned n_failures; /* in a row */

    GMutex counts_lock;
    UprofSamplerCounts counts;
};

/* One hold and its copies. */
typedef struct {
    UprofSnapshot **slots; /* borrowed; the first n are filled */
    unsigned n;
    uint64_t time_ns;    /* since the run began; the guest stood still from this time on */
    uint64_t hold_ns;    /* from the request to stop until the release */
    uint64_t stopped_ns; /* the part of @hold_ns in which the guest may have stood still */
} Shot;

static bool
holds_each_vcpu(const UprofSampler *sampler)
{
    return sampler->guest->grain == UPROF_GRAIN_VCPU;
}

static void
make_tickers(UprofSampler *sampler)
{
    const unsigned n_vcpus = sampler->guest->n_vcpus;
    const bool each = holds_each_vcpu(sampler);
    unsigned n_wanted = 0;

    sampler->tickers = g_new0(Ticker, n_vcpus);
    for (unsigned i = 0; i < n_vcpus; i++) {
        if (!sampler->settings.wanted[i])
            continue;
        sampler->tickers[n_wanted++] = (Ticker){
            .vcpu = each ? i : 0,
            .budget = { .share_ppm = sampler->settings.budget_ppm, .stride = 1 },
        };
    }
    g_assert(n_wanted > 0);
    sampler->n_tickers = each ? n_wanted : 1;
    sampler->n_slots = each ? 1 : n_wanted;
}

UprofSampler *
uprof_sampler_new(UprofGuest *guest, const UprofSamplerSettings *settings, UprofRing *ring)
{
    UprofSampler *sampler = g_new0(UprofSampler, 1);

    g_assert(settings->budget_ppm > 0 && settings->rate_mhz > 0);
    sampler->guest = guest;
    sampler->settings = *settings;
    sampler->mem = uprof_mem_new(guest, UPROF_LANE_SAMPLER);
    sampler->ring = ring;
    make_tickers(sampler);
    /* twice: a hold needs all its slots at once, and other samplers take slots, too */
    if (ring)
        uprof_ring_reserve(ring, 2 * (size_t)sampler->n_slots);
    uprof_run_delay_init(&sampler->run_delay);
    sampler->n_delay_holds = DELAY_HOLDS;
    sampler->slots = g_new0(UprofSnapshot *, sampler->n_slots);
    sampler->absent = g_new0(bool, guest->n_vcpus);
    sampler->last_regs = g_new0(UprofRegs, guest->n_vcpus);
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
    uprof_run_delay_clear(&sampler->run_delay);
    g_clear_error(&sampler->error);
    g_free(sampler->tickers);
    g_free(sampler->slots);
    g_free(sampler->absent);
    g_free(sampler->last_regs);
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
    sampler->settings.duration_ns = duration_ns;
}

uint64_t
uprof_sampler_asked_ns(const UprofSampler *sampler)
{
    return sampler->settings.duration_ns;
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

/* Returns: monotonic time @at_ns as time since the run began */
static uint64_t
time_in_run(const UprofSampler *sampler, uint64_t at_ns)
{
    return sampler->settings.run_offset_ns + at_ns - sampler->start_ns;
}

static uint64_t
read_clock(UprofSampler *sampler)
{
    sampler->now_ns = uprof_clock_now_ns();
    return sampler->now_ns;
}

static uint64_t
now_in_run(const UprofSampler *sampler)
{
    return time_in_run(sampler, sampler->now_ns);
}

static void
begin_slot(const UprofSampler *sampler, UprofSnapshot *slot, unsigned vcpu)
{
    uprof_snapshot_clear(slot);
    slot->vcpu = vcpu;
    slot->grain = (uint8_t)sampler->guest->grain;
    slot->weight = slot->count = 1;
    slot->owner = sampler->settings.owner;
}

static const UprofLinks *
get_links(const UprofSampler *sampler)
{
    return sampler->settings.links ? g_atomic_pointer_get(sampler->settings.links) : NULL;
}

/* @with_chains: there is time to follow pointers in the process, which takes some more reads */
static void
copy_windows(UprofSampler *sampler, UprofSnapshot *slot, bool with_chains)
{
    uprof_windows_copy(sampler->mem, &sampler->settings.sizes[slot->vcpu], get_links(sampler),
                       with_chains ? sampler->settings.chains : NULL, slot);
}

/* A read of a slow guest takes long: half of the longest pause is kept for the stacks themselves.
 */
static bool
has_time_for_chains(const UprofSampler *sampler, const UprofHold *hold)
{
    return !sampler->guest->slow_reads || !hold->guest ||
           uprof_clock_now_ns() - hold->stopped_since_ns < sampler->settings.max_pause_ns / 2;
}

/*
 * In Xen's dom0 reading the clock takes as long as copying a stack, and reading registers
 * takes no time. So the first vCPU of such a guest is copied without reading the clock.
 */
static bool
is_too_long(const UprofSampler *sampler, const UprofHold *hold, unsigned n_copied)
{
    return hold->guest && (n_copied > 0 || !sampler->guest->maps_outside_holds) &&
           uprof_clock_now_ns() - hold->stopped_since_ns > sampler->settings.max_pause_ns;
}

/* In the hold: copies registers, and stacks unless the hold has become too long. */
static UprofAnswer
copy_vcpus(UprofSampler *sampler, const UprofHold *hold, Shot *shot, GError **error)
{
    UprofGuest *guest = sampler->guest;
    const unsigned end = hold->guest ? hold->vcpu + hold->n_vcpus : guest->n_vcpus;

    for (unsigned vcpu = hold->vcpu; vcpu < end; vcpu++) {
        if (!sampler->settings.wanted[vcpu])
            continue;
        UprofSnapshot *slot = shot->slots[shot->n];
        slot->vcpu = vcpu;
        const UprofAnswer answer = uprof_guest_read_regs(guest, vcpu, &slot->regs, error);
        sampler->absent[vcpu] = answer == UPROF_ABSENT;
        if (answer == UPROF_ABSENT)
            continue;
        if (answer != UPROF_OK)
            return answer;
        slot->idle = slot->regs.halted;
        const bool too_long = is_too_long(sampler, hold, shot->n);
        const bool has_stack = !slot->idle || sampler->settings.idle_stacks;
        /* a halted vCPU may have no registers: word_bytes is 0 then */
        if (has_stack && !slot->regs.smm && slot->regs.word_bytes > 0 && !too_long)
            copy_windows(sampler, slot, has_time_for_chains(sampler, hold));
        shot->n++;
    }
    return UPROF_OK;
}

/*
 * Finds inconsistent stacks in a shot in which nothing stood still. A stack is consistent only if
 * the registers are the same before and after the copy.
 */
static void
mark_torn(UprofSampler *sampler, Shot *shot)
{
    for (unsigned i = 0; i < shot->n; i++) {
        UprofSnapshot *slot = shot->slots[i];
        const UprofRegs *before = &slot->regs;
        UprofRegs after;
        g_autoptr(GError) error = NULL;
        if (slot->idle)
            continue;
        if (uprof_guest_read_regs(sampler->guest, slot->vcpu, &after, &error) != UPROF_OK ||
            after.sp != before->sp || after.fp != before->fp ||
            (!sampler->guest->needs_roots &&
             memcmp(after.sys, before->sys, sizeof(after.sys)) != 0))
            slot->stale = true;
    }
}

static void
read_delay(UprofSampler *sampler)
{
    sampler->delay_ns = uprof_run_delay_ns(&sampler->run_delay);
    sampler->delay_read_ns = sampler->now_ns;
}

static bool
must_read_delay(const UprofSampler *sampler)
{
    return sampler->n_delay_holds > 0 ||
           sampler->now_ns - sampler->delay_read_ns > DELAY_KEEP_MS * UPROF_NS_PER_MS;
}

/*
 * If a vCPU's thread must wait for a CPU before it can stop, the guest loses nothing by that wait.
 * But once the vCPU has stopped, this thread may have to wait for a CPU before it notices the stop,
 * and the guest loses that time. The time for which this thread has waited is an upper bound of the
 * loss. Reading this time costs a twentieth of a sample. So it is read before each hold only while
 * holds are long, as on a busy host, and otherwise once a second. An older value only makes the
 * bound higher.
 */
static uint64_t
find_stopped_ns(UprofSampler *sampler, const Shot *shot)
{
    const uint64_t before_ns = sampler->delay_ns;

    if (sampler->n_delay_holds > 0)
        sampler->n_delay_holds--;
    if (shot->hold_ns <= SHORT_HOLD_NS)
        return shot->hold_ns;
    sampler->n_delay_holds = DELAY_HOLDS;
    read_delay(sampler);
    /* a new thread of the sampler begins at 0 */
    const uint64_t waited_ns =
        sampler->delay_ns >= before_ns ? sampler->delay_ns - before_ns : shot->hold_ns;
    return MIN(shot->hold_ns, shot->stopped_ns + waited_ns);
}

static bool
may_rehearse(const UprofSampler *sampler)
{
    const UprofGuest *guest = sampler->guest;

    return !guest->slow_reads && !uprof_guest_translates(guest) &&
           guest->grain != UPROF_GRAIN_NONE && now_in_run(sampler) - sampler->last_ns >= COLD_NS;
}

/*
 * Copies the last stack of each vCPU again, with nothing held, and drops the copy: this
 * fetches into the caches what a copy needs. Without this a hold takes a quarter longer after
 * 10 ms without a sample, and a tenth longer after 1 ms.
 */
static void
rehearse_copies(UprofSampler *sampler, const Ticker *ticker, const Shot *shot)
{
    const unsigned end = holds_each_vcpu(sampler) ? ticker->vcpu + 1 : sampler->guest->n_vcpus;
    unsigned n = 0;

    if (!may_rehearse(sampler))
        return;
    for (unsigned vcpu = ticker->vcpu; vcpu < end && n < sampler->n_slots; vcpu++) {
        UprofSnapshot *slot = shot->slots[n];
        if (!sampler->settings.wanted[vcpu])
            continue;
        n++;
        if (sampler->last_regs[vcpu].word_bytes == 0)
            continue;
        slot->vcpu = vcpu;
        slot->regs = sampler->last_regs[vcpu];
        copy_windows(sampler, slot, true);
        begin_slot(sampler, slot, ticker->vcpu);
    }
}

/* Keeps the registers by which the next rehearsal finds the stacks. */
static void
keep_regs(UprofSampler *sampler, const Shot *shot)
{
    sampler->last_ns = now_in_run(sampler);
    for (unsigned i = 0; i < shot->n; i++)
        if (shot->slots[i]->n_windows > 0)
            sampler->last_regs[shot->slots[i]->vcpu] = shot->slots[i]->regs;
}

/*
 * The hold. It allocates nothing. A guest that somebody else had paused is copied as it is.
 * A failed release replaces any other error, because the guest may still be stopped.
 */
static UprofAnswer
hold_and_copy(UprofSampler *sampler, const Ticker *ticker, Shot *shot, GError **error)
{
    UprofAnswer answer = UPROF_OK;
    g_autoptr(GError) release_error = NULL;
    g_auto(UprofHold) hold = { 0 };

    g_mutex_lock(&sampler->hold_lock);
    if (!sampler->guest->paused)
        answer = uprof_guest_hold(sampler->guest, ticker->vcpu, &hold, error);
    const bool is_held = hold.guest != NULL;
    if (!is_held)
        read_clock(sampler);
    shot->time_ns = is_held ? time_in_run(sampler, hold.stopped_since_ns) : now_in_run(sampler);
    if (answer == UPROF_OK)
        answer = copy_vcpus(sampler, &hold, shot, error);
    const UprofAnswer released =
        uprof_hold_release(&hold, &shot->hold_ns, &shot->stopped_ns, &release_error);
    if (is_held)
        sampler->now_ns = sampler->guest->released_ns;
    g_mutex_unlock(&sampler->hold_lock);
    if (released == UPROF_FAILED) {
        g_clear_error(error);
        g_propagate_error(error, g_steal_pointer(&release_error));
        return UPROF_FAILED;
    }
    return answer == UPROF_OK ? released : answer;
}

/* After the release: drops stacks that cannot be trusted. */
static void
rate_shot(UprofSampler *sampler, Shot *shot, UprofAnswer answer)
{
    const UprofGuest *guest = sampler->guest;

    if (guest->grain == UPROF_GRAIN_NONE && !guest->paused && answer == UPROF_OK) {
        mark_torn(sampler, shot);
        read_clock(sampler);
    }
    /* the page-table entries by which stacks were found may have changed before the hold */
    if (!uprof_mem_check(sampler->mem))
        for (unsigned i = 0; i < shot->n; i++)
            shot->slots[i]->stale = true;
    keep_regs(sampler, shot);
    for (unsigned i = 0; i < shot->n; i++)
        if (shot->slots[i]->stale)
            shot->slots[i]->n_windows = 0;
}

static void
stamp_shot(UprofSampler *sampler, const Ticker *ticker, const Shot *shot)
{
    for (unsigned i = 0; i < shot->n; i++) {
        UprofSnapshot *slot = shot->slots[i];
        slot->time_ns = shot->time_ns;
        slot->hold = sampler->n_holds;
        slot->hold_ns = shot->hold_ns;
        slot->stopped_ns = shot->stopped_ns;
        slot->weight = (uint32_t)ticker->budget.stride;
        slot->reset = (uint32_t)g_atomic_int_get(&sampler->guest->resets);
    }
    sampler->n_holds++;
}

/*
 * @shot: (inout): has its slots; valid on return with every answer
 */
static UprofAnswer
take_sample(UprofSampler *sampler, const Ticker *ticker, Shot *shot, GError **error)
{
    const bool each = holds_each_vcpu(sampler);

    *shot = (Shot){ .slots = shot->slots };
    for (unsigned i = 0; i < sampler->n_slots; i++)
        begin_slot(sampler, shot->slots[i], ticker->vcpu);
    rehearse_copies(sampler, ticker, shot);
    if (each && must_read_delay(sampler))
        read_delay(sampler);

    const UprofAnswer answer = hold_and_copy(sampler, ticker, shot, error);

    if (each)
        shot->stopped_ns = find_stopped_ns(sampler, shot);
    rate_shot(sampler, shot, answer);
    stamp_shot(sampler, ticker, shot);
    return answer;
}

/* The part of a hold that counts against the budget. */
static uint64_t
counted_ns(const UprofSampler *sampler, const Shot *shot)
{
    return holds_each_vcpu(sampler) ? shot->stopped_ns : shot->hold_ns;
}

/* Takes one sample of @ticker's vCPU or guest, even if it has not run lately. */
static UprofAnswer
sample_ticker_once(UprofSampler *sampler, const Ticker *ticker, Shot *shot, GError **error)
{
    const UprofGuest *guest = sampler->guest;

    read_clock(sampler);
    if (!guest->paused) {
        const UprofAnswer answer = uprof_guest_vet(sampler->guest, ticker->vcpu, error);
        if (answer != UPROF_OK && answer != UPROF_IDLE && answer != UPROF_SAME)
            return answer;
    }
    /* the first try only shows which memory to map, or where the page tables are */
    if ((guest->maps_outside_holds && !guest->paused) || guest->needs_roots) {
        const UprofAnswer first = take_sample(sampler, ticker, shot, error);
        if (first != UPROF_OK)
            return first;
    }
    return take_sample(sampler, ticker, shot, error);
}

/* One sample of each ticker, for uprof_sampler_sample_once(). */
typedef struct {
    UprofSampler *sampler;
    UprofSnapshot **slots; /* borrowed; the first n are filled */
    unsigned n;
    UprofAnswer answer;
    GError *error;
} Round;

static gpointer
run_round(gpointer data)
{
    Round *round = data;
    UprofSampler *sampler = round->sampler;

    for (unsigned i = 0; i < sampler->n_tickers; i++) {
        Shot shot = { .slots = round->slots + round->n };
        const UprofAnswer answer =
            sample_ticker_once(sampler, &sampler->tickers[i], &shot, &round->error);
        round->n += shot.n;
        if (answer != UPROF_OK && answer != UPROF_ABSENT)
            round->answer = answer;
        if (answer == UPROF_GONE || answer == UPROF_FAILED)
            break;
    }
    return NULL;
}

UprofAnswer
uprof_sampler_sample_once(UprofSampler *sampler, UprofSnapshot **slots, unsigned *n, GError **error)
{
    Round round = { .sampler = sampler, .slots = slots, .answer = UPROF_OK };

    *n = 0;
    /* the end of the thread also releases a vCPU that did not stop in time: see loop.c */
    if (!uprof_signal_mask_run("sampler", run_round, &round, error))
        return UPROF_FAILED;
    uprof_guest_release_late(sampler->guest);
    *n = round.n;
    if (round.error)
        g_propagate_error(error, round.error);
    return round.n > 0 && round.answer != UPROF_FAILED ? UPROF_OK : round.answer;
}

static void
sleep_until_stop(UprofSampler *sampler, uint64_t at_ns)
{
    uint64_t now_ns;

    while ((now_ns = uprof_clock_now_ns()) < at_ns && !g_atomic_int_get(&sampler->stop))
        uprof_clock_sleep_until(MIN(at_ns, now_ns + STOP_CHECK_MS * UPROF_NS_PER_MS));
}

/* Makes one trial hold that is not counted. Returns: false if the hold failed */
static bool
probe_hold(UprofSampler *sampler, const Ticker *ticker, uint64_t *hold_ns)
{
    g_autoptr(GError) error = NULL;
    Shot shot = { .slots = sampler->slots };

    if (!uprof_ring_take(sampler->ring, sampler->slots, sampler->n_slots))
        return false;
    read_clock(sampler);
    const bool ok = uprof_guest_vet(sampler->guest, ticker->vcpu, &error) == UPROF_OK &&
                    take_sample(sampler, ticker, &shot, &error) == UPROF_OK;
    *hold_ns = counted_ns(sampler, &shot);
    uprof_ring_give(sampler->ring, sampler->slots, sampler->n_slots);
    /* if the guest is left held, no tick may follow; else the first tick reports the failure */
    if (!ok && sampler->guest->left_held)
        sampler->error = g_steal_pointer(&error);
    return ok;
}

/* Returns: the median of a few trial holds; 0 if there was none */
static uint64_t
probe_holds(UprofSampler *sampler)
{
    uint64_t holds_ns[UPROF_SAMPLER_PROBES];
    const uint64_t began_ns = uprof_clock_now_ns();
    unsigned n_holds = 0;

    for (unsigned i = 0; i < UPROF_SAMPLER_PROBES && !g_atomic_int_get(&sampler->stop); i++) {
        if (!probe_hold(sampler, &sampler->tickers[i % sampler->n_tickers], &holds_ns[n_holds]))
            break;
        /* trial holds keep to the budget, too */
        const uint64_t rest_ns = holds_ns[n_holds] * 1000000 / sampler->settings.budget_ppm;
        n_holds++;
        sleep_until_stop(sampler, uprof_clock_now_ns() + rest_ns);
        if (n_holds >= PROBES_MIN && uprof_clock_now_ns() - began_ns > PROBES_NS_MAX)
            break;
    }
    qsort(holds_ns, n_holds, sizeof(holds_ns[0]), uprof_compare_u64);
    return n_holds > 0 ? holds_ns[n_holds / 2] : 0;
}

static void
publish_stride(UprofSampler *sampler)
{
    uint64_t stride = 1;

    for (unsigned i = 0; i < sampler->n_tickers; i++)
        stride = MAX(stride, sampler->tickers[i].budget.stride);
    g_mutex_lock(&sampler->counts_lock);
    sampler->counts.stride = stride;
    g_mutex_unlock(&sampler->counts_lock);
}

/* Lowers the rate until holds of the usual length fit the budget: see budget-priv.h. */
static void
fit_rate(UprofSampler *sampler)
{
    const UprofSamplerSettings *settings = &sampler->settings;
    const bool is_known = sampler->guest->probe_ns > 0;
    const uint64_t hold_ns = is_known ? sampler->guest->probe_ns : probe_holds(sampler);
    const uint64_t usual_ns = is_known ? hold_ns : hold_ns * PROBE_PERCENT / 100;
    const uint64_t divisor = uprof_budget_divide(
        usual_ns, UPROF_NS_PER_S * 1000 / settings->rate_mhz, settings->budget_ppm);

    for (unsigned i = 0; settings->continues_run && i < sampler->n_tickers; i++)
        uprof_budget_set_stride(&sampler->tickers[i].budget, divisor);
    publish_stride(sampler);
    g_mutex_lock(&sampler->counts_lock);
    sampler->counts.probe_ns = usual_ns;
    sampler->counts.divisor = settings->continues_run ? 1 : divisor;
    g_mutex_unlock(&sampler->counts_lock);
}

static void
fill_rest(const UprofSampler *sampler, const Ticker *ticker, UprofSnapshot *slot, unsigned vcpu)
{
    begin_slot(sampler, slot, vcpu);
    slot->time_ns = ticker->rest_ns;
    slot->weight = (uint32_t)ticker->budget.stride;
    slot->count = ticker->rest_ticks;
    slot->reset = (uint32_t)g_atomic_int_get(&sampler->guest->resets);
    slot->same = true;
    slot->idle = ticker->rest == UPROF_IDLE;
}

/* Publishes the ticks of a rest, for each vCPU. Returns: false if no slot is free */
static bool
publish_rest(UprofSampler *sampler, Ticker *ticker)
{
    const bool each = holds_each_vcpu(sampler);
    UprofSnapshot **slots = sampler->slots;
    unsigned n = 0;

    if (ticker->rest_ticks == 0)
        return true;
    if (!uprof_ring_take(sampler->ring, slots, sampler->n_slots))
        return false;
    if (each)
        fill_rest(sampler, ticker, slots[n++], ticker->vcpu);
    for (unsigned vcpu = 0; !each && vcpu < sampler->guest->n_vcpus; vcpu++)
        if (sampler->settings.wanted[vcpu] && !sampler->absent[vcpu])
            fill_rest(sampler, ticker, slots[n++], vcpu);
    uprof_ring_publish(sampler->ring, slots, n, false);
    uprof_ring_give(sampler->ring, slots + n, sampler->n_slots - n);
    ticker->rest_ticks = 0;
    return true;
}

/* Adds a tick to the present rest, or begins a new rest. */
static void
count_rest(UprofSampler *sampler, Ticker *ticker, UprofAnswer rest)
{
    const uint64_t now_ns = now_in_run(sampler);
    const bool is_another =
        ticker->rest_ticks > 0 &&
        (ticker->rest != rest || now_ns - ticker->rest_ns > REST_MS_MAX * UPROF_NS_PER_MS);

    if (is_another && !publish_rest(sampler, ticker)) {
        add_count(sampler, &sampler->counts.skipped, ticker->budget.stride);
        return;
    }
    if (ticker->rest_ticks == 0)
        ticker->rest_ns = now_ns;
    ticker->rest = rest;
    ticker->rest_ticks++;
}

static void
count_busy(UprofSampler *sampler, Ticker *ticker)
{
    uint64_t n = 1;

    /* the vCPU did not rest: somebody else had stopped it, as the poller has found meanwhile */
    if (g_atomic_int_get(&sampler->guest->hindrance) != UPROF_HINDRANCE_NONE) {
        n += ticker->rest_ticks;
        ticker->rest_ticks = 0;
    }
    add_count(sampler, &sampler->counts.busy, n * ticker->budget.stride);
}

static UprofSamplerEnd
count_stuck(UprofSampler *sampler, Ticker *ticker)
{
    const uint64_t now_ns = sampler->now_ns;

    add_count(sampler, &sampler->counts.stuck, ticker->budget.stride);
    if (ticker->n_stuck++ == 0)
        ticker->stuck_ns = now_ns;
    return ticker->n_stuck >= STUCK_MAX && now_ns - ticker->stuck_ns >= STUCK_NS_MIN
               ? UPROF_SAMPLER_STUCK
               : UPROF_SAMPLER_RUNNING;
}

/*
 * Adds one hold to the counts.
 * @held_ns: its length; 0: nothing was held
 *
 * Returns: @held_ns plus the time lost since the last call in stops that did not become a hold
 */
static uint64_t
count_hold(UprofSampler *sampler, Ticker *ticker, uint64_t held_ns)
{
    held_ns += uprof_guest_take_lost_ns(sampler->guest, ticker->vcpu);
    if (held_ns == 0)
        return 0;
    ticker->held_ns += held_ns;
    g_mutex_lock(&sampler->counts_lock);
    sampler->counts.held_ns += held_ns;
    sampler->counts.n_holds++;
    sampler->counts.most_held_ns = MAX(sampler->counts.most_held_ns, ticker->held_ns);
    g_mutex_unlock(&sampler->counts_lock);
    return held_ns;
}

static void
review_budget(UprofSampler *sampler, Ticker *ticker, uint64_t held_ns)
{
    const uint64_t stride = ticker->budget.stride;

    if (uprof_budget_review(&ticker->budget, held_ns, sampler->now_ns) != stride)
        publish_stride(sampler);
}

/* Can the guest's memory be read at once, also outside of holds? */
static bool
is_fast(const UprofGuest *guest)
{
    return !guest->slow_reads && !guest->maps_outside_holds && !uprof_guest_translates(guest);
}

static void
copy_areas(UprofSampler *sampler, const UprofLinks *links, UprofSnapshot *slot)
{
    const uint64_t start_ns = read_clock(sampler);

    uprof_areas_copy(sampler->mem, links, slot);
    const uint64_t end_ns = read_clock(sampler);
    sampler->news_ns = end_ns + MAX(NEWS_APART_NS, NEWS_SHARE * (end_ns - start_ns));
}

/*
 * A new process may end soon. So this copies where its files are mapped, and the analysis must not
 * wait for more samples. A guest with a new process in each sample must not take the time of
 * others.
 *
 * Returns: true if there is a new process
 */
static bool
copy_new_processes(UprofSampler *sampler, const Shot *shot)
{
    const UprofLinks *links = get_links(sampler);
    bool any = false;

    for (unsigned i = 0; i < shot->n && sampler->now_ns >= sampler->news_ns; i++) {
        if (!uprof_seen_processes_add(&sampler->seen, links, shot->slots[i]))
            continue;
        any = true;
        if (is_fast(sampler->guest))
            copy_areas(sampler, links, shot->slots[i]);
        else
            sampler->news_ns = sampler->now_ns + NEWS_APART_NS;
    }
    return any;
}

/*
 * @held_ns: (out): length of the hold, also if the answer is not OK; untouched without a hold
 *
 * Returns: the outcome of the tick; %UPROF_OK also if it was skipped because no slot was free
 */
static UprofAnswer
sample_ticker(UprofSampler *sampler, Ticker *ticker, uint64_t *held_ns, GError **error)
{
    Shot shot = { .slots = sampler->slots };

    UprofAnswer answer = uprof_guest_vet(sampler->guest, ticker->vcpu, error);
    if (answer != UPROF_OK) {
        read_clock(sampler);
        return answer;
    }
    if (!publish_rest(sampler, ticker) ||
        !uprof_ring_take(sampler->ring, sampler->slots, sampler->n_slots)) {
        add_count(sampler, &sampler->counts.skipped, ticker->budget.stride);
        read_clock(sampler);
        return UPROF_OK;
    }
    answer = take_sample(sampler, ticker, &shot, error);
    *held_ns = counted_ns(sampler, &shot);
    const bool is_urgent = copy_new_processes(sampler, &shot);
    uprof_ring_publish(sampler->ring, sampler->slots, shot.n, is_urgent);
    uprof_ring_give(sampler->ring, sampler->slots + shot.n, sampler->n_slots - shot.n);
    return answer;
}

/* Counts one tick by its answer. Returns: why sampling ends, or that it goes on */
static UprofSamplerEnd
count_answer(UprofSampler *sampler, Ticker *ticker, UprofAnswer answer, GError **error)
{
    if (answer != UPROF_FAILED)
        sampler->n_failures = 0;
    if (answer != UPROF_STUCK)
        ticker->n_stuck = 0;
    ticker->is_absent = answer == UPROF_ABSENT;
    switch (answer) {
    case UPROF_OK:
    case UPROF_ABSENT:
        return UPROF_SAMPLER_RUNNING;
    case UPROF_IDLE:
    case UPROF_SAME:
        count_rest(sampler, ticker, answer);
        return UPROF_SAMPLER_RUNNING;
    case UPROF_BUSY:
        count_busy(sampler, ticker);
        return UPROF_SAMPLER_RUNNING;
    case UPROF_STUCK:
        return count_stuck(sampler, ticker);
    case UPROF_GONE:
        return UPROF_SAMPLER_GONE;
    default:
        add_count(sampler, &sampler->counts.busy, ticker->budget.stride);
        if (!sampler->guest->left_held && ++sampler->n_failures < FAILURES_MAX)
            return UPROF_SAMPLER_RUNNING;
        sampler->error = g_steal_pointer(error);
        return UPROF_SAMPLER_ERROR;
    }
}

/* Samples a ticker whose time has come. */
static UprofSamplerEnd
tick_once(UprofSampler *sampler, Ticker *ticker)
{
    g_autoptr(GError) error = NULL;
    uint64_t held_ns = 0;
    const UprofAnswer answer = sample_ticker(sampler, ticker, &held_ns, &error);
    const UprofSamplerEnd end = count_answer(sampler, ticker, answer, &error);

    /* Last, because this may change the stride. The ticks counted above, and the ticks of a rest,
     * have the old stride as their weight. */
    if (ticker->rest_ticks == 0) {
        held_ns = count_hold(sampler, ticker, held_ns);
        if (held_ns > 0)
            review_budget(sampler, ticker, held_ns);
    }
    return end;
}

static void
end_sampling(UprofSampler *sampler, UprofSamplerEnd end)
{
    for (unsigned i = 0; i < sampler->n_tickers; i++) {
        Ticker *ticker = &sampler->tickers[i];
        for (unsigned tries = 0; !publish_rest(sampler, ticker) && tries < FLUSH_TRIES; tries++)
            g_usleep(FLUSH_STEP_US);
        add_count(sampler, &sampler->counts.skipped, ticker->rest_ticks * ticker->budget.stride);
        count_hold(sampler, ticker, 0);
    }
    g_mutex_lock(&sampler->counts_lock);
    sampler->counts.elapsed_ns = uprof_clock_now_ns() - sampler->start_ns;
    sampler->counts.end = end;
    g_mutex_unlock(&sampler->counts_lock);
}

static void
schedule_tick(UprofSampler *sampler, Ticker *ticker)
{
    const uint64_t stride = ticker->budget.stride;
    uint64_t missed;

    if (ticker->is_absent)
        ticker->schedule.next += ABSENT_MS * UPROF_NS_PER_MS / ticker->schedule.interval_ns;
    ticker->next_ns = uprof_schedule_take(&ticker->schedule, sampler->now_ns, stride, &missed);
    add_count(sampler, &sampler->counts.late, missed * stride);
}

/* The tickers of vCPUs are spread evenly over an interval, from an offset chosen by chance. */
static uint64_t
find_offset_ns(const UprofSampler *sampler, unsigned i, uint64_t interval_ns)
{
    if (!holds_each_vcpu(sampler))
        return UPROF_NS_PER_MS;
    const uint64_t first_ns =
        (sampler->settings.seed * UINT64_C(0x9e3779b97f4a7c15) >> 16) % interval_ns;
    return (first_ns + interval_ns * i / sampler->n_tickers) % interval_ns;
}

static void
begin_ticker(UprofSampler *sampler, unsigned i, uint64_t rate_mhz)
{
    Ticker *ticker = &sampler->tickers[i];
    const uint64_t offset_ns = find_offset_ns(sampler, i, UPROF_NS_PER_S * 1000 / rate_mhz);

    ticker->budget.period_ns = sampler->start_ns;
    uprof_guest_take_lost_ns(sampler->guest, ticker->vcpu); /* drops time lost before this run */
    uprof_schedule_init(&ticker->schedule, sampler->start_ns + offset_ns, rate_mhz,
                        sampler->settings.seed + i);
    schedule_tick(sampler, ticker);
}

void
uprof_sampler_begin(UprofSampler *sampler)
{
    sampler->start_ns = uprof_clock_now_ns();
    fit_rate(sampler);
    sampler->n_holds = 0;
    const uint64_t rate_mhz = MAX(sampler->settings.rate_mhz / sampler->counts.divisor, 1);
    g_mutex_lock(&sampler->counts_lock);
    sampler->start_ns = read_clock(sampler);
    g_mutex_unlock(&sampler->counts_lock);
    for (unsigned i = 0; i < sampler->n_tickers; i++)
        begin_ticker(sampler, i, rate_mhz);
    if (sampler->error)
        end_sampling(sampler, UPROF_SAMPLER_ERROR);
}

static Ticker *
find_first_ticker(const UprofSampler *sampler)
{
    Ticker *first = &sampler->tickers[0];

    for (unsigned i = 1; i < sampler->n_tickers; i++)
        if (sampler->tickers[i].next_ns < first->next_ns)
            first = &sampler->tickers[i];
    return first;
}

static uint64_t
find_end_ns(const UprofSampler *sampler)
{
    return sampler->settings.duration_ns > 0 ? sampler->start_ns + sampler->settings.duration_ns
                                             : UINT64_MAX;
}

uint64_t
uprof_sampler_next_ns(const UprofSampler *sampler, uint64_t *early_ns)
{
    const Ticker *first = find_first_ticker(sampler);
    const uint64_t end_ns = find_end_ns(sampler);

    if (early_ns)
        *early_ns = end_ns <= first->next_ns ? 0 : first->schedule.interval_ns / EARLY_PARTS;
    if (sampler->counts.end != UPROF_SAMPLER_RUNNING)
        return UINT64_MAX;
    return MIN(first->next_ns, end_ns);
}

uint64_t
uprof_sampler_tick(UprofSampler *sampler, uint64_t now_ns)
{
    Ticker *ticker = find_first_ticker(sampler);

    sampler->now_ns = now_ns;
    if (uprof_sampler_has_ended(sampler))
        return now_ns;
    if (ticker->next_ns >= find_end_ns(sampler)) {
        end_sampling(sampler, UPROF_SAMPLER_DURATION);
        return now_ns;
    }
    sampler->guest->ticked_ns = now_ns;
    const UprofSamplerEnd end = tick_once(sampler, ticker);
    sampler->guest->ticked_ns = 0;
    if (end != UPROF_SAMPLER_RUNNING)
        end_sampling(sampler, end);
    else
        schedule_tick(sampler, ticker);
    return sampler->now_ns;
}

bool
uprof_sampler_has_ended(UprofSampler *sampler)
{
    if (sampler->counts.end == UPROF_SAMPLER_RUNNING && g_atomic_int_get(&sampler->stop))
        end_sampling(sampler, UPROF_SAMPLER_STOPPED);
    return sampler->counts.end != UPROF_SAMPLER_RUNNING;
}

GError *
uprof_sampler_take_error(UprofSampler *sampler)
{
    return g_steal_pointer(&sampler->error);
}
