/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * task-lock.h - the lock that a task of a Linux guest waits for, and its owner
 *
 * A task that waits has a structure on its kernel stack, its waiter. The waiters of a lock are in a
 * ring with the lock. A lock is reported only if the ring is consistent in both directions, and
 * each waiter is on the stack of its task. The guest runs meanwhile, so the task must still wait at
 * the end.
 */
#pragma once

#include "uprof/task-stack.h"

enum {
    UPROF_TASK_LOCK_TEXT_BYTES = 32,
};

/** UprofTaskLockKind: what a task waits for */
typedef enum {
    UPROF_TASK_LOCK_NONE, /* the task waits for no lock that is known */
    UPROF_TASK_LOCK_MUTEX,
    UPROF_TASK_LOCK_READ,  /* a rw-semaphore, for reading */
    UPROF_TASK_LOCK_WRITE, /* a rw-semaphore, for writing */
    UPROF_TASK_LOCK_FUTEX, /* a PI futex */
    /* a rw-semaphore with a part for each CPU, for reading; it has no owner. See @device. */
    UPROF_TASK_LOCK_PER_CPU,
} UprofTaskLockKind;

/** UprofTaskLockHolder: what the lock stores about its owner */
typedef enum {
    UPROF_TASK_LOCK_UNTOLD,   /* this kind of lock stores no owner */
    UPROF_TASK_LOCK_RELEASED, /* nobody holds it any more; a waiter will get it */
    UPROF_TASK_LOCK_HELD,     /* @owner holds it */
    UPROF_TASK_LOCK_READERS,  /* readers hold it; @owner came last, and may have released it */
    UPROF_TASK_LOCK_UNKNOWN,  /* the owner is none of the tasks */
} UprofTaskLockHolder;

/** UprofTaskLock: all zeros: no lock is known */
typedef struct {
    UprofTaskLockKind kind;
    UprofTaskLockHolder holder;
    uint64_t address;   /* of the lock */
    uint64_t owner;     /* address of a task of the search, or 0 */
    uint64_t n_readers; /* if READERS */
    unsigned n_waiters; /* with the task itself; 0 if it is not known */
    /* a frozen file system, and its device, safe to print; "": none */
    char type[UPROF_TASK_LOCK_TEXT_BYTES];
    char device[UPROF_TASK_LOCK_TEXT_BYTES];
} UprofTaskLock;

/** UprofTaskLockSearch: all members are borrowed */
typedef struct {
    const UprofLinux *kernel;
    UprofMem *mem;       /* the worker's */
    const GArray *tasks; /* of UprofTask: all tasks of the guest, after uprof_task_lock_sort() */
} UprofTaskLockSearch;

/** uprof_task_lock_sort: sorts @tasks (of UprofTask) by address */
void uprof_task_lock_sort(GArray *tasks);

/** uprof_task_lock_task: Returns: (nullable): the task at @address; borrowed from the search */
const UprofTask *uprof_task_lock_task(const UprofTaskLockSearch *search, uint64_t address);

/** uprof_task_lock_kind: Returns: the kind of lock for which the kernel's @function waits */
UprofTaskLockKind uprof_task_lock_kind(const char *function);

/** uprof_task_lock_kind_name: Returns: "mutex", "rwsem-read", "rwsem-write", "rt-mutex" ...;
 * literal */
const char *uprof_task_lock_kind_name(UprofTaskLockKind kind);

/**
 * uprof_task_lock_find:
 * @kind: by the innermost function of the stack that has one
 * @task, @stack: of uprof_task_stacks_begin(), COPIED
 * @lock: (out): zeros if no lock is found
 *
 * Takes up to 16,384 reads, whatever the guest contains. A lock with more than 4,096 waiters is
 * not found.
 *
 * Returns: true if a lock was found
 */
bool uprof_task_lock_find(const UprofTaskLockSearch *search, UprofTaskLockKind kind,
                          const UprofTask *task, const UprofTaskStack *stack, UprofTaskLock *lock);
