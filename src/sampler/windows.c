/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "windows-priv.h"

#include "chain-priv.h"
#include "copy-priv.h"
#include "uprof/paging.h"

enum { CHAIN_BYTES = 12 * 1024 }; /* that stacks leave free for a chain */

static bool
is_arm(const UprofCopy *copy)
{
    return uprof_mem_arch(copy->mem)->family == UPROF_FAMILY_ARM;
}

static uint64_t
find_task_stack_end(const UprofLinks *links, uint64_t sp)
{
    return sp - sp % links->stack_bytes + links->stack_bytes;
}

/* Finds the stack pointer in the registers that are saved at @at. Returns: false if they are not of
 * user code */
static bool
find_user_sp(const UprofCopy *copy, uint64_t at, uint64_t *sp)
{
    const UprofArch *arch = uprof_mem_arch(copy->mem);
    const UprofLinks *links = copy->links;
    uint64_t mode;

    return uprof_snapshot_read_word(copy->snapshot, at + links->regs_mode, &mode) &&
           uprof_snapshot_read_word(copy->snapshot, at + links->regs_sp, sp) &&
           (mode & arch->mode_mask) == arch->user_mode && *sp != 0 && *sp < links->kernel_from;
}

/*
 * Copies the user stack of the task whose kernel stack ends at @end.
 * @regs: with page tables that map the kernel stack
 * @user_regs: with page tables of the process
 *
 * Returns: false if no user registers are saved there
 */
static bool
copy_user_stack(const UprofCopy *copy, const UprofRegs *regs, const UprofRegs *user_regs,
                uint64_t end)
{
    const UprofLinks *links = copy->links;
    const uint64_t at = end - links->regs_bytes;
    uint8_t saved[UPROF_LINKS_REGS_BYTES_MAX];
    uint64_t sp;

    if (links->regs_bytes == 0)
        return false;
    if (!uprof_snapshot_read(copy->snapshot, at, saved, links->regs_len))
        uprof_copy_window(copy, regs, at, links->regs_len);
    if (!find_user_sp(copy, at, &sp))
        return false;
    uprof_copy_stack(copy, user_regs, sp, 0);
    return true;
}

/*
 * On aarch64 the chain of frame records leads from one stack to the next: an interrupt's stack to
 * that of the task. Follows the chain through what is copied, and copies where it leads.
 */
static void
copy_next_stacks(const UprofCopy *copy)
{
    enum { STACKS_MAX = 2, RECORDS_MAX = 256 };
    const UprofRegs *regs = &copy->snapshot->regs;
    uint64_t fp = regs->fp;

    if (!is_arm(copy) || fp < regs->sp)
        return;
    for (unsigned i = 0, n = 0; n < STACKS_MAX; n++) {
        while (i++ < RECORDS_MAX && uprof_snapshot_read_word(copy->snapshot, fp, &fp))
            ;
        if (i >= RECORDS_MAX || fp == 0 || fp % sizeof(fp) != 0)
            return;
        const unsigned n_windows = copy->snapshot->n_windows;
        uprof_copy_stack(copy, regs, fp, 0);
        if (copy->snapshot->n_windows == n_windows)
            return;
    }
}

/* Returns: a stack pointer on the task's kernel stack; 0 if it is not known */
static uint64_t
copy_kernel_stacks(const UprofCopy *copy)
{
    const UprofLinks *links = copy->links;
    const UprofSnapshot *snapshot = copy->snapshot;
    const UprofRegs *regs = &snapshot->regs;
    const uint64_t irq_at = links->vcpus[snapshot->vcpu].irq_at;
    const uint64_t irq_end = irq_at + sizeof(irq_at);
    uint64_t sp = regs->sp;

    if (is_arm(
            copy)) { /* only a frame record leads from an interrupt's stack to that of the task */
        uprof_copy_stack(copy, regs, sp, find_task_stack_end(links, sp));
        copy_next_stacks(copy);
        return 0;
    }
    if (irq_at != 0 && sp < irq_end && irq_end - sp <= links->irq_bytes) {
        uprof_copy_stack(copy, regs, sp, irq_end);
        if (!uprof_copy_word(copy, regs, irq_at, &sp) || sp < links->kernel_from)
            return 0;
    }
    uprof_copy_stack(copy, regs, sp, find_task_stack_end(links, sp));
    return sp;
}

/* Returns: the snapshot's registers, with page tables that map the kernel */
static UprofRegs
get_kernel_regs(const UprofCopy *copy)
{
    UprofRegs regs = copy->snapshot->regs;

    if (copy->links->root != 0)
        regs.sys[uprof_mem_arch(copy->mem)->kernel_root] = copy->links->root;
    return regs;
}

