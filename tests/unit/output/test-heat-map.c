/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../../src/output/heat-map-priv.h"

static void
test_levels(void)
{
    g_assert_cmpuint(uprof_heat_level(0, 0), ==, 0);
    g_assert_cmpuint(uprof_heat_level(0, 8), ==, 1);
    g_assert_cmpuint(uprof_heat_level(4, 8), ==, 5);
    g_assert_cmpuint(uprof_heat_level(8, 8), ==, UPROF_HEAT_LEVELS - 1);
    g_assert_cmpuint(uprof_heat_level(9, 8), ==, UPROF_HEAT_LEVELS - 1);
    g_assert_cmpuint(uprof_heat_level(UINT64_MAX / 2, UINT64_MAX), ==, 4);
}

/* Equal cells above each other are one rectangle; cells without samples are not drawn. */
static void
test_draw(void)
{
    static const uint8_t levels[] = { 1, 1, 9, 0, 9, 1 };
    const UprofHeatMap map = {
        .levels = levels,
        .n_columns = 2,
        .n_rows = 3,
        .x = 100,
        .y = 205,
        .cell_width = 35,
        .cell_height = 40,
    };
    g_autoptr(GString) out = g_string_new(NULL);

    uprof_heat_map_append(out, &map);
    g_assert_cmpstr(out->str, ==,
                    "<path class=\"e1\" d=\"M10 24.5h3.5v8h-3.5zM13.5 20.5h3.5v4h-3.5z\"/>\n"
                    "<path class=\"e9\" d=\"M10 20.5h3.5v4h-3.5zM13.5 24.5h3.5v4h-3.5z\"/>\n");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/heat-map/levels", test_levels);
    g_test_add_func("/heat-map/draw", test_draw);
    return g_test_run();
}
