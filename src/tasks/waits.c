/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/waits.h"

#include "uprof/clock.h"

#include "task-unwind-priv.h"
#include "wait-table-priv.h"

enum {
    SHARE = 10,          /* walks take 1 / SHARE of the time */
    STEP_SHARE = 3,      /* and steps 1 / STEP_SHARE, until all stacks are known */
    JITTER_PERCENT = 25, /* so that walks do not follow the rhythm of a guest */
    TRIES_MAX = 3,       /* for a stack whose memory was too much for one try */
};

/* Times between two walks, and the time in which a step finds stacks. */
#define APART_MIN_NS (UINT64_C(100) * UPROF_NS_PER_MS)
#define APART_MAX_NS (UINT64_C(3) * UPROF_NS_PER_S)
#define RETRY_NS (UINT64_C(1) * UPROF_NS_PER_S)
/*
 * The limit of one walk. Samples that are taken meanwhile have to wait. Where memory is read
 * directly, 10,000 tasks take a third of this time; through peeks of libvirt it is enough for some
 * tens.
 */
#define WALK_NS (UINT64_C(1) * UPROF_NS_PER_S)
#define SLICE_NS (UINT64_C(10) * UPROF_NS_PER_MS)

struct _UprofWaits {
    UprofPipeline *pipeline; /* borrowed */
    UprofWaitClock *clock;
    UprofMem *mem;           /* owned: of its own: what samples have read stays remembered */
    UprofUnwindCache *cache; /* owned */
    UprofTaskUnwinder unwinder;
    UprofWaitTable *table; /* owned */
    GArray *todo;          /* of UprofTask: whose stacks are wanted; owned */
    guint n_done;          /* of these */
    GError *obstacle;      /* (nullable): owned: why the last walk was not possible */
    bool has_walked;       /* and so the time since then counts */
    UprofWaitTick last;    /* of the last walk */
    uint64_t cost_ns;      /* of the last walk, and of its steps so far */
    uint64_t next_walk_ns, next_step_ns;
    GRand *random; /* owned */
};

static UprofTaskReader
make_reader(const UprofWaits *waits)
{
    return (UprofTaskReader){ .mem = waits->mem, .cache = waits->cache };
}

UprofWaits *
uprof_waits_new(UprofPipeline *pipeline, UprofGuest *guest, UprofWaitClock *clock)
{
    UprofWaits *waits = g_new0(UprofWaits, 1);

    waits->pipeline = pipeline;
    waits->clock = clock;
    waits->mem = uprof_mem_new(guest, UPROF_LANE_WORKER);
    waits->cache = uprof_unwind_cache_new();
    waits->table = uprof_wait_table_new(pipeline);
    waits->todo = g_array_new(FALSE, FALSE, sizeof(UprofTask));
    waits->random = g_rand_new_with_seed(1); /* equal guests give equal profiles in tests */
    uprof_task_unwinder_init_beside(&waits->unwinder, pipeline, make_reader(waits));
    return waits;
}

void
uprof_waits_free(UprofWaits *waits)
{
    if (!waits)
        return;
    uprof_task_unwinder_clear(&waits->unwinder);
    uprof_wait_table_free(waits->table);
    uprof_unwind_cache_free(waits->cache);
    uprof_mem_free(waits->mem);
    g_array_unref(waits->todo);
    g_rand_free(waits->random);
    g_clear_error(&waits->obstacle);
    g_free(waits);
}

static void
forget_todo(UprofWaits *waits)
{
    g_array_set_size(waits->todo, 0);
    waits->n_done = 0;
}

void
uprof_waits_move(UprofWaits *waits, UprofGuest *guest)
{
    uprof_mem_free(waits->mem);
    waits->mem = uprof_mem_new(guest, UPROF_LANE_WORKER);
    waits->unwinder.reader = make_reader(waits);
    forget_todo(waits);
}

/* @stack: (nullable). Returns: the number of @frames below the state: see
 * uprof_pipeline_name_task() */
static unsigned
name_task(UprofWaits *waits, const UprofTask *task, UprofStack *stack,
          const UprofName *const **frames)
{
    UprofPipeline *pipeline = waits->pipeline;
    UprofTaskLabel label = { .name = task->comm, .process = task->process };

    if (pipeline->run->cgroups)
        label.cgroup = uprof_cgroups_find_set(pipeline->cgroups, waits->mem, waits->last.time_ns,
                                              waits->last.reset, task->cgroup);
    return uprof_pipeline_name_task(pipeline, &label, stack, waits->unwinder.has_user, frames);
}

/* If the task runs, or has run since its wait was noted, counts the time of that wait. */
static void
update_wait(UprofWaits *waits, UprofWait *wait, const UprofTask *task)
{
    const UprofName *const *frames;

    if (uprof_wait_table_is_same(wait, task) && !task->is_on_cpu)
        return;
    const unsigned n = name_task(waits, task, NULL, &frames);
    uprof_wait_table_restart(waits->table, wait, task, frames, n);
}

/* ---- Walks ---- */

/* Returns: the time since the last walk, in microseconds; 0 if it must not count */
static uint64_t
find_time_us(const UprofWaits *waits, const UprofWaitTick *tick)
{
    if (!waits->has_walked || tick->n_pauses != waits->last.n_pauses ||
        tick->reset != waits->last.reset)
        return 0;
    return tick->time_ns / UPROF_NS_PER_US - waits->last.time_ns / UPROF_NS_PER_US;
}

