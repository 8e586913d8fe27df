/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/word-distance.h"

#include <glib.h>
#include <string.h>

static void
test_distance(void)
{
    g_autofree char *longest = g_strnfill(64, 'a');
    g_autofree char *too_long = g_strnfill(65, 'a');
    const struct {
        const char *a, *b;
        unsigned distance;
    } cases[] = {
        { "record", "record", 0 }, { "recrod", "record", 1 }, { "rate", "rat", 1 },
        { "Rate", "rate", 1 },     { "abcdef", "xyzuvw", 3 }, { longest, longest, 0 },
        { longest, too_long, 3 },  { too_long, too_long, 3 }, { "\xff\x01\x02", "\xff\x01", 1 },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        unsigned nearest = UPROF_WORD_FAR;
        const bool is_closer = uprof_word_is_closer(cases[i].a, cases[i].b, &nearest);
        g_assert_cmpint(is_closer, ==, cases[i].distance < UPROF_WORD_FAR);
        g_assert_cmpuint(nearest, ==, cases[i].distance);
    }
}

static void
test_closer(void)
{
    static const struct {
        const char *word, *nearest;
    } cases[] = {
        { "recrod", "record" }, { "lst", "list" }, { "lits", "list" },  { "x", NULL },
        { "ls", NULL },         { "", NULL },      { "nothing", NULL }, { "dabp", NULL },
        { "lis", "list" },      { "du", NULL },
    };
    static const char *const candidates[] = { "report", "record", "list", "dump" };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        unsigned nearest = UPROF_WORD_FAR;
        const char *found = NULL;
        for (size_t j = 0; j < G_N_ELEMENTS(candidates); j++)
            if (uprof_word_is_closer(cases[i].word, candidates[j], &nearest))
                found = candidates[j];
        g_assert_cmpstr(found, ==, cases[i].nearest);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/word-distance/distance", test_distance);
    g_test_add_func("/word-distance/closer", test_closer);
    return g_test_run();
}
