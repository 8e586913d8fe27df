/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/window-size.h"

#include "uprof/snapshot.h"

/* See UprofWindowSize.patience. */
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