/* Returns: @task, if it is of a process; else 0 */
static uint64_t
copy_part_of_task(const UprofCopy *copy, uint64_t task)
{
    const UprofLinks *links = copy->links;
    const UprofRegs regs = get_kernel_regs(copy);
    uint64_t memory;

    uprof_copy_window(copy, &regs, task + links->task_from, links->task_len);
    return uprof_snapshot_read(copy->snapshot, task + links->task_mm, &memory, sizeof(memory)) &&
                   memory != 0
               ? task
               : 0;
}

/* Returns: address of the task, if it is of a process; else 0 */
static uint64_t
copy_task(const UprofCopy *copy)
{
    const UprofLinks *links = copy->links;
    const uint64_t task_at = links->vcpus[copy->snapshot->vcpu].task_at;
    const UprofRegs regs = get_kernel_regs(copy);
    uint64_t task;

    if (task_at == 0 || !uprof_copy_word(copy, &regs, task_at, &task) || task < links->kernel_from)
        return 0;
    return copy_part_of_task(copy, task);
}

/* Returns: address of the kernel stack of @task; 0 if it is unknown */
static uint64_t
find_stack_of_task(const UprofCopy *copy, uint64_t task)
{
    const UprofLinks *links = copy->links;
    const UprofRegs regs = get_kernel_regs(copy);
    uint64_t stack;

    return links->task_stack != 0 &&
                   uprof_copy_peek(copy, &regs, task + links->task_stack, &stack) &&
                   stack >= links->kernel_from
               ? stack
               : 0;
}

/* @root: (out): physical address of the page tables of the task's process. Returns: false if it is
 * unknown */
static bool
find_user_root(const UprofCopy *copy, uint64_t task, uint64_t *root)
{
    const UprofLinks *links = copy->links;
    const UprofRegs kernel_regs = get_kernel_regs(copy);
    uint64_t memory, tables;

    if (links->all_memory == 0 ||
        !uprof_snapshot_read_word(copy->snapshot, task + links->task_mm, &memory) ||
        !uprof_copy_peek(copy, &kernel_regs, memory + links->mm_tables, &tables))
        return false;
    *root = tables - links->all_memory;
    return true;
}

/*
 * While the kernel changes tasks, the page tables are those of the next process already. The task
 * is still on its own kernel stack, and its process has its own tables. Processes that were forked
 * from one have the same addresses, so the tables must be compared.
 * @sp: on a kernel stack
 *
 * Returns: the snapshot's registers, with the page tables of the process
 */
static UprofRegs
get_user_regs(const UprofCopy *copy, uint64_t task, uint64_t sp)
{
    const UprofLinks *links = copy->links;
    const UprofArch *arch = uprof_mem_arch(copy->mem);
    UprofRegs regs = copy->snapshot->regs;
    uint64_t root;

    if (find_user_root(copy, task, &root) &&
        ((root ^ regs.sys[arch->user_root]) & links->root_mask) != 0 &&
        sp - find_stack_of_task(copy, task) <= links->stack_bytes)
        uprof_paging_use_process(arch, &regs, root);
    return regs;
}

/*
 * While the kernel changes tasks, the next one is the current one already, but the kernel is on the
 * stack of the task that ran. A register has this task.
 *
 * Returns: its address; 0 if there is none
 */
static uint64_t
find_stack_owner(const UprofCopy *copy)
{
    const UprofRegs *regs = &copy->snapshot->regs;

    for (unsigned i = UPROF_ARM_X0; i < UPROF_ARM_LR; i++) {
        const uint64_t task = regs->reg[i];
        const uint64_t stack = task >= copy->links->kernel_from && task % sizeof(task) == 0
                                   ? find_stack_of_task(copy, task)
                                   : 0;
        if (stack != 0 && regs->sp - stack < copy->links->stack_bytes)
            return task;
    }
    return 0;
}

/*
 * On aarch64 no register of a hold has the page tables of the process. The task has them.
 *
 * Returns: as copy_task(); 0 on other architectures
 */
static uint64_t
copy_task_with_tables(const UprofCopy *copy)
{
    const UprofRegs *regs = &copy->snapshot->regs;
    uint64_t task = is_arm(copy) ? copy_task(copy) : 0;
    uint64_t root;

    if (is_arm(copy) && regs->privilege == 0 &&
        (task == 0 || regs->sp - find_stack_of_task(copy, task) >= copy->links->stack_bytes)) {
        const uint64_t owner = find_stack_owner(copy);
        if (owner != 0)
            task = copy_part_of_task(copy, owner);
    }
    if (task != 0 && find_user_root(copy, task, &root))
        uprof_paging_use_process(uprof_mem_arch(copy->mem), &copy->snapshot->regs, root);
    return task;
}

