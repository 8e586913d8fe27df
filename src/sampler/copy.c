/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "copy-priv.h"

size_t
uprof_copy_window(const UprofCopy *copy, const UprofRegs *regs, uint64_t gva, size_t len)
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

void
uprof_copy_stack(const UprofCopy *copy, const UprofRegs *regs, uint64_t sp, uint64_t end)
{
    const uint64_t below = MIN(sp, (uint64_t)UPROF_WINDOW_BELOW_SP_BYTES);
    const uint64_t left = end > sp ? end - sp : UINT64_MAX;
    const unsigned n_windows = copy->snapshot->n_windows;

    if (uprof_copy_window(copy, regs, sp - below, MIN(copy->wanted, left + MIN(below, ~left))) >
        below)
        return;
    /* the page below may be a guard page: begin with the page of the stack pointer */
    copy->snapshot->n_windows = n_windows;
    const uint64_t page = sp - sp % UPROF_PAGE_BYTES;
    uprof_copy_window(copy, regs, page, MIN(copy->wanted, left + MIN(sp - page, ~left)));
}

bool
uprof_copy_word(const UprofCopy *copy, const UprofRegs *regs, uint64_t gva, uint64_t *word)
{
    if (!uprof_snapshot_read(copy->snapshot, gva, word, sizeof(*word)) &&
        (uprof_copy_window(copy, regs, gva, sizeof(*word)) < sizeof(*word) ||
         !uprof_snapshot_read(copy->snapshot, gva, word, sizeof(*word))))
        return false;
    *word = GUINT64_FROM_LE(*word);
    return true;
}

bool
uprof_copy_peek(const UprofCopy *copy, const UprofRegs *regs, uint64_t gva, uint64_t *word)
{
    if (uprof_mem_copy(copy->mem, copy->snapshot->vcpu, regs, gva, word, sizeof(*word)) <
        sizeof(*word))
        return false;
    *word = GUINT64_FROM_LE(*word);
    return true;
}