static void
count_task(UprofWaits *waits, const UprofTask *task, uint64_t us)
{
    const UprofWaitState state = uprof_wait_state_of(task);
    UprofWait *wait = uprof_wait_table_find(waits->table, task);

    if (wait)
        update_wait(waits, wait, task);
    if (state == UPROF_WAIT_NOT)
        return;
    wait = uprof_wait_table_add(waits->table, task, state, us);
    if (!wait->is_named)
        g_array_append_vals(waits->todo, task, 1);
}

/* Each walk begins with another task, so that all get their turn if the time is short. */
static void
count_tasks(UprofWaits *waits, const UprofTaskList *list, uint64_t us)
{
    const guint n = list->tasks->len;
    const guint first = n > 0 ? (guint)g_rand_int(waits->random) % n : 0;

    forget_todo(waits);
    uprof_wait_table_begin(waits->table);
    for (guint i = 0; i < n; i++)
        count_task(waits, &g_array_index(list->tasks, UprofTask, (first + i) % n), us);
    uprof_wait_table_finish(waits->table);
}

static void
count_walk(UprofRunWaits *counts, const UprofTaskList *list, uint64_t us)
{
    counts->walks++;
    counts->tasks += list->tasks->len;
    counts->incomplete += !list->is_complete;
    counts->time_ns += us * UPROF_NS_PER_US;
}

static void
walk_tasks(UprofWaits *waits, const UprofWaitTick *tick)
{
    const UprofPipeline *pipeline = waits->pipeline;

    g_clear_error(&waits->obstacle);
    uprof_mem_begin_sample(waits->mem, tick->time_ns, tick->reset);
    g_autoptr(UprofTaskList) list =
        uprof_task_list_read(pipeline->kernel, waits->mem, WALK_NS, &waits->obstacle);
    const uint64_t us = find_time_us(waits, tick);
    waits->has_walked = list != NULL;
    waits->last = *tick;
    if (!list) {
        forget_todo(waits);
        return;
    }
    count_walk(&pipeline->run->waits, list, us);
    count_tasks(waits, list, us);
    uprof_task_unwinder_restart(&waits->unwinder, tick->time_ns, tick->reset);
}

/* ---- Stacks ---- */

/* Did the stack end early because so much was read for it that another try would find more? */
static bool
may_find_more(const UprofWaits *waits, UprofWait *wait)
{
    return uprof_mem_is_spent(waits->mem) && !uprof_unwind_is_complete(waits->unwinder.stack) &&
           ++wait->n_tries < TRIES_MAX;
}

/* A task that runs now or whose memory changes meanwhile gets another try in the next walk. */
static void
find_stack(UprofWaits *waits, guint i)
{
    const unsigned depth = (unsigned)waits->pipeline->run->max_depth;
    UprofTaskUnwinder *unwinder = &waits->unwinder;
    const UprofTask *task = &g_array_index(waits->todo, UprofTask, i);
    UprofWait *wait = uprof_wait_table_find(waits->table, task);
    const UprofName *const *frames;

    uprof_task_unwind_kernel(unwinder, waits->todo, i, depth);
    if (unwinder->copy->state == UPROF_TASK_STACK_COPIED)
        uprof_task_unwind_user(unwinder, task, depth);
    const bool is_known = unwinder->copy->state == UPROF_TASK_STACK_COPIED
                              ? unwinder->has_user == unwinder->copy->has_user
                              : unwinder->copy->state == UPROF_TASK_STACK_NEW ||
                                    unwinder->copy->state == UPROF_TASK_STACK_UNKNOWN;
    if (!wait || !is_known || may_find_more(waits, wait))
        return;
    update_wait(waits, wait, task);
    const unsigned n = name_task(waits, task, unwinder->stack, &frames);
    uprof_wait_table_name(waits->table, wait, frames, n);
}

static void
find_stacks(UprofWaits *waits, uint64_t end_ns)
{
    while (waits->n_done < waits->todo->len && waits->clock() < end_ns)
        find_stack(waits, waits->n_done++);
}

/* ---- Pace ---- */

/* Returns: @ns, more or less */
static uint64_t
vary_time(const UprofWaits *waits, uint64_t ns)
{
    const gint32 percent =
        g_rand_int_range(waits->random, 100 - JITTER_PERCENT, 101 + JITTER_PERCENT);

    return ns / 100 * (uint64_t)percent;
}

static void
schedule_walk(UprofWaits *waits)
{
    const uint64_t most_ns = MAX(APART_MAX_NS, waits->cost_ns * STEP_SHARE);
    const uint64_t apart_ns = CLAMP(waits->cost_ns * SHARE, APART_MIN_NS, most_ns);

    waits->next_walk_ns =
        waits->last.time_ns + (waits->has_walked ? vary_time(waits, apart_ns) : RETRY_NS);
}

void
uprof_waits_step(UprofWaits *waits, const UprofWaitTick *tick)
{
    const uint64_t began_ns = waits->clock();
    const bool walks = tick->time_ns >= waits->next_walk_ns;

    if (tick->time_ns < waits->next_step_ns || (!walks && waits->n_done == waits->todo->len))
        return;
    if (walks)
        walk_tasks(waits, tick);
    find_stacks(waits, waits->clock() + SLICE_NS);
    const uint64_t took_ns = waits->clock() - began_ns;
    waits->cost_ns = (walks ? 0 : waits->cost_ns) + took_ns;
    waits->next_step_ns = tick->time_ns + took_ns * STEP_SHARE;
    schedule_walk(waits);
}

void
uprof_waits_end(UprofWaits *waits, uint64_t time_ns)
{
    find_stacks(waits, waits->clock() + time_ns);
    uprof_wait_table_flush(waits->table);
    forget_todo(waits);
}

const char *
uprof_waits_obstacle(const UprofWaits *waits)
{
    return waits->obstacle ? waits->obstacle->message : NULL;
}
