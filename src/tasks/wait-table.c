/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "wait-table-priv.h"

#include <string.h>

struct _UprofWaitTable {
    UprofPipeline *pipeline; /* borrowed */
    GHashTable *waits;       /* a set of UprofWait; owned */
    unsigned n_frames;       /* of all waits */
    uint32_t walk;           /* the number of the current one */
};

UprofWaitState
uprof_wait_state_of(const UprofTask *task)
{
    if (task->is_on_cpu || task->may_run)
        return UPROF_WAIT_NOT;
    switch (task->state) {
    case 'R':
        return UPROF_WAIT_RUNNABLE;
    case 'S':
        return UPROF_WAIT_SLEEPING;
    case 'D':
        return task->is_in_io ? UPROF_WAIT_IO : UPROF_WAIT_BLOCKED;
    case 'T':
    case 't':
        return UPROF_WAIT_STOPPED;
    case 'I':
    case 'P':
        return UPROF_WAIT_IDLE;
    default:
        return UPROF_WAIT_NOT;
    }
}

static guint
hash_wait(gconstpointer data)
{
    const UprofWait *wait = data;

    return (guint)(wait->id ^ (wait->began_ns * UINT64_C(0x9e3779b97f4a7c15)) >> 32);
}

static gboolean
is_equal_wait(gconstpointer a, gconstpointer b)
{
    const UprofWait *one = a, *other = b;

    return one->id == other->id && one->began_ns == other->began_ns;
}

static void
free_wait(gpointer data)
{
    UprofWait *wait = data;

    g_free(wait->frames);
    g_free(wait);
}

UprofWaitTable *
uprof_wait_table_new(UprofPipeline *pipeline)
{
    UprofWaitTable *table = g_new0(UprofWaitTable, 1);

    table->pipeline = pipeline;
    table->waits = g_hash_table_new_full(hash_wait, is_equal_wait, free_wait, NULL);
    return table;
}

void
uprof_wait_table_free(UprofWaitTable *table)
{
    if (!table)
        return;
    g_hash_table_unref(table->waits);
    g_free(table);
}

/* ---- Counting ---- */

/* @frames: below the state */
static void
count_time(UprofWaitTable *table, UprofWaitState state, const UprofName *const *frames, unsigned n,
           uint64_t us)
{
    static const char *const markers[UPROF_N_WAIT_STATES] = {
        [UPROF_WAIT_RUNNABLE] = "[runnable]", [UPROF_WAIT_SLEEPING] = "[sleeping]",
        [UPROF_WAIT_BLOCKED] = "[blocked]",   [UPROF_WAIT_IO] = "[blocked on I/O]",
        [UPROF_WAIT_STOPPED] = "[stopped]",   [UPROF_WAIT_IDLE] = "[idle]",
    };
    UprofPipeline *pipeline = table->pipeline;
    const UprofName *all[UPROF_PROFILE_DEPTH_MAX];

    all[0] = uprof_names_marker(pipeline->names, markers[state]);
    memcpy(all + 1, frames, n * sizeof(frames[0]));
    uprof_profile_add(pipeline->waits, all, n + 1, us);
    pipeline->run->waits.total_us += us;
}

static void
count_kept(UprofWaitTable *table, UprofWait *wait, const UprofName *const *frames, unsigned n)
{
    for (unsigned state = 0; state < UPROF_N_WAIT_STATES; state++)
        if (wait->kept_us[state] > 0)
            count_time(table, state, frames, n, wait->kept_us[state]);
    memset(wait->kept_us, 0, sizeof(wait->kept_us));
}

static void
count_unknown(UprofWaitTable *table, UprofWait *wait, const UprofName *const *frames, unsigned n)
{
    for (unsigned state = 0; state < UPROF_N_WAIT_STATES; state++)
        table->pipeline->run->waits.unknown_us += wait->kept_us[state];
    count_kept(table, wait, frames, n);
}

