/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/windows.h"

/* So many short stacks in a row halve the window; each time that one is cut then, more. */
enum { PATIENCE_FIRST = 400, PATIENCE_MAX = 16 * PATIENCE_FIRST };

void
uprof_window_size_init(UprofWindowSize *size)
{
    *size = (UprofWindowSize){
        .wanted = UPROF_WINDOW_BYTES_FIRST,
        .patience = PATIENCE_FIRST,
    };
}

void
uprof_window_size_learn(UprofWindowSize *size, bool was_cut, uint64_t used)
{
    const gint wanted = g_atomic_int_get(&size->wanted);

    if (was_cut) {
        size->short_stacks = 0;
        size->patience = MIN(size->patience * 4, (unsigned)PATIENCE_MAX);
        g_atomic_int_set(&size->wanted,
                         CLAMP(wanted * 2, UPROF_WINDOW_BYTES_FIRST, UPROF_SNAPSHOT_BYTES_MAX));
        return;
    }
    if (used * 2 >= (uint64_t)wanted) {
        size->short_stacks = 0;
        return;
    }
    if (++size->short_stacks >= size->patience && wanted > UPROF_WINDOW_BYTES_MIN) {
        size->short_stacks = 0;
        g_atomic_int_set(&size->wanted, wanted / 2);
    }
}

/* Returns: bytes copied from @gva on */
static size_t
copy_window(UprofMem *mem, UprofSnapshot *snapshot, uint64_t gva, size_t len)
{
    const size_t offset = UPROF_SNAPSHOT_BYTES_MAX - uprof_snapshot_room(snapshot);
    const size_t got =
        uprof_mem_copy(mem, snapshot->vcpu, &snapshot->regs, gva, snapshot->bytes + offset, len);

    if (got > 0)
        snapshot->windows[snapshot->n_windows++] =
            (UprofWindow){ .gva = gva, .offset = (uint32_t)offset, .len = (uint32_t)got };
    return got;
}

void
uprof_windows_copy(UprofMem *mem, const UprofWindowSize *size, UprofSnapshot *snapshot)
{
    const uint64_t sp = snapshot->regs.sp;
    const uint64_t below = MIN(sp, (uint64_t)UPROF_WINDOW_BELOW_SP_BYTES);
    const size_t len = MIN((size_t)g_atomic_int_get(&size->wanted), uprof_snapshot_room(snapshot));

    if (copy_window(mem, snapshot, sp - below, len) > below)
        return;
    /* what lies below may be a guard page: begin with the page of the stack pointer */
    snapshot->n_windows = 0;
    copy_window(mem, snapshot, sp - sp % UPROF_PAGE_BYTES, len);
}
