/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * tasks-guest.h - the guest of fuzz-tasks.c, whose seeds make-seeds.c makes
 */
#pragma once

#include "linux-guest.h"

enum {
    TASKS_GUEST_THREAD = 0x200020, /* of the kernel, a worker */
    TASKS_GUEST_REGS_WORDS = 21,
    TASKS_GUEST_PROCESSES = 5,
};

static inline void
tasks_guest_add_worker(LinuxGuest *guest, uint64_t task)
{
    const uint64_t thread = linux_guest_alloc(guest, 0x40, 64);
    const uint64_t worker = linux_guest_alloc(guest, 0x40, 64);

    memory_guest_put_u32(guest->memory, task + TASK_FLAGS, TASKS_GUEST_THREAD);
    linux_guest_put(guest, task + TASK_WORKER, LINUX_DIRECT + thread);
    linux_guest_put(guest, thread + THREAD_DATA, LINUX_DIRECT + worker);
    linux_guest_put(guest, worker + WORKER_POOL, LINUX_DIRECT + worker);
    linux_guest_put_text(guest, worker + WORKER_TEXT, "events");
}

/** tasks_guest_new: makes a guest with processes, threads, a worker, and a task in a namespace */
static inline LinuxGuest *
tasks_guest_new(void)
{
    const LinuxPlan plan = { .lists_tasks = true, .n_vcpus = 2, .more_bytes = 128 * 1024 };
    const uint64_t regs[TASKS_GUEST_REGS_WORDS] = { [17] = 0x33, [19] = LINUX_STACK + 0x1000 };
    LinuxGuest *guest = linux_guest_new(&plan);
    const uint64_t ids = linux_guest_alloc(guest, 0x40, 64);

    for (unsigned i = 0; i < TASKS_GUEST_PROCESSES; i++) {
        const uint64_t task = linux_guest_add_task(guest, "task", 100 + i, i < 2 ? guest->mm : 0);
        linux_guest_list_task(guest, task, i == 1 ? guest->task : 0);
        if (i == 2)
            tasks_guest_add_worker(guest, task);
        if (i == 3)
            linux_guest_put(guest, task + TASK_IDS, LINUX_DIRECT + ids);
    }
    memory_guest_put_u32(guest->memory, ids + IDS_LEVEL, 1);
    memory_guest_put_u32(guest->memory, ids + IDS_NUMBERS, 103);
    memory_guest_put_u32(guest->memory, ids + IDS_NUMBERS + IDS_EACH, 1);
    linux_guest_add_stack(guest, guest->task, LINUX_IMAGE + 0x58, regs, TASKS_GUEST_REGS_WORDS);
    return guest;
}
