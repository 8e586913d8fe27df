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

/* Copies the user stack of the task whose kernel stack ends at @end. */
static void
copy_user_stack(const Copy *copy, uint64_t end)
{
    const UprofLinks *links = copy->links;
    const UprofRegs *regs = &copy->snapshot->regs;
    const uint64_t at = end - links->regs_bytes;
    uint8_t saved[UPROF_LINKS_REGS_BYTES_MAX];
    uint64_t cs, sp;

    if (links->regs_bytes == 0)
        return;
    if (!uprof_snapshot_read(copy->snapshot, at, saved, links->regs_len))
        copy_window(copy, regs, at, links->regs_len);
    if (uprof_snapshot_read(copy->snapshot, at + links->regs_cs, &cs, sizeof(cs)) &&
        uprof_snapshot_read(copy->snapshot, at + links->regs_sp, &sp, sizeof(sp)) &&
        (GUINT64_FROM_LE(cs) & 3) == 3 && GUINT64_FROM_LE(sp) < links->kernel_from)
        copy_stack(copy, GUINT64_FROM_LE(sp), 0);
}

static void
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
            return;
    }
    const uint64_t end = find_task_stack_end(links, sp);
    copy_stack(copy, sp, end);
    copy_user_stack(copy, end);
}

static void
copy_task(const Copy *copy)
{
    const UprofLinks *links = copy->links;
    const uint64_t task_at = links->vcpus[copy->snapshot->vcpu].task_at;
    UprofRegs regs = copy->snapshot->regs;
    uint64_t task;

    if (links->root != 0)
        regs.sys[UPROF_X86_CR3] = links->root;
    if (task_at != 0 && read_word(copy, &regs, task_at, &task) && task >= links->kernel_from)
        copy_window(copy, &regs, task + links->task_from, links->task_len);
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
    if (snapshot->regs.privilege == 0 && sp >= links->kernel_from)
        copy_kernel_stacks(&copy);
    else
        copy_stack(&copy, sp, 0);
    copy.reserved = 0;
    copy_task(&copy);
}
