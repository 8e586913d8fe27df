/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "windows-priv.h"

/* The copies of one sample. */
typedef struct {
    UprofMem *mem;           /* borrowed */
    const UprofLinks *links; /* borrowed; NULL: only the stack is copied */
    UprofSnapshot *snapshot; /* borrowed */
    size_t wanted;           /* bytes of each stack */
    size_t reserved;         /* bytes of the snapshot that stacks must leave free */
} Copy;

/* Returns: how many bytes were copied from @gva on, by the page tables of @regs */
static size_t
copy_window(const Copy *copy, const UprofRegs *regs, uint64_t gva, size_t len)
{
    UprofSnapshot *snapshot = copy->snapshot;
    const size_t room = uprof_snapshot_room(snapshot);
    const size_t offset = UPROF_SNAPSHOT_BYTES_MAX - room;

    if (room <= copy->reserved)
        return 0;
    const size_t got = uprof_mem_copy(copy->mem, snapshot->vcpu, regs, gva,
                                      snapshot->bytes + offset, MIN(len, room - copy->reserved));
    if (got > 0)
        snapshot->windows[snapshot->n_windows++] =
            (UprofWindow){ .gva = gva, .offset = (uint32_t)offset, .len = (uint32_t)got };
    return got;
}

/* Copies from a little below @sp up to @end, by the page tables of @regs; @end is 0 if unknown. */
static void
copy_stack(const Copy *copy, const UprofRegs *regs, uint64_t sp, uint64_t end)
{
    const uint64_t below = MIN(sp, (uint64_t)UPROF_WINDOW_BELOW_SP_BYTES);
    const uint64_t left = end > sp ? end - sp : UINT64_MAX;
    const unsigned n_windows = copy->snapshot->n_windows;

    if (copy_window(copy, regs, sp - below, MIN(copy->wanted, left + MIN(below, ~left))) > below)
        return;
    /* the page below may be a guard page: begin with the page of the stack pointer */
    copy->snapshot->n_windows = n_windows;
    const uint64_t page = sp - sp % UPROF_PAGE_BYTES;
    copy_window(copy, regs, page, MIN(copy->wanted, left + MIN(sp - page, ~left)));
}

static bool
read_word(const Copy *copy, const UprofRegs *regs, uint64_t gva, uint64_t *word)
{
    if (!uprof_snapshot_read(copy->snapshot, gva, word, sizeof(*word)) &&
        (copy_window(copy, regs, gva, sizeof(*word)) < sizeof(*word) ||
         !uprof_snapshot_read(copy->snapshot, gva, word, sizeof(*word))))
        return false;
    *word = GUINT64_FROM_LE(*word);
    return true;
}

static uint64_t
find_task_stack_end(const UprofLinks *links, uint64_t sp)
{
    return sp - sp % links->stack_bytes + links->stack_bytes;
}

/*
 * Copies the user stack of the task whose kernel stack ends at @end.
 * @regs: with page tables that map the kernel stack
 * @user_regs: with page tables of the process
 *
 * Returns: false if no user registers are saved there
 */
static bool
copy_user_stack(const Copy *copy, const UprofRegs *regs, const UprofRegs *user_regs, uint64_t end)
{
    const UprofLinks *links = copy->links;
    const uint64_t at = end - links->regs_bytes;
    uint8_t saved[UPROF_LINKS_REGS_BYTES_MAX];
    uint64_t cs, sp;

    if (links->regs_bytes == 0)
        return false;
    if (!uprof_snapshot_read(copy->snapshot, at, saved, links->regs_len))
        copy_window(copy, regs, at, links->regs_len);
    if (!uprof_snapshot_read(copy->snapshot, at + links->regs_cs, &cs, sizeof(cs)) ||
        !uprof_snapshot_read(copy->snapshot, at + links->regs_sp, &sp, sizeof(sp)) ||
        (GUINT64_FROM_LE(cs) & 3) != 3 || GUINT64_FROM_LE(sp) >= links->kernel_from)
        return false;
    copy_stack(copy, user_regs, GUINT64_FROM_LE(sp), 0);
    return true;
}

/* Returns: a stack pointer on the task's kernel stack; 0 if it cannot be read */
static uint64_t
copy_kernel_stacks(const Copy *copy)
{
    const UprofLinks *links = copy->links;
    const UprofSnapshot *snapshot = copy->snapshot;
    const UprofRegs *regs = &snapshot->regs;
    const uint64_t irq_at = links->vcpus[snapshot->vcpu].irq_at;
    const uint64_t irq_end = irq_at + sizeof(irq_at);
    uint64_t sp = regs->sp;

    if (irq_at != 0 && sp < irq_end && irq_end - sp <= links->irq_bytes) {
        copy_stack(copy, regs, sp, irq_end);
        if (!read_word(copy, regs, irq_at, &sp) || sp < links->kernel_from)
            return 0;
    }
    copy_stack(copy, regs, sp, find_task_stack_end(links, sp));
    return sp;
}

/* Returns: the snapshot's registers, with page tables that map the kernel */
static UprofRegs
get_kernel_regs(const Copy *copy)
{
    UprofRegs regs = copy->snapshot->regs;

    if (copy->links->root != 0)
        regs.sys[UPROF_X86_CR3] = copy->links->root;
    return regs;
}

