/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "pieces.h"

#include <string.h>

enum {
    DEPTH_MAX = 4, /* of nested pieces */
    PLAIN_OF = 4,  /* libFuzzer's own mutation is used once in so many times */
};

/* libFuzzer prescribes these names. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t size_max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t size_max, unsigned seed);

/* A row of pieces. */
typedef struct {
    uint8_t *data;
    size_t size, size_max;
    size_t start; /* bytes of the input before them */
    GRand *random;
    unsigned depth;
} Row;

typedef struct {
    size_t at, len;
    FuzzPiece piece;
} Place;

/* Picks two pieces, which may be the same piece. Returns: false if the row has no piece */
static bool
pick_places(const Row *row, Place picked[2])
{
    gint32 n = 0;

    for (Place place = { 0 }; place.at < row->size; place.at += place.len) {
        const UprofSlice rest = { row->data + place.at, row->size - place.at };
        if (!fuzz_find_piece(rest, row->start + place.at, &place.piece))
            break;
        place.len = place.piece.head_len + place.piece.content_len;
        if (place.len == 0 || place.len > rest.len)
            break;
        n++;
        for (unsigned i = 0; i < 2; i++)
            if (g_rand_int_range(row->random, 0, n) == 0)
                picked[i] = place;
    }
    return n > 0;
}

/* Changes nothing if the result would be too long. */
static void
replace_bytes(Row *row, size_t at, size_t old_len, const uint8_t *bytes, size_t len)
{
    if (row->size - old_len + len > row->size_max)
        return;
    memmove(row->data + at + len, row->data + at + old_len, row->size - at - old_len);
    if (len > 0)
        memcpy(row->data + at, bytes, len);
    row->size += len - old_len;
}

static void
copy_piece(Row *row, const Place *from, const Place *to)
{
    g_autofree uint8_t *copy = g_memdup2(row->data + from->at, from->len);

    replace_bytes(row, to->at, g_rand_boolean(row->random) ? to->len : 0, copy, from->len);
}

static void mutate_row(Row *row);

static void
mutate_piece(Row *row, const Place *place)
{
    const FuzzPiece *piece = &place->piece;
    const size_t head_len = piece->is_fixed ? 0 : piece->head_len;
    const size_t room = piece->is_fixed ? 0 : row->size_max - row->size;
    const size_t len = place->len - head_len, most = MAX(len + room, 1);
    g_autofree uint8_t *bytes = g_malloc(FUZZ_HEAD_BYTES_MAX + most);
    Row inner = {
        bytes + FUZZ_HEAD_BYTES_MAX, len, most, place->at + 1, row->random, row->depth + 1
    };

    memcpy(inner.data, row->data + place->at + head_len, len);
    if (piece->has_pieces && inner.depth < DEPTH_MAX)
        mutate_row(&inner);
    else
        inner.size = LLVMFuzzerMutate(inner.data, len, most);
    if (piece->is_fixed) {
        memcpy(row->data + place->at, inner.data, MIN(inner.size, len));
        return;
    }
    memcpy(bytes, row->data + place->at, head_len);
    const size_t new_head_len = fuzz_write_head(bytes, inner.size);
    memmove(bytes + new_head_len, inner.data, inner.size);
    replace_bytes(row, place->at, place->len, bytes, new_head_len + inner.size);
}

static void
mutate_row(Row *row)
{
    Place picked[2];

    if (g_rand_int_range(row->random, 0, PLAIN_OF) == 0 || !pick_places(row, picked))
        row->size = LLVMFuzzerMutate(row->data, row->size, row->size_max);
    else if (g_rand_boolean(row->random))
        mutate_piece(row, &picked[0]);
    else if (g_rand_boolean(row->random))
        copy_piece(row, &picked[0], &picked[1]);
    else
        replace_bytes(row, picked[0].at, picked[0].len, NULL, 0);
}

size_t
LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t size_max, unsigned seed)
{
    g_autoptr(GRand) random = g_rand_new_with_seed(seed);
    Row row = { data, size, size_max, 0, random, 0 };

    mutate_row(&row);
    return row.size;
}
