/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/poller.h"

enum {
    PERIOD_MS = 1000,
    PARK_TRIES = 100,
    PARK_STEP_MS = 10,
};

struct _UprofPoller {
    GThread *thread;
    GMutex lock;       /* guards all members below; held during a poll */
    GCond ended;       /* is_ending was set */
    GPtrArray *guests; /* of UprofGuest, borrowed */
    bool is_ending;
};

/* Called with the lock, which is released after each guest: a removal waits for one poll only. */
static void
poll_guests(UprofPoller *poller)
{
    for (guint i = 0; i < poller->guests->len && !poller->is_ending; i++) {
        uprof_guest_poll(g_ptr_array_index(poller->guests, i));
        g_mutex_unlock(&poller->lock);
        g_thread_yield();
        g_mutex_lock(&poller->lock);
    }
}

static gpointer
run_poller(gpointer data)
{
    UprofPoller *poller = data;

    g_mutex_lock(&poller->lock);
    while (!poller->is_ending) {
        poll_guests(poller);
        const gint64 until_us = g_get_monotonic_time() + PERIOD_MS * 1000;
        while (!poller->is_ending && g_cond_wait_until(&poller->ended, &poller->lock, until_us))
            ;
    }
    g_mutex_unlock(&poller->lock);
    return NULL;
}

UprofPoller *
uprof_poller_new(GError **error)
{
    g_autoptr(UprofPoller) poller = g_new0(UprofPoller, 1);

    g_mutex_init(&poller->lock);
    g_cond_init(&poller->ended);
    poller->guests = g_ptr_array_new();
    poller->thread = g_thread_try_new("poller", run_poller, poller, error);
    return poller->thread ? g_steal_pointer(&poller) : NULL;
}

void
uprof_poller_free(UprofPoller *poller)
{
    if (!poller)
        return;
    g_mutex_lock(&poller->lock);
    poller->is_ending = true;
    g_cond_signal(&poller->ended);
    g_mutex_unlock(&poller->lock);
    if (poller->thread)
        g_thread_join(poller->thread);
    g_ptr_array_unref(poller->guests);
    g_mutex_clear(&poller->lock);
    g_cond_clear(&poller->ended);
    g_free(poller);
}

bool
uprof_poller_park(UprofPoller *poller)
{
    for (unsigned i = 0; i < PARK_TRIES; i++) {
        if (g_mutex_trylock(&poller->lock))
            return true;
        g_usleep(PARK_STEP_MS * 1000);
    }
    return false;
}

void
uprof_poller_unpark(UprofPoller *poller)
{
    g_mutex_unlock(&poller->lock);
}

void
uprof_poller_add(UprofPoller *poller, UprofGuest *guest)
{
    g_mutex_lock(&poller->lock);
    g_ptr_array_add(poller->guests, guest);
    g_mutex_unlock(&poller->lock);
}

void
uprof_poller_remove(UprofPoller *poller, UprofGuest *guest)
{
    g_mutex_lock(&poller->lock);
    g_ptr_array_remove(poller->guests, guest);
    g_mutex_unlock(&poller->lock);
}
