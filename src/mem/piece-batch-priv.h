/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * piece-batch-priv.h - the spans of guest-physical memory that pieces of virtual memory lie in
 */
#pragma once

#include "uprof/mem.h"

enum { UPROF_PIECE_BATCH_MAX = 512 };

/** UprofPieceSpan: a span of a piece */
typedef struct {
    UprofSpan span;
    UprofMemPiece *owner; /* borrowed: the piece that the span belongs to */
    uint32_t order;       /* in which the spans were added */
    int32_t within;       /* index of the span that has all bytes of this one; -1: none */
} UprofPieceSpan;

/** UprofPieceBatch: spans that one read of the guest reads */
typedef struct {
    UprofPieceSpan entries[UPROF_PIECE_BATCH_MAX];
    unsigned n;
    UprofSpan spans[UPROF_PIECE_BATCH_MAX]; /* of the read: see uprof_piece_batch_prepare() */
    unsigned n_spans;
} UprofPieceBatch;

/**
 * uprof_piece_batch_add:
 * @batch: with less than %UPROF_PIECE_BATCH_MAX spans
 * @piece: borrowed until uprof_piece_batch_finish()
 *
 * Returns: the span, which the caller may make longer until the next call for @batch
 */
UprofSpan *uprof_piece_batch_add(UprofPieceBatch *batch, UprofMemPiece *piece, UprofSpan span);

/**
 * uprof_piece_batch_prepare: lists the spans of the read in @batch->spans
 * @is_slow: sort the spans of a step by address, so that one memory peek reads several of them; a
 *   span inside another one of its step is not read
 */
void uprof_piece_batch_prepare(UprofPieceBatch *batch, bool is_slow);

/** uprof_piece_batch_finish: after the read: notes which pieces are missing, and empties @batch */
void uprof_piece_batch_finish(UprofPieceBatch *batch);
