/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "end-watch-priv.h"

#include "uprof/signal-mask.h"

#include <poll.h>
#include <stdbool.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    STEP_MS = 50,       /* between looks at the time, while there is a limit */
    PATIENCE_MS = 1500, /* until uprof_end_watch_set_patience() */
    US_PER_MS = 1000,
};

struct _UprofEndWatch {
    GThread *thread;
    int signals; /* borrowed */
    int wakeup;
    void (*leave)(bool in_call, void *data);
    void *data;
    GMutex lock; /* guards all members below */
    unsigned patience_ms;
    unsigned call_ms;      /* patience while the main thread calls a daemon; 0: it does not */
    gint64 call_us;        /* when that call began */
    gint64 until_us;       /* 0: no limit */
    gint64 calls_until_us; /* the same for calls that take long */
    bool is_ending;
    bool has_left; /* @leave is called */
};

static bool
is_readable(int fd)
{
    struct pollfd wait = { .fd = fd, .events = POLLIN };

    return poll(&wait, 1, 0) > 0;
}

/* @unread_us: (inout): since when a signal that ends the run is unread; 0: none is */
static bool
is_late(UprofEndWatch *watch, gint64 *unread_us)
{
    const gint64 now_us = g_get_monotonic_time();
    const bool in_call = watch->call_ms > 0;
    const gint64 patience_us = (in_call ? watch->call_ms : watch->patience_ms) * (gint64)US_PER_MS;

    if (!uprof_signal_end_is_pending())
        *unread_us = 0;
    else if (*unread_us == 0)
        *unread_us = now_us;
    const gint64 since_us = in_call ? MAX(*unread_us, watch->call_us) : *unread_us;
    const bool is_stuck = in_call && now_us - watch->call_us > patience_us;
    return (*unread_us > 0 && now_us - since_us > patience_us) ||
           (watch->until_us > 0 && now_us > watch->until_us) ||
           (is_stuck && watch->calls_until_us > 0 && now_us > watch->calls_until_us);
}

/* Returns: the longest time until the next look at the time, in milliseconds; -1: no limit */
static int
find_pause(const UprofEndWatch *watch)
{
    const gint64 left_us = watch->calls_until_us - g_get_monotonic_time();

    if (watch->until_us > 0)
        return STEP_MS;
    if (watch->calls_until_us == 0 || (left_us <= 0 && watch->call_ms == 0))
        return -1;
    return left_us <= 0 ? STEP_MS : (int)MIN(left_us / US_PER_MS + 1, (gint64)G_MAXINT);
}

/* Sleeps until something changes, or for @pause_ms. */
static void
wait_for_change(const UprofEndWatch *watch, int pause_ms, bool has_unread)
{
    struct pollfd waits[] = {
        { .fd = watch->wakeup, .events = POLLIN },
        { .fd = has_unread ? -1 : watch->signals, .events = POLLIN },
    };
    eventfd_t n;

    if (poll(waits, G_N_ELEMENTS(waits), has_unread ? STEP_MS : pause_ms) < 0)
        g_usleep(STEP_MS * US_PER_MS);
    if (waits[0].revents)
        eventfd_read(watch->wakeup, &n);
}

static gpointer
run_watch(gpointer data)
{
    UprofEndWatch *watch = data;
    gint64 unread_us = 0;

    for (;;) {
        g_mutex_lock(&watch->lock);
        const bool is_ending = watch->is_ending;
        const int pause_ms = find_pause(watch);
        const bool must_leave = !is_ending && is_late(watch, &unread_us);
        const bool in_call = watch->call_ms > 0;
        watch->has_left |= must_leave;
        g_mutex_unlock(&watch->lock);
        if (is_ending)
            return NULL;
        if (must_leave)
            watch->leave(in_call, watch->data);
        wait_for_change(watch, pause_ms, is_readable(watch->signals));
    }
}

UprofEndWatch *
uprof_end_watch_new(int signals, void (*leave)(bool in_call, void *data), void *data,
                    GError **error)
{
    UprofEndWatch *watch = g_new0(UprofEndWatch, 1);

    watch->signals = signals;
    watch->leave = leave;
    watch->data = data;
    watch->patience_ms = PATIENCE_MS;
    g_mutex_init(&watch->lock);
    watch->wakeup = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (watch->wakeup < 0)
        uprof_error_fail_errno(error, "cannot make an event descriptor");
    else
        watch->thread = g_thread_try_new("end-watch", run_watch, watch, error);
    if (!watch->thread)
        g_clear_pointer(&watch, uprof_end_watch_free);
    return watch;
}

static void
wake_up(const UprofEndWatch *watch)
{
    eventfd_write(watch->wakeup, 1);
}

void
uprof_end_watch_free(UprofEndWatch *watch)
{
    if (!watch)
        return;
    g_mutex_lock(&watch->lock);
    watch->is_ending = true;
    g_mutex_unlock(&watch->lock);
    if (watch->thread) {
        wake_up(watch);
        g_thread_join(watch->thread);
    }
    if (watch->wakeup >= 0)
        close(watch->wakeup);
    g_mutex_clear(&watch->lock);
    g_free(watch);
}

void
uprof_end_watch_set_patience(UprofEndWatch *watch, unsigned ms)
{
    g_mutex_lock(&watch->lock);
    watch->patience_ms = ms;
    g_mutex_unlock(&watch->lock);
}

void
uprof_end_watch_limit(UprofEndWatch *watch, unsigned ms)
{
    if (!watch)
        return;
    g_mutex_lock(&watch->lock);
    watch->until_us = ms > 0 ? g_get_monotonic_time() + ms * (gint64)US_PER_MS : 0;
    g_mutex_unlock(&watch->lock);
    wake_up(watch);
}

void
uprof_end_watch_begin_call(UprofEndWatch *watch, unsigned ms)
{
    if (!watch)
        return;
    g_mutex_lock(&watch->lock);
    watch->call_ms = ms;
    watch->call_us = g_get_monotonic_time();
    const bool is_limited = watch->calls_until_us > 0 && watch->call_us > watch->calls_until_us;
    g_mutex_unlock(&watch->lock);
    if (is_limited)
        wake_up(watch);
}

void
uprof_end_watch_end_call(UprofEndWatch *watch)
{
    if (!watch)
        return;
    g_mutex_lock(&watch->lock);
    const bool has_left = watch->has_left;
    watch->call_ms = 0;
    g_mutex_unlock(&watch->lock);
    while (has_left)
        pause();
}

void
uprof_end_watch_limit_calls(UprofEndWatch *watch, uint64_t ms)
{
    if (!watch)
        return;
    g_mutex_lock(&watch->lock);
    watch->calls_until_us = g_get_monotonic_time() + (gint64)(ms * US_PER_MS);
    g_mutex_unlock(&watch->lock);
    wake_up(watch);
}