static void
forget_frames(UprofWaitTable *table, UprofWait *wait)
{
    table->n_frames -= wait->n_frames;
    g_clear_pointer(&wait->frames, g_free);
    wait->n_frames = wait->n_tries = 0;
    wait->is_named = false;
}

/* ---- Waits ---- */

bool
uprof_wait_table_is_same(const UprofWait *wait, const UprofTask *task)
{
    return wait->n_switches == task->n_switches && wait->saved_sp == task->saved_sp &&
           wait->memory == task->memory;
}

static void
note_wait(UprofWait *wait, const UprofTask *task)
{
    wait->n_switches = task->n_switches;
    wait->saved_sp = task->saved_sp;
    wait->memory = task->memory;
}

void
uprof_wait_table_restart(UprofWaitTable *table, UprofWait *wait, const UprofTask *task,
                         const UprofName *const *frames, unsigned n)
{
    count_unknown(table, wait, frames, n);
    forget_frames(table, wait);
    note_wait(wait, task);
}

UprofWait *
uprof_wait_table_find(UprofWaitTable *table, const UprofTask *task)
{
    const UprofWait key = { .id = task->id, .began_ns = task->began_ns };

    return g_hash_table_lookup(table->waits, &key);
}

static UprofWait *
make_wait(UprofWaitTable *table, const UprofTask *task)
{
    UprofWait *wait = g_new0(UprofWait, 1);

    wait->id = task->id;
    wait->began_ns = task->began_ns;
    note_wait(wait, task);
    g_hash_table_add(table->waits, wait);
    return wait;
}

UprofWait *
uprof_wait_table_add(UprofWaitTable *table, const UprofTask *task, UprofWaitState state,
                     uint64_t us)
{
    UprofWait *wait = uprof_wait_table_find(table, task);

    g_assert(state < UPROF_N_WAIT_STATES);
    if (!wait)
        wait = make_wait(table, task);
    wait->walk = table->walk;
    wait->kept_us[state] += us;
    if (wait->is_named)
        count_kept(table, wait, wait->frames, wait->n_frames);
    return wait;
}

void
uprof_wait_table_name(UprofWaitTable *table, UprofWait *wait, const UprofName *const *frames,
                      unsigned n_all)
{
    /* the domain and the state need room, too */
    const unsigned n = MIN(n_all, UPROF_PROFILE_DEPTH_MAX - 2u);

    count_kept(table, wait, frames, n);
    forget_frames(table, wait);
    if (n > UPROF_WAIT_FRAMES_MAX - MIN(table->n_frames, (unsigned)UPROF_WAIT_FRAMES_MAX))
        return; /* they are searched again in the next walk */
    wait->frames = g_memdup2(frames, n * sizeof(frames[0]));
    wait->n_frames = n;
    wait->is_named = true;
    table->n_frames += n;
}

/* ---- Walks ---- */

void
uprof_wait_table_begin(UprofWaitTable *table)
{
    table->walk++;
}

void
uprof_wait_table_finish(UprofWaitTable *table)
{
    const UprofName *unknown = uprof_names_marker(table->pipeline->names, "[unknown]");
    GHashTableIter iter;
    gpointer wait;

    g_hash_table_iter_init(&iter, table->waits);
    while (g_hash_table_iter_next(&iter, &wait, NULL)) {
        if (((const UprofWait *)wait)->walk == table->walk)
            continue;
        count_unknown(table, wait, &unknown, 1);
        forget_frames(table, wait);
        g_hash_table_iter_remove(&iter);
    }
}

void
uprof_wait_table_flush(UprofWaitTable *table)
{
    const UprofName *unknown = uprof_names_marker(table->pipeline->names, "[unknown]");
    GHashTableIter iter;
    gpointer wait;

    g_hash_table_iter_init(&iter, table->waits);
    while (g_hash_table_iter_next(&iter, &wait, NULL))
        count_unknown(table, wait, &unknown, 1);
}
