/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * task-locks-priv.h - texts about the locks that tasks wait for
 */
#pragma once

#include "uprof/json-writer.h"
#include "uprof/notice.h"
#include "uprof/task-lock.h"

#include "task-unwind-priv.h"

/** UprofTaskLocks: the search for locks of a list of tasks */
typedef struct {
    UprofTaskLockSearch search;
    GArray *all; /* owned: of UprofTask: all tasks of the guest, by address */
    uint64_t began_ns;
    unsigned n_cut; /* tasks whose locks were not searched, to save time */
} UprofTaskLocks;

/** uprof_task_locks_init: @all: (transfer full): of UprofTask: all tasks of the guest */
void uprof_task_locks_init(UprofTaskLocks *locks, const UprofPipeline *pipeline, GArray *all);
void uprof_task_locks_clear(UprofTaskLocks *locks);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(UprofTaskLocks, uprof_task_locks_clear)

/**
 * uprof_task_locks_find: finds the lock that the last task of @unwinder waits for
 * @task: that task
 * @lock: (out): zeros if there is none
 */
bool uprof_task_locks_find(UprofTaskLocks *locks, const UprofTaskUnwinder *unwinder,
                           const UprofTask *task, UprofTaskLock *lock);

/** uprof_task_locks_warn: tells of tasks whose locks were not searched */
void
uprof_task_locks_warn(const UprofTaskLocks *locks, const char *shown, const UprofNotices *notices);

/** uprof_task_locks_append: appends what the tasks of one group wait for. @found: of UprofTaskLock
 */
void uprof_task_locks_append(GString *out, const UprofTaskLocks *locks, const GArray *found);

/** uprof_task_locks_write: the member "lock" of a task */
void uprof_task_locks_write(UprofJsonWriter *json, const UprofTaskLocks *locks,
                            const UprofTaskLock *lock);
