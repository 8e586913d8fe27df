/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../../src/parse/perf-map-priv.h"
#include "uprof/perf-map.h"

#include <string.h>

static void
add(UprofPerfMap *map, const char *text)
{
    uprof_perf_map_add(map, (UprofSlice){ text, strlen(text) }, true);
}

/* @name: (nullable): of the function at @address; %NULL: none is there */
static void
check_function(const UprofPerfMap *map, uint64_t address, const char *name)
{
    UprofSymbol symbol;

    if (!name) {
        g_assert_false(uprof_perf_map_find(map, address, &symbol));
        return;
    }
    g_assert_true(uprof_perf_map_find(map, address, &symbol));
    g_assert_cmpmem(symbol.name.data, symbol.name.len, name, strlen(name));
    g_assert_cmphex(address - symbol.start, <, symbol.size);
}

/* clang-format off */
static const struct {
    const char *name;
    const char *text;
    size_t n;
    const char *at_1000; /* (nullable): the name of the function at 0x1000 */
} cases[] = {
    { "usual",        "1000 20 run\n", 1, "run" },
    { "prefix",       "0x1000 0x20 run\n", 1, "run" },
    { "capitals",     "FF0 2F run\n", 1, "run" },
    { "spaces",       "1000 20  JS:*f /a b.js:1:2 \n", 1, "JS:*f /a b.js:1:2 " },
    { "control",      "1000 20 a\tb\r\n", 1, "a\tb\r" },
    { "replaced",     "1000 20 old\n1000 20 new\n", 1, "new" },
    { "shorter",      "ff0 40 old\n1000 8 new\n", 1, "new" },
    { "shorter-away", "ff0 40 old\nff0 8 new\n", 1, NULL },
    { "longer",       "ff8 8 a\n1000 8 b\n1008 8 c\nff0 20 new\n", 1, "new" },
    { "neighbours",   "ff0 10 a\n1000 10 b\n1010 10 c\n", 3, "b" },
    { "top",          "ffffffffffffff00 ff f\n1000 1 run\n", 2, "run" },

    { "empty",        "", 0, NULL },
    { "empty-lines",  "\n\n\n", 0, NULL },
    { "no-end",       "1000 20 run", 0, NULL },
    { "no-name",      "1000 20 \n1000 20\n1000\n", 0, NULL },
    { "no-size",      "1000 0 run\n", 0, NULL },
    { "too-large",    "1000 ffffffffffffffff run\n1000 1ffffffffffffffff0 run\n", 0, NULL },
    { "too-high",     "ffffffffffffffff 2 run\n", 0, NULL },
    { "negative",     "-1000 20 run\n1000 -20 run\n+1000 20 run\n", 0, NULL },
    { "not-hex",      "10g0 20 run\n1000 2x run\nrun 1000 20\n", 0, NULL },
    { "leading-space", " 1000 20 run\n", 0, NULL },
    { "tab",          "1000\t20\trun\n", 0, NULL },
    { "rest-is-used", "nonsense\n1000 20 run\n", 1, "run" },
};
/* clang-format on */

static void
test_case(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_autoptr(UprofPerfMap) map = uprof_perf_map_new();

    add(map, cases[i].text);
    g_assert_cmpuint(uprof_perf_map_count(map), ==, cases[i].n);
    check_function(map, 0x1000, cases[i].at_1000);
    g_assert_true((uprof_perf_map_bytes(map) > 0) == (cases[i].n > 0));

    /* byte by byte, the result is the same */
    g_autoptr(UprofPerfMap) pieces = uprof_perf_map_new();
    for (size_t at = 0; cases[i].text[at] != '\0'; at++)
        uprof_perf_map_add(pieces, (UprofSlice){ cases[i].text + at, 1 }, true);
    g_assert_cmpuint(uprof_perf_map_count(pieces), ==, cases[i].n);
    g_assert_cmpuint(uprof_perf_map_bytes(pieces), ==, uprof_perf_map_bytes(map));
    check_function(pieces, 0x1000, cases[i].at_1000);
}

/* The functions are found in their bounds. */
static void
test_bounds(void)
{
    g_autoptr(UprofPerfMap) map = uprof_perf_map_new();

    add(map, "2000 10 second\n1000 10 first\n");
    check_function(map, 0, NULL);
    check_function(map, 0xfff, NULL);
    check_function(map, 0x100f, "first");
    check_function(map, 0x1010, NULL);
    check_function(map, 0x2000, "second");
    check_function(map, UINT64_MAX, NULL);
}

/* A part of the text is missing. */
static void
test_gap(void)
{
    g_autoptr(UprofPerfMap) map = uprof_perf_map_new();
    const char *const after = "0 20 wrong\n3000 20 right\n";

    add(map, "1000 20 run\n2000 20 beg");
    uprof_perf_map_add(map, (UprofSlice){ after, strlen(after) }, false);
    check_function(map, 0x1000, "run");
    check_function(map, 0, NULL);
    check_function(map, 0x2000, NULL);
    check_function(map, 0x3000, "right");
}

static void
test_long_name(void)
{
    g_autofree char *name = g_strnfill(1000 * 1000, 'x');
    g_autofree char *cut = g_strnfill(UPROF_PERF_MAP_NAME_BYTES_MAX, 'x');
    g_autofree char *text = g_strdup_printf("1000 20 %s\n2000 20 next\n", name);
    g_autoptr(UprofPerfMap) map = uprof_perf_map_new();

    add(map, text);
    check_function(map, 0x1000, cut);
    check_function(map, 0x2000, "next");
    g_assert_cmpuint(uprof_perf_map_bytes(map), <, 4096);
}

/* A full map keeps what it has. */
static void
test_full(void)
{
    g_autoptr(UprofPerfMap) map = uprof_perf_map_new();
    g_autoptr(GString) text = g_string_new(NULL);

    for (unsigned i = 0; i < UPROF_PERF_MAP_FUNCTIONS_MAX + 10; i++)
        g_string_append_printf(text, "%x 10 f%u\n", 0x10000 + i * 0x10, i);
    add(map, text->str);
    g_assert_cmpuint(uprof_perf_map_count(map), ==, UPROF_PERF_MAP_FUNCTIONS_MAX);
    check_function(map, 0x10000, "f0");
    check_function(map, 0x10000 + UPROF_PERF_MAP_FUNCTIONS_MAX * 0x10, NULL);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/perf-map/%s", cases[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_case);
    }
    g_test_add_func("/perf-map/bounds", test_bounds);
    g_test_add_func("/perf-map/gap", test_gap);
    g_test_add_func("/perf-map/long-name", test_long_name);
    g_test_add_func("/perf-map/full", test_full);
    return g_test_run();
}
