/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <glib.h>

#include "../../../src/backend/ahead-priv.h"

enum { PAGE = 4096, KIB = 1024 };

/* clang-format off */

/* Behind a copy of 16 KiB from 0x10700 on, 0x100 bytes below the stack pointer */
static const struct {
    const char *name;
    uint64_t sp;
    bool covers;
} moves[] = {
    { "same",          0x10800, true },
    { "up",            0x11100, true },
    { "up-too-far",    0x11108, false }, /* what is asked for then ends a page further */
    { "down",          0x10100, true },
    { "page-below",    0x100ff, false },
    { "far-below",     0x800,   false },
    { "zero",          0,       false },
    { "behind",        0x15000, false },
    { "far-behind",    0xffffffffffffff00, false },
};

/* What is found, one after the other, and the range of the next copy */
static const struct {
    const char *name;
    struct {
        uint64_t sp;
        size_t len, got;
        bool renew;
    } copies[4];
    uint64_t low, high;
} rows[] = {
    { "one",        { { 0x10800, 0x1000, 0x1000, false } }, 0x10000, 0x12000 },
    { "aligned",    { { 0x10100, 0x1000, 0x1000, false } }, 0x10000, 0x11000 },
    { "two",        { { 0x10800, 0x1000, 0x1000, false }, { 0x12800, 0x1000, 0x1000, false } }, 0x10000, 0x14000 },
    { "too-far",    { { 0x10800, 0x1000, 0x1000, false }, { 0x16800, 0x1000, 0x1000, false } }, 0x16000, 0x18000 },
    { "too-long",   { { 0x10800, 0x7000, 0x7000, false } }, 0, 0 },
    { "nothing",    { { 0x10800, 0x1000, 0, false } }, 0, 0 },
    { "lost",       { { 0x10800, 0x1000, 0x1000, false }, { 0x10800, 0x1000, 0, false } }, 0, 0 },
    { "end-once",   { { 0x10800, 0x4000, 0x900, false } }, 0, 0 },
    { "end-twice",  { { 0x10800, 0x4000, 0x900, false }, { 0x10800, 0x4000, 0x900, false } }, 0x10000, 0x11000 },
    { "end-moves",  { { 0x10800, 0x4000, 0x900, false }, { 0x10800, 0x4000, 0x1900, false } }, 0, 0 },
    { "renewed",    { { 0x10800, 0x1000, 0x1000, true }, { 0x12800, 0x1000, 0x1000, true } }, 0x12000, 0x14000 },
    { "kept",       { { 0x10800, 0x1000, 0x1000, false }, { 0x12800, 0x1000, 0x1000, true } }, 0x10000, 0x14000 },
    { "wraps",      { { 0xffffffffffffff00, 0x4000, 0x4000, false } }, 0, 0 },
    { "at-zero",    { { 0x100, 0x1000, 0x1000, false } }, 0, 0x1000 },
};
/* clang-format on */

static void
test_covers(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    UprofAhead ahead = { 0 };

    g_assert_false(uprof_ahead_covers(&ahead, 0x10800));
    uprof_ahead_learn(&ahead, 0x10800, 0x10700, 16 * KIB, 16 * KIB, false);
    g_assert_cmpint(uprof_ahead_covers(&ahead, moves[i].sp), ==, moves[i].covers);
}

static void
test_learn(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    UprofAhead ahead = { 0 };

    for (unsigned k = 0; k < 4 && rows[i].copies[k].sp; k++)
        uprof_ahead_learn(&ahead, rows[i].copies[k].sp, rows[i].copies[k].sp - 0x100,
                          rows[i].copies[k].len, rows[i].copies[k].got, rows[i].copies[k].renew);
    g_assert_cmphex(ahead.low, ==, rows[i].low);
    g_assert_cmphex(ahead.high, ==, rows[i].high);
}

/* A stack that ends has no more to be asked for, until it goes on. */
static void
test_end(void)
{
    UprofAhead ahead = { 0 };

    for (unsigned i = 0; i < 2; i++)
        uprof_ahead_learn(&ahead, 0x10800, 0x10700, 16 * KIB, 0x900, false);
    g_assert_true(uprof_ahead_covers(&ahead, 0x10c00));
    g_assert_false(uprof_ahead_covers(&ahead, 0x11000));
    g_assert_cmpuint(uprof_ahead_cut(&ahead, 0x10b00, 16 * KIB), ==, 0x500);
    uprof_ahead_learn(&ahead, 0x10800, 0x10700, 16 * KIB, 16 * KIB, false);
    g_assert_false(uprof_ahead_covers(&ahead, 0x11108));
}

static void
test_cut(void)
{
    UprofAhead ahead = { .low = 0x10000, .high = 0x12000 };

    g_assert_cmpuint(uprof_ahead_cut(&ahead, 0x10010, 0x100), ==, 0x100);
    g_assert_cmpuint(uprof_ahead_cut(&ahead, 0x11ff0, 0x100), ==, 0x10);
    g_assert_cmpuint(uprof_ahead_cut(&ahead, 0x12000, 0x100), ==, 0);
    g_assert_cmpuint(uprof_ahead_cut(&ahead, 0xfff0, 0x100), ==, 0);
}

/* Ranges are renewed by what was used, and only that. */
static void
test_use(void)
{
    UprofAhead ahead = { 0 };

    uprof_ahead_learn(&ahead, 0x10800, 0x10700, PAGE, PAGE, false);
    uprof_ahead_learn(&ahead, 0x12800, 0x12700, PAGE, PAGE, true);
    uprof_ahead_use(&ahead, 0x12900, 0x12800, PAGE);
    uprof_ahead_learn(&ahead, 0x12a00, 0x12900, PAGE, PAGE, true);
    g_assert_cmphex(ahead.low, ==, 0x12000);
    g_assert_cmphex(ahead.high, ==, 0x14000);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(moves); i++) {
        g_autofree char *path = g_strdup_printf("/ahead/covers/%s", moves[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_covers);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *path = g_strdup_printf("/ahead/learn/%s", rows[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_learn);
    }
    g_test_add_func("/ahead/end", test_end);
    g_test_add_func("/ahead/cut", test_cut);
    g_test_add_func("/ahead/use", test_use);
    return g_test_run();
}
