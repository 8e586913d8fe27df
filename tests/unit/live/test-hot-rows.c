/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../../src/live/hot-rows-priv.h"

#include <string.h>

static void
add_row(UprofHotRows *rows, unsigned domain, UprofRowsBy by, const char *name, uint64_t self,
        uint64_t total)
{
    g_autoptr(GArray) round = g_array_new(FALSE, FALSE, sizeof(UprofProfileRow));
    const UprofProfileRow row = { uprof_names_intern(uprof_hot_rows_names(rows),
                                                     (UprofSlice){ name, strlen(name) }),
                                  self, total };

    g_array_append_val(round, row);
    uprof_hot_rows_add(rows, domain, by, round);
}

/* Returns: (transfer full): the names of the rows, between blanks */
static char *
list_names(const UprofHotRows *rows, UprofHotChoice choice, uint64_t *total)
{
    g_autoptr(GArray) list = uprof_hot_rows_list(rows, &choice, total);
    GString *names = g_string_new(NULL);

    for (guint i = 0; i < list->len; i++)
        g_string_append_printf(names, "%s%s", i > 0 ? " " : "",
                               uprof_name_text(g_array_index(list, UprofHotRow, i).row.name));
    return g_string_free(names, FALSE);
}

static UprofHotRows *
make_rows(void)
{
    UprofHotRows *rows = uprof_hot_rows_new();

    add_row(rows, 0, UPROF_BY_FUNCTION, "caller", 1, 90);
    add_row(rows, 0, UPROF_BY_FUNCTION, "Leaf", 60, 60);
    add_row(rows, 1, UPROF_BY_FUNCTION, "Leaf", 30, 30);
    add_row(rows, 0, UPROF_BY_PROCESS, "nginx", 10, 50);
    return rows;
}

static void
test_order(void)
{
    g_autoptr(UprofHotRows) rows = make_rows();
    uint64_t total;
    g_autofree char *self =
        list_names(rows, (UprofHotChoice){ UPROF_BY_FUNCTION, false, "", 10 }, &total);

    g_assert_cmpstr(self, ==, "Leaf Leaf caller");
    g_assert_cmpuint(total, ==, 91 * UPROF_HOT_ROWS_UNIT);
    g_autofree char *by_total =
        list_names(rows, (UprofHotChoice){ UPROF_BY_FUNCTION, true, "", 2 }, &total);
    g_assert_cmpstr(by_total, ==, "caller Leaf");
    g_autofree char *processes =
        list_names(rows, (UprofHotChoice){ UPROF_BY_PROCESS, false, "", 10 }, &total);
    g_assert_cmpstr(processes, ==, "nginx");
    g_assert_cmpuint(total, ==, 50 * UPROF_HOT_ROWS_UNIT);
    g_autofree char *found =
        list_names(rows, (UprofHotChoice){ UPROF_BY_FUNCTION, false, "leaf", 10 }, &total);
    g_assert_cmpstr(found, ==, "Leaf Leaf");
    g_assert_cmpuint(total, ==, 91 * UPROF_HOT_ROWS_UNIT);
}

/* Each domain has its own 100 %, however few samples it has. */
static void
test_shares(void)
{
    g_autoptr(UprofHotRows) rows = uprof_hot_rows_new();
    const UprofHotChoice all = { UPROF_BY_FUNCTION, false, "", 10 };
    static const uint64_t permilles[] = { 900, 750, 250, 100 };
    uint64_t total;

    add_row(rows, 0, UPROF_BY_FUNCTION, "busy", 900, 900);
    add_row(rows, 0, UPROF_BY_FUNCTION, "other", 100, 100);
    add_row(rows, 2, UPROF_BY_FUNCTION, "rare", 3, 3);
    add_row(rows, 2, UPROF_BY_FUNCTION, "rarer", 1, 4);
    g_autoptr(GArray) list = uprof_hot_rows_list(rows, &all, &total);
    g_assert_cmpuint(total, ==, 1004 * UPROF_HOT_ROWS_UNIT);
    g_assert_cmpuint(list->len, ==, G_N_ELEMENTS(permilles));
    for (guint i = 0; i < list->len; i++) {
        const uint64_t self = g_array_index(list, UprofHotRow, i).row.self;
        g_assert_cmpuint((self * 1000 + total / 2) / total, ==, permilles[i]);
    }
    g_assert_cmpuint(g_array_index(list, UprofHotRow, 2).row.total, ==, total);
}

static void
test_fade(void)
{
    g_autoptr(UprofHotRows) rows = make_rows();
    const UprofHotChoice all = { UPROF_BY_FUNCTION, false, "", 10 };
    uint64_t before, after;

    g_free(list_names(rows, all, &before));
    for (unsigned i = 0; i < UPROF_HOT_ROWS_ROUNDS; i++)
        uprof_hot_rows_fade(rows);
    g_free(list_names(rows, all, &after));
    g_assert_cmpuint(after, >, before / 4);
    g_assert_cmpuint(after, <, before * 2 / 5);
    for (unsigned i = 0; i < 200; i++)
        uprof_hot_rows_fade(rows);
    g_autofree char *none = list_names(rows, all, &after);
    g_assert_cmpstr(none, ==, "");
}

static void
test_clear(void)
{
    g_autoptr(UprofHotRows) rows = make_rows();
    uint64_t total;

    uprof_hot_rows_clear(rows);
    g_autofree char *none =
        list_names(rows, (UprofHotChoice){ UPROF_BY_FUNCTION, false, "", 10 }, &total);
    g_assert_cmpstr(none, ==, "");
    g_assert_cmpuint(total, ==, 0);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/hot-rows/order", test_order);
    g_test_add_func("/hot-rows/shares", test_shares);
    g_test_add_func("/hot-rows/fade", test_fade);
    g_test_add_func("/hot-rows/clear", test_clear);
    return g_test_run();
}
