/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Names of members: Linux, kernel/locking/mutex.h, rwsem.c and rtmutex_common.h, and
 * include/linux/mutex.h, rwsem.h, percpu-rwsem.h and fs.h. A kernel with PREEMPT_RT has other
 * locks.
 */
#include "lock-offsets-priv.h"

#include <glib.h>

#define MEMBER(name) G_STRUCT_OFFSET(UprofLockOffsets, name)

static const char of_mutex[] = "which mutex it waits for";
static const char of_semaphore[] = "which rw-semaphore it waits for";
static const char of_futex[] = "which PI futex it waits for";
static const char of_system[] = "which frozen file system it waits for";

/* clang-format off */
static const struct {
    const char *type, *name;
    size_t member;
    const char *tells; /* (nullable): what it tells; @first stands for @head */
} members[] = {
    { "mutex_waiter", "list", MEMBER(mutex.node), of_mutex },
    { "mutex_waiter", "task", MEMBER(mutex.task), of_mutex },
    { "mutex", "wait_list", MEMBER(mutex.head), NULL },
    { "mutex", "first_waiter", MEMBER(mutex.first), NULL },
    { "mutex", "owner", MEMBER(mutex.owner), of_mutex },
    { "rwsem_waiter", "list", MEMBER(rw_semaphore.node), of_semaphore },
    { "rwsem_waiter", "task", MEMBER(rw_semaphore.task), of_semaphore },
    { "rw_semaphore", "wait_list", MEMBER(rw_semaphore.head), NULL },
    { "rw_semaphore", "first_waiter", MEMBER(rw_semaphore.first), NULL },
    { "rw_semaphore", "owner", MEMBER(rw_semaphore.owner), of_semaphore },
    { "rw_semaphore", "count", MEMBER(count), of_semaphore },
    { "task_struct", "pi_blocked_on", MEMBER(blocked_on), of_futex },
    { "rt_mutex_waiter", "task", MEMBER(waiter_task), of_futex },
    { "rt_mutex_waiter", "lock", MEMBER(waiter_lock), of_futex },
    { "rt_mutex_base", "owner", MEMBER(base_owner), of_futex },
    { "wait_queue_entry", "entry", MEMBER(per_cpu.node), of_system },
    { "wait_queue_entry", "private", MEMBER(per_cpu.task), of_system },
    { "percpu_rw_semaphore", "waiters.head", MEMBER(per_cpu.head), of_system },
    { "super_block", "s_writers.rw_sem", MEMBER(levels), of_system },
    { "super_block", "s_writers.frozen", MEMBER(frozen), of_system },
    { "super_block", "s_id", MEMBER(device), of_system },
    { "super_block", "s_type", MEMBER(type), of_system },
    { "file_system_type", "name", MEMBER(type_at), of_system },
};
/* clang-format on */

void
uprof_lock_offsets_find(const UprofBtf *btf, UprofLockOffsets *offsets)
{
    offsets->per_cpu.first = offsets->per_cpu.owner = UPROF_LOCK_NO_MEMBER;
    for (size_t i = 0; i < G_N_ELEMENTS(members); i++) {
        uint64_t *offset = &G_STRUCT_MEMBER(uint64_t, offsets, members[i].member);
        if (!uprof_btf_member(btf, members[i].type, members[i].name, offset))
            *offset = UPROF_LOCK_NO_MEMBER;
    }
    if (!uprof_btf_size(btf, "percpu_rw_semaphore", &offsets->level_bytes))
        offsets->level_bytes = UPROF_LOCK_NO_MEMBER;
}

static bool
has_lock(const UprofLockLayout *layout)
{
    return layout->head != UPROF_LOCK_NO_MEMBER || layout->first != UPROF_LOCK_NO_MEMBER;
}

void
uprof_lock_offsets_missing(const UprofLockOffsets *offsets, UprofLockMissing *missing, void *data)
{
    for (size_t i = 0; i < G_N_ELEMENTS(members); i++)
        if (members[i].tells &&
            G_STRUCT_MEMBER(uint64_t, offsets, members[i].member) == UPROF_LOCK_NO_MEMBER)
            missing(data, members[i].tells, members[i].name);
    if (!has_lock(&offsets->mutex))
        missing(data, of_mutex, "wait_list");
    if (!has_lock(&offsets->rw_semaphore))
        missing(data, of_semaphore, "wait_list");
}

bool
uprof_lock_offsets_has_ring(const UprofLockLayout *layout)
{
    return layout->node != UPROF_LOCK_NO_MEMBER && layout->task != UPROF_LOCK_NO_MEMBER &&
           has_lock(layout);
}

bool
uprof_lock_offsets_has_waiter(const UprofLockOffsets *offsets)
{
    return offsets->blocked_on != UPROF_LOCK_NO_MEMBER &&
           offsets->waiter_task != UPROF_LOCK_NO_MEMBER &&
           offsets->waiter_lock != UPROF_LOCK_NO_MEMBER &&
           offsets->base_owner != UPROF_LOCK_NO_MEMBER;
}

bool
uprof_lock_offsets_has_system(const UprofLockOffsets *offsets)
{
    return offsets->levels != UPROF_LOCK_NO_MEMBER &&
           offsets->level_bytes != UPROF_LOCK_NO_MEMBER &&
           offsets->frozen != UPROF_LOCK_NO_MEMBER && offsets->device != UPROF_LOCK_NO_MEMBER &&
           offsets->type != UPROF_LOCK_NO_MEMBER && offsets->type_at != UPROF_LOCK_NO_MEMBER;
}
