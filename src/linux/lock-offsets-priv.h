/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * lock-offsets-priv.h - where the kernel's locks have their waiters and owners
 */
#pragma once

#include "uprof/btf.h"

/* The offset of a member that this kernel does not have. */
#define UPROF_LOCK_NO_MEMBER UINT64_MAX

/** UprofLockLayout: a kind of lock whose waiters are in a ring; offsets in bytes */
typedef struct {
    uint64_t node; /* of a waiter: its node in the ring */
    uint64_t task; /* of a waiter: pointer to its task */
    uint64_t head; /* of the lock: head of the ring ... */
    uint64_t
        first; /* ... or, in newer kernels, pointer to the first waiter; the ring has no head */
    uint64_t owner; /* of the lock: pointer to a task, with flags in its low bits */
} UprofLockLayout;

/** UprofLockOffsets: offsets in bytes, or %UPROF_LOCK_NO_MEMBER */
typedef struct {
    UprofLockLayout mutex, rw_semaphore;
    UprofLockLayout per_cpu;           /* struct percpu_rw_semaphore; it has no owner */
    uint64_t count;                    /* struct rw_semaphore: readers, and flags */
    uint64_t blocked_on;               /* struct task_struct: pointer to ... */
    uint64_t waiter_task, waiter_lock; /* ... struct rt_mutex_waiter: pointers */
    uint64_t base_owner;               /* struct rt_mutex_base: as UprofLockLayout.owner */
    uint64_t levels, level_bytes;      /* struct super_block: array of semaphores; size of one */
    uint64_t frozen, device, type, type_at; /* struct super_block; struct file_system_type: name */
} UprofLockOffsets;

/** uprof_lock_offsets_find: @offsets: (out) */
void uprof_lock_offsets_find(const UprofBtf *btf, UprofLockOffsets *offsets);

/** UprofLockMissing: takes what cannot be told, and the member that is missing for it; literals */
typedef void UprofLockMissing(void *data, const char *tells, const char *name);

/** uprof_lock_offsets_missing: calls @missing for each member that this kernel does not have */
void
uprof_lock_offsets_missing(const UprofLockOffsets *offsets, UprofLockMissing *missing, void *data);

/** uprof_lock_offsets_has_ring: is the layout known, as far as the waiters and the lock are found
 * by it? */
bool uprof_lock_offsets_has_ring(const UprofLockLayout *layout);

/** uprof_lock_offsets_has_waiter: are waiters of PI futexes known? */
bool uprof_lock_offsets_has_waiter(const UprofLockOffsets *offsets);

/** uprof_lock_offsets_has_system: are file systems known? */
bool uprof_lock_offsets_has_system(const UprofLockOffsets *offsets);
