/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/snapshot.h"

#include <string.h>

void
uprof_snapshot_clear(UprofSnapshot *snapshot)
{
    memset(snapshot, 0, G_STRUCT_OFFSET(UprofSnapshot, bytes));
}

/* Returns: bytes that the windows use */
static size_t
count_used(const UprofSnapshot *snapshot)
{
    size_t used = 0;

    for (unsigned i = 0; i < snapshot->n_windows; i++) {
        const UprofWindow *window = &snapshot->windows[i];

        used = MAX(used, (size_t)window->offset + window->len);
    }
    return MIN(used, (size_t)UPROF_SNAPSHOT_BYTES_MAX);
}

size_t
uprof_snapshot_bytes(const UprofSnapshot *snapshot)
{
    return G_STRUCT_OFFSET(UprofSnapshot, bytes) + count_used(snapshot);
}

size_t
uprof_snapshot_room(const UprofSnapshot *snapshot)
{
    return snapshot->n_windows < UPROF_WINDOWS_MAX ? UPROF_SNAPSHOT_BYTES_MAX - count_used(snapshot)
                                                   : 0;
}

void
uprof_snapshot_add_window(UprofSnapshot *snapshot, uint64_t gva, const void *bytes, size_t len)
{
    const size_t used = count_used(snapshot);

    g_assert(len <= uprof_snapshot_room(snapshot));
    memcpy(snapshot->bytes + used, bytes, len);
    snapshot->windows[snapshot->n_windows++] =
        (UprofWindow){ .gva = gva, .offset = (uint32_t)used, .len = (uint32_t)len };
}

/* Uses differences, because a window that ends at the top of the address space overflows sums. */
static bool
has_bytes(const UprofWindow *window, uint64_t gva, size_t len)
{
    return gva >= window->gva && gva - window->gva < window->len &&
           len <= window->len - (gva - window->gva);
}

bool
uprof_snapshot_read(const UprofSnapshot *snapshot, uint64_t gva, void *into, size_t len)
{
    for (unsigned i = 0; i < snapshot->n_windows; i++) {
        const UprofWindow *window = &snapshot->windows[i];

        if (has_bytes(window, gva, len)) {
            memcpy(into, snapshot->bytes + window->offset + (gva - window->gva), len);
            return true;
        }
    }
    return false;
}

const UprofWindow *
uprof_snapshot_window_at(const UprofSnapshot *snapshot, uint64_t gva)
{
    for (unsigned i = 0; i < snapshot->n_windows; i++)
        if (has_bytes(&snapshot->windows[i], gva, 1))
            return &snapshot->windows[i];
    return NULL;
}

bool
uprof_snapshot_read_word(const UprofSnapshot *snapshot, uint64_t gva, uint64_t *word)
{
    uint64_t raw;

    if (!uprof_snapshot_read(snapshot, gva, &raw, sizeof(raw)))
        return false;
    *word = GUINT64_FROM_LE(raw);
    return true;
}
