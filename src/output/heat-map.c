/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "heat-map-priv.h"

uint8_t
uprof_heat_level(uint64_t part, uint64_t whole)
{
    if (whole == 0)
        return 0;
    return (uint8_t)(1 + (unsigned __int128)MIN(part, whole) * (UPROF_HEAT_LEVELS - 2) / whole);
}

static void
append_tenths(GString *out, const char *command, uint64_t tenths)
{
    g_string_append_printf(out, "%s%" G_GUINT64_FORMAT, command, tenths / 10);
    if (tenths % 10 > 0)
        g_string_append_printf(out, ".%u", (unsigned)(tenths % 10));
}

/* Equal cells that stand above each other are one rectangle. */
static void
append_column(GString *out, const UprofHeatMap *map, unsigned column, uint8_t level)
{
    const uint8_t *levels = map->levels + (size_t)column * map->n_rows;

    for (unsigned row = 0; row < map->n_rows;) {
        unsigned end = row;
        while (end < map->n_rows && levels[end] == level)
            end++;
        if (end == row) {
            row++;
            continue;
        }
        append_tenths(out, "M", map->x + column * map->cell_width);
        append_tenths(out, " ", map->y + (map->n_rows - end) * map->cell_height);
        append_tenths(out, "h", map->cell_width);
        append_tenths(out, "v", (end - row) * map->cell_height);
        append_tenths(out, "h-", map->cell_width);
        g_string_append_c(out, 'z');
        row = end;
    }
}

void
uprof_heat_map_append(GString *out, const UprofHeatMap *map)
{
    for (uint8_t level = 1; level < UPROF_HEAT_LEVELS; level++) {
        const gsize before = out->len;
        g_string_append_printf(out, "<path class=\"e%u\" d=\"", level);
        const gsize begin = out->len;
        for (unsigned column = 0; column < map->n_columns; column++)
            append_column(out, map, column, level);
        if (out->len == begin)
            g_string_truncate(out, before);
        else
            g_string_append(out, "\"/>\n");
    }
}
