/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/loop.h"

#include "uprof/clock.h"

#include <sys/prctl.h>

enum {
    LOOK_MS = 20,         /* how late a stop or a newcomer may be noticed */
    SETTLE_MS = 1,        /* how long a vCPU may stand still that stopped after its time */
    TIMER_SLACK_NS = 1000 /* the kernel's own choice is 50 us */
};

struct _UprofLoop {
    GThread *thread;
    GMutex lock;         /* of all below */
    GCond changed;       /* something was added, or given up */
    GPtrArray *incoming; /* of UprofSampler, borrowed */
    GPtrArray *samplers; /* likewise; changed by the loop's thread only */
    bool is_ending;
    bool must_renew; /* see below */
};

/* With the lock; without it meanwhile: what was not yet published may have to wait for room. */
static void
end_stopped(UprofLoop *loop)
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

/* Returns: whether there is anything left to do */
static bool
take_changes(UprofLoop *loop)
{
    g_mutex_lock(&loop->lock);
    while (loop->incoming->len > 0) {
        UprofSampler *sampler = g_ptr_array_steal_index(loop->incoming, 0);
        g_ptr_array_add(loop->samplers, sampler);
        if (loop->is_ending)
            uprof_sampler_stop(sampler); /* no trial for one that will take no sample */
        g_mutex_unlock(&loop->lock);
        uprof_sampler_begin(sampler);
        g_mutex_lock(&loop->lock);
    }
    end_stopped(loop);
    for (guint i = 0; i < loop->samplers->len;) {
        UprofSampler *sampler = g_ptr_array_index(loop->samplers, i);
        if (!uprof_sampler_has_ended(sampler)) {
            i++;
            continue;
        }
        loop->must_renew |= !uprof_guest_settle(uprof_sampler_guest(sampler));
        g_ptr_array_remove_index(loop->samplers, i);
        g_cond_broadcast(&loop->changed);
    }
    const bool any = loop->samplers->len > 0 || !loop->is_ending;
    g_mutex_unlock(&loop->lock);
    return any;
}

/* Returns: (nullable): the sampler that is due first; @from_ns: from when on it may be called */
static UprofSampler *
find_first(const UprofLoop *loop, uint64_t *at_ns, uint64_t *from_ns)
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

/* Returns: whether something has still to be let go */
static bool
settle_all(const UprofLoop *loop)
{
    bool any = false;

    for (guint i = 0; i < loop->samplers->len; i++)
        any |= !uprof_guest_settle(uprof_sampler_guest(g_ptr_array_index(loop->samplers, i)));
    return any;
}

static void
wait_for_change(UprofLoop *loop)
{
    g_mutex_lock(&loop->lock);
    if (loop->incoming->len == 0 && !loop->is_ending)
        g_cond_wait_until(&loop->changed, &loop->lock, g_get_monotonic_time() + LOOK_MS * 1000);
    g_mutex_unlock(&loop->lock);
}

/* Waking up costs more than looking at a vCPU that sleeps: all that is due, or will be at once. */
static void
tick_all(UprofLoop *loop, uint64_t look_ns)
{
    uint64_t at_ns, from_ns;
    UprofSampler *sampler;

    do {
        sampler = find_first(loop, &at_ns, &from_ns);
        if (!sampler || uprof_clock_now_ns() < from_ns)
            return;
        uprof_sampler_tick(sampler);
        /* what has come to a stop after its time stands still until then */
        settle_all(loop);
    } while (uprof_clock_now_ns() < look_ns);
}

static gpointer
run_loop(gpointer data)
{
    UprofLoop *loop = data;

    prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS);
    loop->must_renew = false;
    for (;;) {
        uint64_t at_ns, from_ns;
        if (!take_changes(loop) || loop->must_renew)
            return NULL;
        /* what changes is not looked at at each of twenty thousand ticks a second */
        const uint64_t look_ns = uprof_clock_now_ns() + LOOK_MS * UPROF_NS_PER_MS;
        do {
            const uint64_t until_ns =
                settle_all(loop) ? uprof_clock_now_ns() + SETTLE_MS * UPROF_NS_PER_MS : look_ns;
            if (!find_first(loop, &at_ns, &from_ns)) {
                wait_for_change(loop);
                break;
            }
            uprof_clock_sleep_until(MIN(at_ns, until_ns));
            tick_all(loop, look_ns);
        } while (uprof_clock_now_ns() < look_ns);
    }
}

/*
 * What a hold was given up on can be let go for good only by the end of the
 * thread that began it (ptrace(2): a tracer's end detaches). So the loop proper
 * runs in a thread that is replaced when that happens.
 */
static gpointer
run_thread(gpointer data)
{
    UprofLoop *loop = data;

    do
        g_thread_join(g_thread_new("sampler", run_loop, loop));
    while (loop->must_renew);
    return NULL;
}

UprofLoop *
uprof_loop_new(void)
{
    UprofLoop *loop = g_new0(UprofLoop, 1);

    g_mutex_init(&loop->lock);
    g_cond_init(&loop->changed);
    loop->incoming = g_ptr_array_new();
    loop->samplers = g_ptr_array_new();
    loop->thread = g_thread_new("loop", run_thread, loop);
    return loop;
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