/* Returns: address of the task, if it is of a process; else 0 */
static uint64_t
copy_task(const Copy *copy)
{
    const UprofLinks *links = copy->links;
    const uint64_t task_at = links->vcpus[copy->snapshot->vcpu].task_at;
    const UprofRegs regs = get_kernel_regs(copy);
    uint64_t task, memory;

    if (task_at == 0 || !read_word(copy, &regs, task_at, &task) || task < links->kernel_from)
        return 0;
    copy_window(copy, &regs, task + links->task_from, links->task_len);
    return uprof_snapshot_read(copy->snapshot, task + links->task_mm, &memory, sizeof(memory)) &&
                   memory != 0
               ? task
               : 0;
}

/* Reads a word that no window needs. */
static bool
peek_word(const Copy *copy, const UprofRegs *regs, uint64_t gva, uint64_t *word)
{
    if (uprof_mem_copy(copy->mem, copy->snapshot->vcpu, regs, gva, word, sizeof(*word)) <
        sizeof(*word))
        return false;
    *word = GUINT64_FROM_LE(*word);
    return true;
}

/* Returns: address of the kernel stack of @task; 0 if it is unknown */
static uint64_t
find_stack_of_task(const Copy *copy, uint64_t task)
{
    const UprofLinks *links = copy->links;
    const UprofRegs regs = get_kernel_regs(copy);
    uint64_t stack;

    return links->task_stack != 0 && peek_word(copy, &regs, task + links->task_stack, &stack) &&
                   stack >= links->kernel_from
               ? stack
               : 0;
}

/*
 * While the kernel changes tasks, the page tables are those of the next process already. The task is still
 * on its own kernel stack, and its process has its own tables. Processes that were forked from one have
 * the same addresses, so the tables must be compared.
 * @sp: on a kernel stack
 *
 * Returns: the snapshot's registers, with the page tables of the process
 */
static UprofRegs
get_user_regs(const Copy *copy, uint64_t task, uint64_t sp)
{
    const UprofLinks *links = copy->links;
    const UprofRegs kernel_regs = get_kernel_regs(copy);
    UprofRegs regs = copy->snapshot->regs;
    uint64_t memory, tables;

    if (links->all_memory == 0 ||
        !uprof_snapshot_read(copy->snapshot, task + links->task_mm, &memory, sizeof(memory)) ||
        !peek_word(copy, &kernel_regs, GUINT64_FROM_LE(memory) + links->mm_tables, &tables))
        return regs;
    const uint64_t root = tables - links->all_memory;
    if (((root ^ regs.sys[UPROF_X86_CR3]) & links->root_mask) != 0 &&
        sp - find_stack_of_task(copy, task) <= links->stack_bytes)
        regs.sys[UPROF_X86_CR3] = root;
    return regs;
}

/* Copies the user stack of the interrupted process whose frame ends at @end. */
static bool
copy_interrupted_stack(const Copy *copy, uint64_t end)
{
    const UprofLinks *links = copy->links;
    const UprofRegs *regs = &copy->snapshot->regs;
    const uint64_t cs_at = end - links->regs_len + links->regs_cs;
    const uint64_t sp_at = end - links->regs_len + links->regs_sp;
    uint64_t cs, sp;

    if (regs->sp > cs_at - sizeof(cs) ||
        !uprof_snapshot_read(copy->snapshot, cs_at, &cs, sizeof(cs)) ||
        !uprof_snapshot_read(copy->snapshot, sp_at, &sp, sizeof(sp)) ||
        (GUINT64_FROM_LE(cs) & 3) != 3 || GUINT64_FROM_LE(sp) >= links->kernel_from)
        return false;
    copy_stack(copy, regs, GUINT64_FROM_LE(sp), 0);
    return true;
}

/*
 * Where the kernel enters or leaves a process, it is on a small stack of the processor, which has the frame of
 * an interrupt at its end. After other entries the task knows its own stack.
 */
static void
copy_stack_of_task(const Copy *copy, uint64_t task)
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
 */
static void
copy_stack_of_process(const Copy *copy, uint64_t task, uint64_t sp)
{
    const UprofRegs *regs = &copy->snapshot->regs;
    const UprofRegs user_regs = task != 0 ? get_user_regs(copy, task, sp) : *regs;

    if ((sp == 0 ||
         !copy_user_stack(copy, regs, &user_regs, find_task_stack_end(copy->links, sp))) &&
        task != 0)
        copy_stack_of_task(copy, task);
}

void
uprof_windows_copy(UprofMem *mem, const UprofWindowSize *size, const UprofLinks *links,
                   UprofSnapshot *snapshot)
{
    const UprofRegs *regs = &snapshot->regs;
    Copy copy = {
        .mem = mem,
        .links = links,
        .snapshot = snapshot,
        .wanted = (size_t)g_atomic_int_get(&size->wanted),
    };

    if (!links || snapshot->vcpu >= links->n_vcpus) {
        copy_stack(&copy, regs, regs->sp, 0);
        return;
    }
    copy.reserved = sizeof(uint64_t) + links->task_len;
    const bool is_kernel = regs->privilege == 0 && regs->sp >= links->kernel_from;
    uint64_t sp = 0;
    if (is_kernel)
        sp = copy_kernel_stacks(&copy);
    else
        copy_stack(&copy, regs, regs->sp, 0);
    copy.reserved = 0;
    const uint64_t task = copy_task(&copy);
    if (is_kernel)
        copy_stack_of_process(&copy, task, sp);
}
