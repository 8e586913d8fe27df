/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/copies.h"

#include <string.h>

enum {
    BYTES_MAX = 16 * 1024,
    PIECES_MAX = 512,
};

typedef struct {
    uint64_t gva;
    uint64_t len;
} Head;

static size_t
pad_length(size_t len)
{
    return (len + sizeof(uint64_t) - 1) / sizeof(uint64_t) * sizeof(uint64_t);
}

void
uprof_copies_begin(UprofCopies *copies, UprofSnapshot *snapshot)
{
    const size_t room = uprof_snapshot_room(snapshot);

    *copies = (UprofCopies){ .snapshot = snapshot,
                             .max = MIN(room, (size_t)BYTES_MAX),
                             .offset = (uint32_t)(UPROF_SNAPSHOT_BYTES_MAX - room) };
}

uint8_t *
uprof_copies_add(UprofCopies *copies, uint64_t gva, size_t len)
{
    const Head head = { GUINT64_TO_LE(gva), GUINT64_TO_LE(len) };
    uint8_t *at = copies->snapshot->bytes + copies->offset + copies->used;
    const size_t bytes = sizeof(head) + pad_length(len);

    if (bytes > copies->max - copies->used)
        return NULL;
    memcpy(at, &head, sizeof(head));
    memset(at + sizeof(head) + len, 0, pad_length(len) - len);
    copies->used += bytes;
    return at + sizeof(head);
}

void
uprof_copies_drop(UprofCopies *copies, size_t len)
{
    copies->used -= sizeof(Head) + pad_length(len);
}

void
uprof_copies_end(UprofCopies *copies)
{
    UprofSnapshot *snapshot = copies->snapshot;

    if (copies->used > 0)
        snapshot->windows[snapshot->n_windows++] = (UprofWindow){ .gva = UPROF_COPIES_AT,
                                                                  .offset = copies->offset,
                                                                  .len = (uint32_t)copies->used };
}

UprofSlice
uprof_copies_find(const UprofSnapshot *snapshot)
{
    for (unsigned i = 0; i < snapshot->n_windows; i++) {
        const UprofWindow *window = &snapshot->windows[i];
        if (window->gva == UPROF_COPIES_AT && window->len <= BYTES_MAX)
            return (UprofSlice){ snapshot->bytes + window->offset, window->len };
    }
    return (UprofSlice){ 0 };
}

bool
uprof_copies_read(UprofSlice packed, uint64_t gva, void *into, size_t len)
{
    const uint8_t *bytes = packed.data;
    size_t at = 0;
    Head head;

    for (unsigned i = 0; i < PIECES_MAX && packed.len - at >= sizeof(head); i++) {
        memcpy(&head, bytes + at, sizeof(head));
        const uint64_t copied = GUINT64_FROM_LE(head.len);
        const uint64_t offset = gva - GUINT64_FROM_LE(head.gva);
        at += sizeof(head);
        if (copied > packed.len - at)
            return false;
        if (offset < copied && len <= copied - offset) {
            memcpy(into, bytes + at + offset, len);
            return true;
        }
        at = MIN(at + pad_length(copied), packed.len);
    }
    return false;
}