/* Copies the user stack of the interrupted process whose frame ends at @end. */
static bool
copy_interrupted_stack(const UprofCopy *copy, uint64_t end)
{
    const UprofLinks *links = copy->links;
    const UprofRegs *regs = &copy->snapshot->regs;
    const uint64_t at = end - links->regs_len;
    uint64_t sp;

    if (is_arm(copy) || regs->sp > at + links->regs_mode - sizeof(sp) ||
        !find_user_sp(copy, at, &sp))
        return false;
    uprof_copy_stack(copy, regs, sp, 0);
    return true;
}

/*
 * Where the kernel enters or leaves a process, it is on a small stack of the processor, which has
 * the frame of an interrupt at its end. After other entries the task knows its own stack.
 */
static void
copy_stack_of_task(const UprofCopy *copy, uint64_t task)
{
    const UprofRegs *regs = &copy->snapshot->regs;
    const UprofRegs kernel_regs = get_kernel_regs(copy);

    if (copy_interrupted_stack(copy, regs->sp - regs->sp % UPROF_PAGE_BYTES + UPROF_PAGE_BYTES))
        return;
    const uint64_t stack = find_stack_of_task(copy, task);
    if (stack != 0)
        copy_user_stack(copy, &kernel_regs, regs, stack + copy->links->stack_bytes);
}

/*
 * @task: 0: it is of no process; the kernel may be on the stack of the next task, which is
 * @sp: on a kernel stack; 0 if it is unknown
 * @user_regs: with the page tables of the process
 */
static void
copy_stack_of_process(const UprofCopy *copy, uint64_t task, uint64_t sp, const UprofRegs *user_regs)
{
    const UprofRegs *regs = &copy->snapshot->regs;

    if ((sp == 0 ||
         !copy_user_stack(copy, regs, user_regs, find_task_stack_end(copy->links, sp))) &&
        task != 0)
        copy_stack_of_task(copy, task);
}

static bool
has_chains(const UprofCopy *copy)
{
    return copy->chains && copy->links->task_thread != 0 &&
           g_atomic_int_get(&copy->chains->has_any);
}

/* @chain: (out): of the thread that ran, if true is returned */
static bool
find_chain(const UprofCopy *copy, uint64_t task, uint64_t *thread, UprofChain *chain)
{
    const UprofRegs kernel_regs = get_kernel_regs(copy);
    uint64_t memory;

    if (task == 0 || !has_chains(copy) ||
        !uprof_snapshot_read(copy->snapshot, task + copy->links->task_mm, &memory,
                             sizeof(memory)) ||
        !uprof_copy_word(copy, &kernel_regs, task + copy->links->task_thread, thread))
        return false;
    return uprof_chains_find(copy->chains, GUINT64_FROM_LE(memory), *thread, chain);
}

/* Copies what belongs to the task that ran, and to its process. @task: of copy_task_with_tables()
 */
static void
copy_process(UprofCopy *copy, bool is_kernel, uint64_t sp, uint64_t task)
{
    const UprofRegs *regs = &copy->snapshot->regs;

    copy->reserved = has_chains(copy) ? CHAIN_BYTES : 0;
    if (!is_arm(copy))
        task = copy_task(copy);
    const UprofRegs user_regs = is_kernel && task != 0 ? get_user_regs(copy, task, sp) : *regs;
    if (is_kernel)
        copy_stack_of_process(copy, task, sp, &user_regs);
    uint64_t thread;
    copy->reserved = 0;
    UprofChain chain;
    if (find_chain(copy, task, &thread, &chain))
        uprof_chain_copy(copy, &user_regs, &chain, thread);
}

void
uprof_windows_copy(UprofMem *mem, const UprofWindowSize *size, const UprofLinks *links,
                   const UprofChains *chains, UprofSnapshot *snapshot)
{
    const UprofRegs *regs = &snapshot->regs;
    UprofCopy copy = {
        .mem = mem,
        .links = links,
        .chains = chains,
        .snapshot = snapshot,
        .wanted = (size_t)g_atomic_int_get(&size->wanted),
    };

    if (!links || snapshot->vcpu >= links->n_vcpus) {
        uprof_copy_stack(&copy, regs, regs->sp, 0);
        copy_next_stacks(&copy);
        return;
    }
    copy.reserved = sizeof(uint64_t) + links->task_len + (has_chains(&copy) ? CHAIN_BYTES : 0);
    const bool is_kernel = regs->privilege == 0 && regs->sp >= links->kernel_from;
    const uint64_t task = copy_task_with_tables(&copy);
    uint64_t sp = 0;
    if (is_kernel)
        sp = copy_kernel_stacks(&copy);
    else
        uprof_copy_stack(&copy, regs, regs->sp, 0);
    copy_process(&copy, is_kernel, sp, task);
}
