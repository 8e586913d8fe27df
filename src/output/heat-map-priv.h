/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * heat-map-priv.h - draws a heat map into any SVG file that has the style sheet of pictures
 */
#pragma once

#include <glib.h>
#include <stdint.h>

/* Levels of heat: 0 for no sample, 1 for an idle cell, up to the last for a busy cell. The classes
 * of the style sheet are e1 to e9; cells without samples are not drawn. */
enum { UPROF_HEAT_LEVELS = 10 };

/** UprofHeatMap: columns of cells; lengths are tenths of a pixel */
typedef struct {
    const uint8_t *levels; /* borrowed: column by column, each from the bottom to the top */
    unsigned n_columns;
    unsigned n_rows;
    uint64_t x, y; /* of the left upper corner */
    uint64_t cell_width, cell_height;
} UprofHeatMap;

/** uprof_heat_level: Returns: the level of a cell; 0 if @whole is 0 */
uint8_t uprof_heat_level(uint64_t part, uint64_t whole);

/** uprof_heat_map_append: appends a path for each level that occurs */
void uprof_heat_map_append(GString *out, const UprofHeatMap *map);
