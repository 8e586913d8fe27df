/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "../../../src/sym/call-targets-priv.h"

enum { TEXT = 0x1000, OTHER = 0x3000 };

static uint8_t text[64], other[16];

/* Puts a call instruction at offset @at of the text. */
static void
put_call(unsigned at, uint64_t target)
{
    const uint32_t distance = GUINT32_TO_LE((uint32_t)(target - (TEXT + at + 5)));

    text[at] = 0xe8;
    memcpy(text + at + 1, &distance, sizeof(distance));
}

static void
put_code(void)
{
    memset(text, 0x90, sizeof(text));
    memset(other, 0x90, sizeof(other));
    put_call(0, TEXT + 0x20);
    put_call(5, OTHER + 8);
    text[10] = 0x06; /* not a valid instruction */
    put_call(11, TEXT + 0x10);
    put_call(16, TEXT + 0x1b);
    put_call(21, TEXT + 0x10);
    put_call(26, TEXT + sizeof(text)); /* target after the code */
    put_call(31, TEXT - 1);            /* target before the code */
    put_call(36, TEXT + 41);           /* of the next instruction: 32-bit code reads the pc so */
    text[60] = 0xe8;                   /* a call that is cut by the end of the code */
}

static GArray *
make_ranges(void)
{
    const UprofCodeRange ranges[] = {
        { TEXT, TEXT + sizeof(text), { text, sizeof(text) } },
        { OTHER, OTHER + sizeof(other), { other, sizeof(other) } },
        { OTHER + 0x1000, OTHER + 0x2000, { NULL, 0 } },
    };
    GArray *array = g_array_new(FALSE, FALSE, sizeof(ranges[0]));

    g_array_append_vals(array, ranges, G_N_ELEMENTS(ranges));
    return array;
}

static void
test_find(void)
{
    static const uint64_t wanted[] = { TEXT + 0x10, TEXT + 0x1b, TEXT + 0x20, OTHER + 8 };
    g_autoptr(GArray) ranges = make_ranges();
    g_autoptr(GArray) targets = uprof_call_targets_find(ranges, 8);

    for (guint i = 0; i < targets->len; i++)
        g_test_message("%" G_GINT64_MODIFIER "x", g_array_index(targets, uint64_t, i));
    g_assert_cmpuint(targets->len, ==, G_N_ELEMENTS(wanted));
    g_assert_cmpmem(targets->data, targets->len * sizeof(uint64_t), wanted, sizeof(wanted));
}

static void
test_around(void)
{
    static const struct {
        uint64_t address, start, end;
    } cases[] = {
        { TEXT + 0x0f, 0, 0 },
        { TEXT + 0x10, TEXT + 0x10, TEXT + 0x1b },
        { TEXT + 0x1a, TEXT + 0x10, TEXT + 0x1b },
        { TEXT + 0x3f, TEXT + 0x20, TEXT + 0x40 },
        { TEXT + 0x40, 0, 0 },
        { OTHER, 0, 0 },
        { OTHER + 9, OTHER + 8, OTHER + 0x10 },
        { OTHER + 0x1000, 0, 0 },
        { 0, 0, 0 },
        { UINT64_MAX, 0, 0 },
    };
    g_autoptr(GArray) ranges = make_ranges();
    g_autoptr(GArray) targets = uprof_call_targets_find(ranges, 8);

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        uint64_t start = 0, end = 0;
        g_assert_cmpint(uprof_call_targets_around(targets, ranges, cases[i].address, &start, &end),
                        ==, cases[i].end > 0);
        g_assert_cmphex(start, ==, cases[i].start);
        g_assert_cmphex(end, ==, cases[i].end);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    put_code();
    g_test_add_func("/call-targets/find", test_find);
    g_test_add_func("/call-targets/around", test_around);
    return g_test_run();
}
