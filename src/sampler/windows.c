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

/* Copies from a little below @sp up to @end; @end is 0 if unknown. */
static void
copy_stack(const Copy *copy, uint64_t sp, uint64_t end)
{
    const UprofRegs *regs = &copy->snapshot->regs;
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
 *
 * Returns: false if no user registers are saved there
 */
static bool
copy_user_stack(const Copy *copy, const UprofRegs *regs, uint64_t end)
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
    copy_stack(copy, GUINT64_FROM_LE(sp), 0);
    return true;
}

/* Returns: false if the stack pointer leads to no user stack */
static bool
copy_kernel_stacks(const Copy *copy)
{
    const UprofLinks *links = copy->links;
    const UprofSnapshot *snapshot = copy->snapshot;
    const UprofRegs *regs = &snapshot->regs;
    const uint64_t irq_at = links->vcpus[snapshot->vcpu].irq_at;
    const uint64_t irq_end = irq_at + sizeof(irq_at);
    uint64_t sp = regs->sp;

    if (irq_at != 0 && sp < irq_end && irq_end - sp <= links->irq_bytes) {
        copy_stack(copy, sp, irq_end);
        if (!read_word(copy, regs, irq_at, &sp) || sp < links->kernel_from)
            return false;
    }
    const uint64_t end = find_task_stack_end(links, sp);
    copy_stack(copy, sp, end);
    return copy_user_stack(copy, regs, end);
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
    copy_stack(copy, GUINT64_FROM_LE(sp), 0);
    return true;
}

/*
 * Where the kernel enters or leaves a process, it is on a small stack of the processor, which has the frame
 * of an interrupt at its end. After other entries the task knows its own stack.
 */
static void
copy_stack_of_task(const Copy *copy, uint64_t task)
{
    const UprofLinks *links = copy->links;
    const uint64_t sp = copy->snapshot->regs.sp;
    const UprofRegs regs = get_kernel_regs(copy);
    uint64_t stack;

    if (copy_interrupted_stack(copy, sp - sp % UPROF_PAGE_BYTES + UPROF_PAGE_BYTES) ||
        links->task_stack == 0 ||
        uprof_mem_copy(copy->mem, copy->snapshot->vcpu, &regs, task + links->task_stack, &stack,
                       sizeof(stack)) < sizeof(stack))
        return;
    stack = GUINT64_FROM_LE(stack);
    if (stack >= links->kernel_from)
        copy_user_stack(copy, &regs, stack + links->stack_bytes);
}

void
uprof_windows_copy(UprofMem *mem, const UprofWindowSize *size, const UprofLinks *links,
                   UprofSnapshot *snapshot)
{
    const uint64_t sp = snapshot->regs.sp;
    Copy copy = {
        .mem = mem,
        .links = links,
        .snapshot = snapshot,
        .wanted = (size_t)g_atomic_int_get(&size->wanted),
    };

    if (!links || snapshot->vcpu >= links->n_vcpus) {
        copy_stack(&copy, sp, 0);
        return;
    }
    copy.reserved = sizeof(uint64_t) + links->task_len;
    bool has_user_stack = true;
    if (snapshot->regs.privilege == 0 && sp >= links->kernel_from)
        has_user_stack = copy_kernel_stacks(&copy);
    else
        copy_stack(&copy, sp, 0);
    copy.reserved = 0;
    const uint64_t task = copy_task(&copy);
    if (!has_user_stack && task != 0)
        copy_stack_of_task(&copy, task);
}
