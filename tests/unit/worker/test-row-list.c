/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/row-list.h"

#include <string.h>

static GByteArray *
make_list(UprofNames *names)
{
    g_autoptr(GArray) rows = g_array_new(FALSE, FALSE, sizeof(UprofProfileRow));
    GByteArray *bytes = g_byte_array_new();

    for (unsigned i = 0; i < 3; i++) {
        g_autofree char *name = g_strdup_printf("function_%u", i);
        const UprofProfileRow row = {
            .name = uprof_names_intern(names, (UprofSlice){ name, strlen(name) }),
            .self = i,
            .total = i + 10,
        };
        g_array_append_val(rows, row);
    }
    uprof_row_list_pack(rows, bytes);
    return bytes;
}

static GArray *
unpack(const GByteArray *bytes, size_t len, UprofNames *names)
{
    UprofBytes cursor = { .name = "rows", .all = { bytes->data, len } };

    return uprof_row_list_unpack(&cursor, names);
}

static void
test_round_trip(void)
{
    g_autoptr(UprofNames) names = uprof_names_new();
    g_autoptr(GByteArray) bytes = make_list(names);
    g_autoptr(GArray) rows = unpack(bytes, bytes->len, names);

    g_assert_cmpuint(rows->len, ==, 3);
    const UprofProfileRow *last = &g_array_index(rows, UprofProfileRow, 2);
    g_assert_cmpstr(uprof_name_text(last->name), ==, "function_2");
    g_assert_cmpuint(last->self, ==, 2);
    g_assert_cmpuint(last->total, ==, 12);
}

/* A truncated list gives only its complete rows. */
static void
test_cut(void)
{
    g_autoptr(UprofNames) names = uprof_names_new();
    g_autoptr(GByteArray) bytes = make_list(names);

    for (size_t len = 0; len < bytes->len; len++) {
        g_autoptr(GArray) rows = unpack(bytes, len, names);
        g_assert_cmpuint(rows->len, <, 3);
    }
}

/* A list that claims an impossible number of rows allocates no memory for them. */
static void
test_many(void)
{
    g_autoptr(UprofNames) names = uprof_names_new();
    g_autoptr(GByteArray) bytes = make_list(names);

    memset(bytes->data, 0xff, sizeof(uint64_t));
    g_autoptr(GArray) rows = unpack(bytes, bytes->len, names);
    g_assert_cmpuint(rows->len, ==, 3);
}

/* Names are made safe, because a worker may send any bytes. */
static void
test_hostile_name(void)
{
    g_autoptr(UprofNames) names = uprof_names_new();
    g_autoptr(GByteArray) bytes = make_list(names);

    memcpy(bytes->data + 8 + 8 + 8 + 4, "\x1b]0;x\a\n", 7);
    g_autoptr(GArray) rows = unpack(bytes, bytes->len, names);
    g_assert_cmpstr(uprof_name_text(g_array_index(rows, UprofProfileRow, 0).name), ==,
                    "?]0:x??n_0");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/row-list/round-trip", test_round_trip);
    g_test_add_func("/row-list/cut", test_cut);
    g_test_add_func("/row-list/many", test_many);
    g_test_add_func("/row-list/hostile-name", test_hostile_name);
    return g_test_run();
}
