/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * task-unwind-priv.h - the frames of tasks that do not run
 */
#pragma once

#include "uprof/pipeline.h"
#include "uprof/task-stack.h"
#include "uprof/task-table.h"

/** UprofTaskReader: what an unwinder reads with; all pointers are borrowed */
typedef struct {
    UprofMem *mem;
    UprofUnwindCache *cache;
    uint64_t apart_ns; /* time between two tasks: 0, or that of samples, whose limits begin again */
} UprofTaskReader;

/** UprofTaskUnwinder: one task at a time; all pointers are owned unless they say "borrowed" */
typedef struct {
    UprofPipeline *pipeline; /* borrowed */
    UprofTaskReader reader;
    UprofSnapshot *snapshot; /* of the last task */
    UprofTaskStack *copies;  /* %UPROF_TASK_STACKS_MAX of them */
    guint first, end;        /* tasks of the list whose stacks are in @copies */
    /* (nullable): as @copies: of the tasks from @end on; %NULL: the unwinder does not read ahead */
    UprofTaskStack *next;
    UprofTaskCopying *copying; /* (nullable): into @next: has begun */
    UprofTaskStack *copy;      /* of the last task; borrowed from @copies */
    UprofStack *stack;         /* of the last task; no frame unless the copy is COPIED */
    bool has_user;   /* the stack has the frames of user space, as far as they are known */
    uint64_t end_ns; /* when the time for stacks of the kernel is up; 0: never */
    unsigned n_late; /* tasks whose stacks were not read then */
} UprofTaskUnwinder;

/**
 * uprof_task_unwinder_init:
 * @pipeline: its kernel is found
 * @request: its snapshot and its time for stacks of the kernel
 *
 * Call it after the tasks are listed: it drops remembered memory.
 */
void uprof_task_unwinder_init(UprofTaskUnwinder *unwinder, UprofPipeline *pipeline,
                              const UprofTaskRequest *request);

/**
 * uprof_task_unwinder_init_beside: the same, but leaves alone what the pipeline remembers for
 * samples, and has no limit of time
 */
void uprof_task_unwinder_init_beside(UprofTaskUnwinder *unwinder, UprofPipeline *pipeline,
                                     UprofTaskReader reader);

/** uprof_task_unwinder_restart: begins with another list of tasks, as uprof_task_unwinder_init()
 * does */
void uprof_task_unwinder_restart(UprofTaskUnwinder *unwinder, uint64_t time_ns, uint32_t reset);

/**
 * uprof_task_unwinder_read_ahead: reads the stacks of the next tasks while the caller uses others
 *
 * Only for stacks of the kernel of one list, in order: other reads take time, and the copies get
 * old. The list must stay as it is until the unwinder is restarted or cleared.
 */
void uprof_task_unwinder_read_ahead(UprofTaskUnwinder *unwinder);
void uprof_task_unwinder_clear(UprofTaskUnwinder *unwinder);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(UprofTaskUnwinder, uprof_task_unwinder_clear)

/**
 * uprof_task_unwind_kernel: finds the frames of the kernel
 * @tasks: (inout): of UprofTask: see uprof_task_stacks_begin()
 * @i: the task; the stacks of the tasks that follow are copied, too
 * @depth: the most frames, at least 1
 */
void uprof_task_unwind_kernel(UprofTaskUnwinder *unwinder, GArray *tasks, guint i, unsigned depth);

/**
 * uprof_task_unwind_user: finds them again, with those of user space, if the last task has them and
 * still waits
 */
void uprof_task_unwind_user(UprofTaskUnwinder *unwinder, const UprofTask *task, unsigned depth);

/** uprof_task_unwinder_warn: tells of stacks that were not read, to save time */
void uprof_task_unwinder_warn(const UprofTaskUnwinder *unwinder, const char *shown,
                              const UprofNotices *notices);

/** uprof_task_unwinder_is_late: the time for stacks of the kernel is up */
bool uprof_task_unwinder_is_late(const UprofTaskUnwinder *unwinder);

/** uprof_task_unwind_wait: Returns: (nullable): the innermost frame outside the code that waits */
const UprofFrame *uprof_task_unwind_wait(const UprofTaskUnwinder *unwinder);
