/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../../src/live/hot-rows-priv.h"
#include "../../../src/live/top-round-priv.h"

#include "uprof/row-list.h"

#include <string.h>

/* Appends a list of one row, as a worker does. */
static void
append_list(GByteArray *round, UprofNames *names, const char *name, uint64_t total)
{
    g_autoptr(GArray) list = g_array_new(FALSE, FALSE, sizeof(UprofProfileRow));
    const UprofProfileRow row = {
        uprof_names_intern(names, (UprofSlice){ name, strlen(name) }),
        total,
        total,
    };

    g_array_append_val(list, row);
    uprof_row_list_pack(list, round);
}

static GByteArray *
make_round(UprofNames *names)
{
    GByteArray *round = g_byte_array_new();
    const uint64_t n_samples = 7;

    g_byte_array_append(round, (const guint8 *)&n_samples, sizeof(n_samples));
    append_list(round, names, "work", 7);
    append_list(round, names, "vcpu0", 5);
    append_list(round, names, "nginx", 3);
    return round;
}

static uint64_t
count_rows(const UprofHotRows *rows, UprofRowsBy by)
{
    uint64_t total;
    const UprofHotChoice choice = { .by = by, .pattern = "", .max = 10 };

    g_array_unref(uprof_hot_rows_list(rows, &choice, &total));
    return total / UPROF_HOT_ROWS_UNIT;
}

static void
test_lists(void)
{
    g_autoptr(UprofNames) names = uprof_names_new();
    g_autoptr(GByteArray) round = make_round(names);
    g_autoptr(UprofHotRows) rows = uprof_hot_rows_new();

    g_assert_cmpuint(uprof_top_round_add(round, rows, 0), ==, 7);
    g_assert_cmpuint(count_rows(rows, UPROF_BY_FUNCTION), ==, 7);
    g_assert_cmpuint(count_rows(rows, UPROF_BY_VCPU), ==, 5);
    g_assert_cmpuint(count_rows(rows, UPROF_BY_PROCESS), ==, 3);
    g_assert_cmpuint(count_rows(rows, UPROF_BY_CGROUP), ==, 0);
}

/* A worker may send anything: a round that is cut off anywhere gives the rows before the cut. */
static void
test_malformed(void)
{
    g_autoptr(UprofNames) names = uprof_names_new();
    g_autoptr(GByteArray) round = make_round(names);

    for (guint len = round->len; len-- > 0;) {
        g_autoptr(UprofHotRows) rows = uprof_hot_rows_new();
        g_byte_array_set_size(round, len);
        g_assert_cmpuint(uprof_top_round_add(round, rows, 0), ==, len < 8 ? 0 : 7);
        g_assert_cmpuint(count_rows(rows, UPROF_BY_PROCESS), ==, 0);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/top-round/lists", test_lists);
    g_test_add_func("/top-round/malformed", test_malformed);
    return g_test_run();
}
