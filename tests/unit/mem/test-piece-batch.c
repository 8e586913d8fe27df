/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "../../../src/mem/piece-batch-priv.h"

enum { BYTES = 64, N_PIECES = 5 };

/* A piece, the address of its span, and the position of this span in the read. */
static const struct {
    uint64_t gpa;
    uint32_t len;
    uint8_t step;
    int place;      /* -1: it lies inside another span, so that it is not read */
    int fast_place; /* of a guest that is not slow */
} plan[N_PIECES] = {
    { 0x300, 16, 1, 3, 0 },                         /* read again, because the steps differ */
    { 0x304, 8, 0, -1, 1 },                         /* inside the next one */
    { 0x300, 16, 0, 1, 2 }, { 0x308, 16, 0, 2, 3 }, /* overlaps, but is not inside */
    { 0x100, 16, 0, 0, 4 },
};

/* @missing: the position of a span without memory; -1: none */
static void
read_spans(UprofPieceBatch *batch, int missing)
{
    for (unsigned i = 0; i < batch->n_spans; i++) {
        UprofSpan *span = &batch->spans[i];
        span->missing = (int)i == missing;
        for (uint32_t k = 0; k < span->len && !span->missing; k++)
            ((uint8_t *)span->into)[k] = (uint8_t)(span->gpa + k);
    }
}

static void
check_batch(bool is_slow, int missing)
{
    uint8_t bytes[N_PIECES][BYTES] = { { 0 } };
    UprofMemPiece pieces[N_PIECES];
    g_autofree UprofPieceBatch *batch = g_new0(UprofPieceBatch, 1);

    for (unsigned i = 0; i < N_PIECES; i++) {
        pieces[i] = (UprofMemPiece){ .into = bytes[i], .len = plan[i].len, .step = plan[i].step };
        const UprofSpan span = { .gpa = plan[i].gpa, .into = bytes[i], .len = plan[i].len };
        uprof_piece_batch_add(batch, &pieces[i], span);
    }
    uprof_piece_batch_prepare(batch, is_slow);
    g_assert_cmpuint(batch->n_spans, ==, is_slow ? N_PIECES - 1 : N_PIECES);
    for (unsigned i = 0; i < N_PIECES; i++) {
        const int place = is_slow ? plan[i].place : plan[i].fast_place;
        if (place >= 0)
            g_assert_true(batch->spans[place].into == bytes[i]);
    }
    read_spans(batch, missing);
    uprof_piece_batch_finish(batch);
    g_assert_cmpuint(batch->n, ==, 0);
    for (unsigned i = 0; i < N_PIECES; i++) {
        const int place = !is_slow ? plan[i].fast_place : plan[i].place < 0 ? 1 : plan[i].place;
        g_assert_cmpint(pieces[i].is_missing, ==, missing >= 0 && place == missing);
        for (uint32_t k = 0; k < plan[i].len && !pieces[i].is_missing; k++)
            g_assert_cmpuint(bytes[i][k], ==, (uint8_t)(plan[i].gpa + k));
    }
}

static void
test_order(void)
{
    check_batch(false, -1);
    check_batch(true, -1);
}

static void
test_missing(void)
{
    for (int missing = 0; missing < N_PIECES; missing++) {
        check_batch(false, missing);
        check_batch(true, missing);
    }
}

static void
test_empty(void)
{
    g_autofree UprofPieceBatch *batch = g_new0(UprofPieceBatch, 1);

    uprof_piece_batch_prepare(batch, true);
    g_assert_cmpuint(batch->n_spans, ==, 0);
    uprof_piece_batch_finish(batch);
}

/* A piece at the end of the address space contains nothing behind it. */
static void
test_address_space_end(void)
{
    uint8_t bytes[2][BYTES];
    UprofMemPiece pieces[2] = { { .into = bytes[0] }, { .into = bytes[1] } };
    g_autofree UprofPieceBatch *batch = g_new0(UprofPieceBatch, 1);

    uprof_piece_batch_add(batch, &pieces[0],
                          (UprofSpan){ .gpa = UINT64_MAX - 8, .into = bytes[0], .len = 9 });
    uprof_piece_batch_add(batch, &pieces[1],
                          (UprofSpan){ .gpa = UINT64_MAX, .into = bytes[1], .len = 2 });
    uprof_piece_batch_prepare(batch, true);
    g_assert_cmpuint(batch->n_spans, ==, 2);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    g_test_add_func("/piece-batch/order", test_order);
    g_test_add_func("/piece-batch/missing", test_missing);
    g_test_add_func("/piece-batch/empty", test_empty);
    g_test_add_func("/piece-batch/address-space-end", test_address_space_end);
    return g_test_run();
}
