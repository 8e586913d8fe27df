/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * wait-table-priv.h - the tasks that wait, and the time that is not counted yet
 *
 * A task waits at one place in the code until it runs again: its count of switches, its saved stack
 * pointer and its memory show that. So its frames are found once. Until then its time is kept here.
 */
#pragma once

#include "uprof/pipeline.h"
#include "uprof/task-list.h"

/** UprofWaitState: how a task waits: the outermost frame below the domain */
typedef enum {
    UPROF_WAIT_RUNNABLE, /* it waits for a CPU */
    UPROF_WAIT_SLEEPING,
    UPROF_WAIT_BLOCKED, /* no signal wakes it: mostly it waits for a lock */
    UPROF_WAIT_IO,      /* no signal wakes it: it waits for I/O */
    UPROF_WAIT_STOPPED,
    UPROF_WAIT_IDLE, /* a thread of the kernel without work */
    UPROF_N_WAIT_STATES,
    UPROF_WAIT_NOT, /* the task runs, may run, or has ended */
} UprofWaitState;

enum {
    UPROF_WAIT_FRAMES_MAX = 1000 * 1000, /* that are remembered */
};

/** UprofWait: a task that waits; the members are for reading only */
typedef struct {
    uint32_t id; /* of the task; with @began_ns it is the key */
    uint64_t began_ns;
    uint64_t n_switches, saved_sp, memory; /* as in UprofTask */
    bool is_named;                         /* its frames are known */
    unsigned n_tries;                      /* to find them */
    const UprofName **frames;              /* (nullable): owned: below the state */
    unsigned n_frames;
    uint64_t kept_us[UPROF_N_WAIT_STATES]; /* waits for @frames */
    uint32_t walk;                         /* the last one that has found the task */
} UprofWait;

typedef struct _UprofWaitTable UprofWaitTable;

/** uprof_wait_state_of: Returns: how the task waits */
UprofWaitState uprof_wait_state_of(const UprofTask *task);

/** uprof_wait_table_new: @pipeline: borrowed; counts the waits: see uprof_pipeline_want_waits() */
UprofWaitTable *uprof_wait_table_new(UprofPipeline *pipeline);
void uprof_wait_table_free(UprofWaitTable *table);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofWaitTable, uprof_wait_table_free)

/** uprof_wait_table_begin: begins a walk */
void uprof_wait_table_begin(UprofWaitTable *table);

/**
 * uprof_wait_table_add: counts time of a task that the walk has found
 * @task: if it has a wait, it is still in that
 * @state: not %UPROF_WAIT_NOT
 *
 * Returns: (transfer none): its wait; until the walk that does not find it
 */
UprofWait *uprof_wait_table_add(UprofWaitTable *table, const UprofTask *task, UprofWaitState state,
                                uint64_t us);

/** uprof_wait_table_finish: ends a walk: tasks that it has not found are forgotten */
void uprof_wait_table_finish(UprofWaitTable *table);

/** uprof_wait_table_find: Returns: (nullable): the wait of the task */
UprofWait *uprof_wait_table_find(UprofWaitTable *table, const UprofTask *task);

/** uprof_wait_table_is_same: is it still the wait that @task is in? */
bool uprof_wait_table_is_same(const UprofWait *wait, const UprofTask *task);

/**
 * uprof_wait_table_restart: the task has run, and waits again
 * @frames: @n frames below the state, for time whose place was not found
 */
void uprof_wait_table_restart(UprofWaitTable *table, UprofWait *wait, const UprofTask *task,
                              const UprofName *const *frames, unsigned n);

/** uprof_wait_table_name: sets the frames of a wait, below its state; its time is counted now */
void uprof_wait_table_name(UprofWaitTable *table, UprofWait *wait, const UprofName *const *frames,
                           unsigned n);

/** uprof_wait_table_flush: counts the time of all tasks, at the end */
void uprof_wait_table_flush(UprofWaitTable *table);
