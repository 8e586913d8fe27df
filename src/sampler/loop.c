/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/loop.h"

#include "uprof/clock.h"

#include "sampler-priv.h"

#include <sys/prctl.h>

enum {
    CHECK_MS = 10,        /* half of the longest delay of a stop or of a new sampler */
    LATE_STOP_MS = 1,     /* longest time that a vCPU that stopped too late stands still */
    TIMER_SLACK_NS = 1000 /* Linux's default is 50 us */
};

struct _UprofLoop {
    GThread *thread;
    GMutex lock;         /* guards all members below */
    GCond changed;       /* a sampler was added or has ended, or is_ending was set */
    GPtrArray *incoming; /* of UprofSampler, borrowed; not begun */
    GPtrArray *samplers; /* of UprofSampler, borrowed; changed by the loop's thread only */
    bool is_ending;
    bool must_replace_thread; /* see run_threads() */
};

/* Called with the lock, which is released meanwhile: publishing may wait for free slots. */
static void
end_stopped_samplers(UprofLoop *loop)
{
    const bool is_ending = loop->is_ending;

    g_mutex_unlock(&loop->lock);
    for (guint i = 0; i < loop->samplers->len; i++) {
        UprofSampler *sampler = g_ptr_array_index(loop->samplers, i);
        if (is_ending)
            uprof_sampler_stop(sampler);
        uprof_sampler_has_ended(sampler);
    }
    g_mutex_lock(&loop->lock);
}

/* Called with the lock, which is released while a sampler makes its trial holds. */
static void
begin_incoming(UprofLoop *loop)
{
    while (loop->incoming->len > 0) {
        UprofSampler *sampler = g_ptr_array_steal_index(loop->incoming, 0);
        g_ptr_array_add(loop->samplers, sampler);
        if (loop->is_ending)
            uprof_sampler_stop(sampler); /* it takes no sample, so it needs no trial holds */
        g_mutex_unlock(&loop->lock);
        uprof_sampler_begin(sampler);
        g_mutex_lock(&loop->lock);
    }
}

/* Called with the lock. */
static void
remove_ended(UprofLoop *loop)
{
    for (guint i = 0; i < loop->samplers->len;) {
        UprofSampler *sampler = g_ptr_array_index(loop->samplers, i);
        if (!uprof_sampler_has_ended(sampler)) {
            i++;
            continue;
        }
        loop->must_replace_thread |= !uprof_guest_release_late(uprof_sampler_guest(sampler));
        g_ptr_array_remove_index(loop->samplers, i);
        g_cond_broadcast(&loop->changed);
    }
}

/* Returns: false if the loop has nothing more to do */
static bool
take_changes(UprofLoop *loop)
{
    g_mutex_lock(&loop->lock);
    begin_incoming(loop);
    end_stopped_samplers(loop);
    remove_ended(loop);
    const bool any = loop->samplers->len > 0 || !loop->is_ending;
    g_mutex_unlock(&loop->lock);
    return any;
}

/*
 * @at_ns: (out): when the sampler is due
 * @from_ns: (out): the earliest time at which the sampler may be called
 *
 * Returns: (nullable): the sampler that is due first
 */
static UprofSampler *
find_first_sampler(const UprofLoop *loop, uint64_t *at_ns, uint64_t *from_ns)
{
    UprofSampler *first = NULL;

    *at_ns = *from_ns = UINT64_MAX;
    for (guint i = 0; i < loop->samplers->len; i++) {
        UprofSampler *sampler = g_ptr_array_index(loop->samplers, i);
        uint64_t early_ns;
        const uint64_t next_ns = uprof_sampler_next_ns(sampler, &early_ns);
        if (next_ns >= *at_ns)
            continue;
        *at_ns = next_ns;
        *from_ns = next_ns - early_ns;
        first = sampler;
    }
    return first;
}

/* Returns: true if a vCPU that did not stop in time is still not released */
static bool
release_late_stops(const UprofLoop *loop)
{
    bool any = false;

    for (guint i = 0; i < loop->samplers->len; i++)
        any |= !uprof_guest_release_late(uprof_sampler_guest(g_ptr_array_index(loop->samplers, i)));
    return any;
}

static void
wait_for_change(UprofLoop *loop)
{
    g_mutex_lock(&loop->lock);
    if (loop->incoming->len == 0 && !loop->is_ending) {
        /* a sampler that has ended is not dropped yet */
        if (loop->samplers->len > 0)
            g_cond_wait_until(&loop->changed, &loop->lock,
                              g_get_monotonic_time() + CHECK_MS * 1000);
        else
            g_cond_wait(&loop->changed, &loop->lock);
    }
    g_mutex_unlock(&loop->lock);
}

