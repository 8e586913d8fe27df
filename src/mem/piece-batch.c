/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "piece-batch-priv.h"

#include "uprof/sorted.h"

#include <stdlib.h>
#include <string.h>

UprofSpan *
uprof_piece_batch_add(UprofPieceBatch *batch, UprofMemPiece *piece, UprofSpan span)
{
    g_assert(batch->n < UPROF_PIECE_BATCH_MAX);
    UprofPieceSpan *entry = &batch->entries[batch->n];
    *entry = (UprofPieceSpan){ .span = span, .owner = piece, .order = batch->n++, .within = -1 };
    return &entry->span;
}

/* At one address the longest span is first, so that it has the bytes of the others. */
static int
compare_entries(const void *a, const void *b)
{
    const UprofPieceSpan *one = a, *other = b;

    if (one->owner->step != other->owner->step)
        return UPROF_COMPARE(one->owner->step, other->owner->step);
    if (one->span.gpa != other->span.gpa)
        return UPROF_COMPARE(one->span.gpa, other->span.gpa);
    if (one->span.len != other->span.len)
        return UPROF_COMPARE(other->span.len, one->span.len);
    return UPROF_COMPARE(one->order, other->order);
}

static bool
has_span(const UprofPieceSpan *outer, const UprofPieceSpan *inner)
{
    return outer->owner->step == inner->owner->step && inner->span.gpa >= outer->span.gpa &&
           inner->span.gpa - outer->span.gpa <= outer->span.len &&
           inner->span.len <= outer->span.len - (inner->span.gpa - outer->span.gpa);
}

static void
sort_entries(UprofPieceBatch *batch)
{
    int outer = 0;

    qsort(batch->entries, batch->n, sizeof(batch->entries[0]), compare_entries);
    for (unsigned i = 1; i < batch->n; i++) {
        if (has_span(&batch->entries[outer], &batch->entries[i]))
            batch->entries[i].within = outer;
        else
            outer = (int)i;
    }
}

void
uprof_piece_batch_prepare(UprofPieceBatch *batch, bool is_slow)
{
    if (is_slow && batch->n > 0)
        sort_entries(batch);
    batch->n_spans = 0;
    for (unsigned i = 0; i < batch->n; i++)
        if (batch->entries[i].within < 0)
            batch->spans[batch->n_spans++] = batch->entries[i].span;
}

/* Gives a span that was not read its bytes. */
static void
copy_inner(const UprofPieceSpan *outer, UprofPieceSpan *inner)
{
    inner->span.missing = outer->span.missing;
    if (!inner->span.missing)
        memcpy(inner->span.into,
               (const uint8_t *)outer->span.into + (inner->span.gpa - outer->span.gpa),
               inner->span.len);
}

void
uprof_piece_batch_finish(UprofPieceBatch *batch)
{
    unsigned at = 0;

    for (unsigned i = 0; i < batch->n; i++) {
        UprofPieceSpan *entry = &batch->entries[i];
        if (entry->within < 0)
            entry->span.missing = batch->spans[at++].missing;
        else
            copy_inner(&batch->entries[entry->within], entry);
        entry->owner->is_missing |= entry->span.missing;
    }
    batch->n = batch->n_spans = 0;
}
