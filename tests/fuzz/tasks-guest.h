/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * tasks-guest.h - the guest of fuzz-tasks.c, whose seeds make-seeds.c makes
 */
#pragma once

#include "build-printk.h"
#include "linux-guest.h"

enum {
    TASKS_GUEST_THREAD = 0x200020, /* of the kernel, a worker */
    TASKS_GUEST_REGS_WORDS = 21,
    TASKS_GUEST_WAITER_WORDS = 4, /* of the stack of the guest's own task, before the registers */
    TASKS_GUEST_PROCESSES = 5,
};

/** tasks_guest_waiter: Returns: guest-physical address of the waiter on the stack of @task */
static inline uint64_t
tasks_guest_waiter(const LinuxGuest *guest, uint64_t task)
{
    return linux_guest_get(guest, task + TASK_SAVED_SP) - LINUX_DIRECT + SWITCH_BYTES;
}

/* The guest's own task and @other wait for a lock, which @other holds as well. */
static inline void
tasks_guest_add_lock(LinuxGuest *guest, uint64_t other)
{
    const uint64_t words[TASKS_GUEST_WAITER_WORDS] = { 0 };
    const uint64_t lock = linux_guest_alloc(guest, LOCK_BYTES, 64);

    linux_guest_add_stack(guest, other, LINUX_IMAGE + 0x58, words, TASKS_GUEST_WAITER_WORDS);
    linux_guest_put(guest, lock + LOCK_COUNT, 0x102);
    linux_guest_put(guest, lock + LOCK_OWNER, LINUX_DIRECT + other + 3);
    linux_guest_add_waiter(guest, tasks_guest_waiter(guest, guest->task), guest->task,
                           lock + LOCK_HEAD);
    linux_guest_add_waiter(guest, tasks_guest_waiter(guest, other), other, lock + LOCK_HEAD);
}

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

static inline void
tasks_guest_put_log(LinuxGuest *guest)
{
    g_auto(PrintkBuilder) builder;

    printk_init(&builder, 3, 8);
    builder.facility = 0;
    printk_add(&builder, 6, "Linux version 6.4");
    printk_add(&builder, 0, "Oops: 0000 [#1] SMP");
    printk_add(&builder, 6, "two\nlines");
    linux_guest_put_log(guest, &builder);
}

/**
 * tasks_guest_new: makes a guest with processes, threads, a worker, a lock, a task in a namespace,
 * the tree of ids, and a log
 * @tree: (out) (optional): guest-physical address of the tree's root
 */
static inline LinuxGuest *
tasks_guest_new(uint64_t *tree)
{
    const LinuxPlan plan = { .lists_tasks = true, .n_vcpus = 2, .more_bytes = 192 * 1024 };
    enum { WORDS = TASKS_GUEST_WAITER_WORDS + TASKS_GUEST_REGS_WORDS };
    uint64_t words[WORDS] = { 0 };
    LinuxGuest *guest = linux_guest_new(&plan);
    const uint64_t ids = linux_guest_alloc(guest, 0x40, 64);
    uint64_t tasks[1 + TASKS_GUEST_PROCESSES] = { guest->task }, task = 0;

    words[TASKS_GUEST_WAITER_WORDS + 17] = 0x33;
    words[TASKS_GUEST_WAITER_WORDS + 19] = LINUX_STACK + 0x1000;
    for (unsigned i = 0; i < TASKS_GUEST_PROCESSES; i++) {
        task = linux_guest_add_task(guest, "task", 100 + i, i < 2 ? guest->mm : 0);
        linux_guest_list_task(guest, task, i == 1 ? guest->task : 0);
        tasks[1 + i] = task;
        if (i == 2)
            tasks_guest_add_worker(guest, task);
        if (i == 3)
            linux_guest_put(guest, task + TASK_IDS, LINUX_DIRECT + ids);
    }
    memory_guest_put_u32(guest->memory, ids + IDS_LEVEL, 1);
    memory_guest_put_u32(guest->memory, ids + IDS_NUMBERS, 103);
    memory_guest_put_u32(guest->memory, ids + IDS_NUMBERS + IDS_EACH, 1);
    linux_guest_add_stack(guest, guest->task, LINUX_IMAGE + 0x58, words, WORDS);
    tasks_guest_add_lock(guest, task);
    const uint64_t root = linux_guest_number_tasks(guest, tasks, G_N_ELEMENTS(tasks));
    if (tree)
        *tree = root;
    tasks_guest_put_log(guest);
    return guest;
}
