/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/sorted.h"

#include <stdlib.h>

typedef struct {
    uint32_t other;
    uint64_t start;
} Range;

static void
test_compare(void)
{
    uint64_t wide[] = { UINT64_MAX, 0, UINT64_C(1) << 32, 1, 1 };
    uint32_t narrow[] = { UINT32_MAX, 0, 1 };

    g_assert_cmpint(UPROF_COMPARE(1, 2), ==, -1);
    g_assert_cmpint(UPROF_COMPARE(2, 2), ==, 0);
    g_assert_cmpint(UPROF_COMPARE(-1.5, -2.5), ==, 1);
    qsort(wide, G_N_ELEMENTS(wide), sizeof(wide[0]), uprof_compare_u64);
    for (size_t i = 1; i < G_N_ELEMENTS(wide); i++)
        g_assert_cmpuint(wide[i - 1], <=, wide[i]);
    qsort(narrow, G_N_ELEMENTS(narrow), sizeof(narrow[0]), uprof_compare_u32);
    g_assert_cmpuint(narrow[1], ==, 1);
}

static void
test_counts(void)
{
    static const Range ranges[] = { { 0, 10 }, { 0, 20 }, { 0, 20 }, { 0, 30 }, { 0, UINT64_MAX } };
    static const struct {
        uint64_t key;
        size_t below, up_to;
    } cases[] = {
        { 0, 0, 0 },  { 10, 0, 1 }, { 15, 1, 1 },         { 20, 1, 3 },
        { 30, 3, 4 }, { 31, 4, 4 }, { UINT64_MAX, 4, 5 },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_assert_cmpuint(uprof_sorted_count_below(&ranges[0].start, G_N_ELEMENTS(ranges),
                                                  sizeof(Range), cases[i].key),
                         ==, cases[i].below);
        g_assert_cmpuint(uprof_sorted_count_up_to(&ranges[0].start, G_N_ELEMENTS(ranges),
                                                  sizeof(Range), cases[i].key),
                         ==, cases[i].up_to);
    }
    g_assert_cmpuint(uprof_sorted_count_below(NULL, 0, sizeof(uint64_t), 1), ==, 0);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/sorted/compare", test_compare);
    g_test_add_func("/sorted/counts", test_counts);
    return g_test_run();
}
