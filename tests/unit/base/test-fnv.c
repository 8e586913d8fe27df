/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/fnv.h"

#include <glib.h>
#include <string.h>

/* draft-eastlake-fnv, section 6 */
static const struct {
    const char *text;
    uint32_t narrow;
    uint64_t wide;
} cases[] = {
    { "", UINT32_C(0x811c9dc5), UINT64_C(0xcbf29ce484222325) },
    { "a", UINT32_C(0xe40c292c), UINT64_C(0xaf63dc4c8601ec8c) },
    { "foobar", UINT32_C(0xbf9cf968), UINT64_C(0x85944171f73967e8) },
};

static void
test_vectors(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        const size_t len = strlen(cases[i].text);

        g_assert_cmphex(uprof_fnv32_add(UPROF_FNV32_START, cases[i].text, len), ==,
                        cases[i].narrow);
        g_assert_cmphex(uprof_fnv64_add(UPROF_FNV64_START, cases[i].text, len), ==, cases[i].wide);
    }
}

static void
test_pieces(void)
{
    const uint64_t piece = uprof_fnv64_add(UPROF_FNV64_START, "foo", 3);

    g_assert_cmphex(uprof_fnv64_add(piece, "bar", 3), ==, cases[2].wide);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/fnv/vectors", test_vectors);
    g_test_add_func("/fnv/pieces", test_pieces);
    return g_test_run();
}
