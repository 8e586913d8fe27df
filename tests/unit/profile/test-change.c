/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/change.h"

/* clang-format off */
static const struct {
    const char *name;
    uint64_t a, all_a, b, all_b;
    bool is_significant;
    const char *text;
    const char *class;
} cases[] = {
    { "same",          100,  1000, 100,  1000,  false, "+0.0 points",   "g0" },
    { "half-as-many",  100,  1000, 50,   500,   false, "+0.0 points",   "g0" },
    { "chance",        100,  1000, 110,  1000,  false, "+1.0 points",   "g0" },
    { "doubled",       100,  1000, 200,  1000,  true,  "+10.0 points",  "r6" },
    { "halved",        2000, 10000, 1000, 10000, true, "-10.0 points",  "b6" },
    { "little",        1000, 100000, 1300, 100000, true, "+0.3 points", "r1" },
    { "few",           0,    1000, 29,   1000,  false, "+2.9 points",   "g0" },
    { "enough",        0,    1000, 30,   1000,  true,  "+3.0 points",   "r4" },
    { "gone",          500,  1000, 0,    1000,  true,  "-50.0 points",  "b7" },
    { "no-old",        0,    0,    500,  1000,  false, "+50.0 points",  "g0" },
    { "no-new",        500,  1000, 0,    0,     false, "-50.0 points",  "g0" },
    { "huge",          UINT64_MAX / 4, UINT64_MAX / 2, UINT64_MAX / 8, UINT64_MAX / 2, true, "-25.0 points", "b7" },
};
/* clang-format on */

static void
test_case(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    const UprofChange change =
        uprof_change_of(cases[i].a, cases[i].all_a, cases[i].b, cases[i].all_b);
    g_autofree char *text = uprof_change_format(&change);

    g_assert_true(change.is_significant == cases[i].is_significant);
    g_assert_true(change.is_new == (cases[i].a == 0 && cases[i].b > 0));
    g_assert_true(change.is_gone == (cases[i].b == 0 && cases[i].a > 0));
    g_assert_cmpstr(text, ==, cases[i].text);
    g_assert_cmpstr(uprof_change_class(&change), ==, cases[i].class);
}

static UprofTree *
make_tree(UprofNames *names, uint64_t a, uint64_t below, uint64_t few, uint64_t other)
{
    g_autoptr(UprofProfile) profile =
        uprof_profile_new(names, uprof_names_marker(names, "vm"), false);
    const UprofName *frames[] = { uprof_names_marker(names, "a"), uprof_names_marker(names, "b") };
    const UprofName *few_frame = uprof_names_marker(names, "few");
    const UprofName *other_frame = uprof_names_marker(names, "other");

    uprof_profile_add(profile, frames, 1, a);
    uprof_profile_add(profile, frames, 2, below);
    uprof_profile_add(profile, &few_frame, 1, few);
    uprof_profile_add(profile, &other_frame, 1, other);
    return uprof_tree_new(profile);
}

/* The list has only significant losses, and of each only the outermost frame. */
static void
test_gone(void)
{
    g_autoptr(UprofNames) names = uprof_names_new();
    g_autoptr(UprofTree) old = make_tree(names, 100, 200, 3, 1000);
    g_autoptr(UprofTree) new = make_tree(names, 0, 0, 0, 1000);
    g_autoptr(UprofTree) both = uprof_tree_compare(old, new);
    g_autoptr(GPtrArray) gone = uprof_change_gone(both, 10);
    g_autoptr(GPtrArray) none = uprof_change_gone(both, 0);

    g_assert_cmpuint(gone->len, ==, 1);
    g_assert_cmpstr(uprof_name_text(((UprofTreeNode *)gone->pdata[0])->name), ==, "a");
    g_assert_cmpuint(none->len, ==, 0);
}

/* A recursive function counts once. The largest change comes first. */
static void
test_rows(void)
{
    g_autoptr(UprofNames) names = uprof_names_new();
    g_autoptr(UprofProfile) profile =
        uprof_profile_new(names, uprof_names_marker(names, "vm"), false);
    const UprofName *a = uprof_names_marker(names, "a"), *b = uprof_names_marker(names, "b");
    const UprofName *twice[] = { a, b, a };

    uprof_profile_add(profile, twice, 3, 60);
    uprof_profile_add(profile, twice, 1, 40);
    g_autoptr(UprofTree) new = uprof_tree_new(profile);
    uprof_profile_add(profile, &b, 1, 300);
    g_autoptr(UprofTree) old = uprof_tree_new(profile);
    g_autoptr(UprofTree) both = uprof_tree_compare(old, new);
    g_autoptr(GArray) rows = uprof_change_rows(both);
    const UprofChangeRow *first = &g_array_index(rows, UprofChangeRow, 0);
    const UprofChangeRow *second = &g_array_index(rows, UprofChangeRow, 1);

    g_assert_cmpuint(rows->len, ==, 2);
    g_assert_true(first->name == a && second->name == b);
    g_assert_cmpuint(first->self[UPROF_NEW], ==, 100);
    g_assert_cmpuint(first->total[UPROF_NEW], ==, 100);
    g_assert_cmpuint(first->total[UPROF_OLD], ==, 100);
    g_assert_cmpint(first->inclusive.ppm, ==, 750000);
    g_assert_true(first->inclusive.is_significant);
    g_assert_cmpuint(second->total[UPROF_NEW], ==, 60);
    g_assert_cmpuint(second->total[UPROF_OLD], ==, 360);
    g_assert_cmpint(second->inclusive.ppm, ==, -300000);
    g_assert_cmpint(second->own.ppm, ==, -750000);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/change/%s", cases[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_case);
    }
    g_test_add_func("/change/list-of-gone", test_gone);
    g_test_add_func("/change/rows", test_rows);
    return g_test_run();
}
