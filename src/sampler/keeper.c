/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/keeper.h"

enum {
    ROUND_MS = 1000,
    PARK_TRIES = 100,
    PARK_STEP_MS = 10,
};

struct _UprofKeeper {
    GThread *thread;
    GMutex lock;       /* held while a guest is looked at */
    GCond ended;       /* says so at once */
    GPtrArray *guests; /* of UprofGuest, borrowed */
    bool is_ending;
};

static gpointer
run_thread(gpointer data)
{
    UprofKeeper *keeper = data;

    g_mutex_lock(&keeper->lock);
    while (!keeper->is_ending) {
        for (guint i = 0; i < keeper->guests->len && !keeper->is_ending; i++) {
            uprof_guest_tend(g_ptr_array_index(keeper->guests, i));
            /* whoever waits to remove one need not wait for all */
            g_mutex_unlock(&keeper->lock);
            g_thread_yield();
            g_mutex_lock(&keeper->lock);
        }
        const gint64 until_us = g_get_monotonic_time() + ROUND_MS * 1000;
        while (!keeper->is_ending && g_cond_wait_until(&keeper->ended, &keeper->lock, until_us))
            ;
    }
    g_mutex_unlock(&keeper->lock);
    return NULL;
}

UprofKeeper *
uprof_keeper_new(void)
{
    UprofKeeper *keeper = g_new0(UprofKeeper, 1);

    g_mutex_init(&keeper->lock);
    g_cond_init(&keeper->ended);
    keeper->guests = g_ptr_array_new();
    keeper->thread = g_thread_new("keeper", run_thread, keeper);
    return keeper;
}

void
uprof_keeper_free(UprofKeeper *keeper)
{
    if (!keeper)
        return;
    g_mutex_lock(&keeper->lock);
    keeper->is_ending = true;
    g_cond_signal(&keeper->ended);
    g_mutex_unlock(&keeper->lock);
    g_thread_join(keeper->thread);
    g_ptr_array_unref(keeper->guests);
    g_mutex_clear(&keeper->lock);
    g_cond_clear(&keeper->ended);
    g_free(keeper);
}

bool
uprof_keeper_park(UprofKeeper *keeper)
{
    for (unsigned i = 0; i < PARK_TRIES; i++) {
        if (g_mutex_trylock(&keeper->lock))
            return true;
        g_usleep(PARK_STEP_MS * 1000);
    }
    return false;
}

void
uprof_keeper_unpark(UprofKeeper *keeper)
{
    g_mutex_unlock(&keeper->lock);
}

void
uprof_keeper_add(UprofKeeper *keeper, UprofGuest *guest)
{
    g_mutex_lock(&keeper->lock);
    g_ptr_array_add(keeper->guests, guest);
    g_mutex_unlock(&keeper->lock);
}

void
uprof_keeper_remove(UprofKeeper *keeper, UprofGuest *guest)
{
    g_mutex_lock(&keeper->lock);
    g_ptr_array_remove(keeper->guests, guest);
    g_mutex_unlock(&keeper->lock);
}