/*
 * A wake-up is expensive, so this takes all samples that are due now or almost now.
 * @now_ns: the clock is not earlier
 *
 * Returns: a time that the clock has reached; a hold reads the clock
 */
static uint64_t
tick_due_samplers(UprofLoop *loop, uint64_t now_ns, uint64_t check_ns)
{
    uint64_t at_ns, from_ns;

    do {
        UprofSampler *sampler = find_first_sampler(loop, &at_ns, &from_ns);
        if (!sampler || now_ns < from_ns)
            break;
        now_ns = uprof_sampler_tick(sampler, now_ns);
        /* a vCPU that has stopped too late stands still until this call */
        release_late_stops(loop);
    } while (now_ns < check_ns);
    return now_ns;
}

/*
 * @at_ns: when the first sample is due
 *
 * Returns: until when the loop may sleep. A wake-up of its own for the check costs as much as a
 * sample, so the loop waits for a sample that is due soon after the check
 */
static uint64_t
find_wake_ns(const UprofLoop *loop, uint64_t now_ns, uint64_t at_ns, uint64_t check_ns)
{
    if (release_late_stops(loop))
        return MIN(at_ns, now_ns + LATE_STOP_MS * UPROF_NS_PER_MS);
    return MIN(at_ns, check_ns + CHECK_MS * UPROF_NS_PER_MS);
}

static gpointer
run_loop(gpointer data)
{
    UprofLoop *loop = data;

    prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS);
    loop->must_replace_thread = false;
    for (;;) {
        uint64_t at_ns, from_ns;
        if (!take_changes(loop) || loop->must_replace_thread)
            return NULL;
        /* with twenty thousand ticks a second, not every tick may take the lock */
        uint64_t now_ns = uprof_clock_now_ns();
        const uint64_t check_ns = now_ns + CHECK_MS * UPROF_NS_PER_MS;
        do {
            if (!find_first_sampler(loop, &at_ns, &from_ns)) {
                wait_for_change(loop);
                break;
            }
            const uint64_t wake_ns = find_wake_ns(loop, now_ns, at_ns, check_ns);
            uprof_clock_sleep_until(wake_ns);
            now_ns = tick_due_samplers(loop, MAX(now_ns, wake_ns), check_ns);
        } while (now_ns < check_ns);
    }
}

/*
 * Only the end of its tracing thread detaches a vCPU that never stops (ptrace(2)). So the loop runs
 * in a thread that can be replaced.
 */
static gpointer
run_threads(gpointer data)
{
    UprofLoop *loop = data;

    do {
        GThread *thread = g_thread_try_new("sampler", run_loop, loop, NULL);
        /* without a new thread, such a vCPU stays attached until this thread ends */
        if (thread)
            g_thread_join(thread);
        else
            run_loop(loop);
    } while (loop->must_replace_thread);
    return NULL;
}

UprofLoop *
uprof_loop_new(GError **error)
{
    g_autoptr(UprofLoop) loop = g_new0(UprofLoop, 1);

    g_mutex_init(&loop->lock);
    g_cond_init(&loop->changed);
    loop->incoming = g_ptr_array_new();
    loop->samplers = g_ptr_array_new();
    loop->thread = g_thread_try_new("loop", run_threads, loop, error);
    return loop->thread ? g_steal_pointer(&loop) : NULL;
}

void
uprof_loop_free(UprofLoop *loop)
{
    if (!loop)
        return;
    g_mutex_lock(&loop->lock);
    loop->is_ending = true;
    g_cond_broadcast(&loop->changed);
    g_mutex_unlock(&loop->lock);
    if (loop->thread)
        g_thread_join(loop->thread);
    g_ptr_array_unref(loop->incoming);
    g_ptr_array_unref(loop->samplers);
    g_mutex_clear(&loop->lock);
    g_cond_clear(&loop->changed);
    g_free(loop);
}

void
uprof_loop_add(UprofLoop *loop, UprofSampler *sampler)
{
    g_mutex_lock(&loop->lock);
    g_ptr_array_add(loop->incoming, sampler);
    g_cond_broadcast(&loop->changed);
    g_mutex_unlock(&loop->lock);
}

static bool
has_ended_sampler(const UprofLoop *loop)
{
    for (guint i = 0; i < loop->samplers->len; i++) {
        UprofSamplerCounts counts;
        uprof_sampler_counts(g_ptr_array_index(loop->samplers, i), &counts);
        if (counts.end != UPROF_SAMPLER_RUNNING)
            return true;
    }
    return false;
}

void
uprof_loop_sync(UprofLoop *loop)
{
    g_mutex_lock(&loop->lock);
    while (has_ended_sampler(loop))
        g_cond_wait(&loop->changed, &loop->lock);
    g_mutex_unlock(&loop->lock);
}
