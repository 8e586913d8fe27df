/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * svg-tables-priv.h - the <metadata> of a picture: what its script draws
 *
 * Foreign text stands only in text nodes.
 */
#pragma once

#include "timeline-priv.h"

/** UprofSvgTables: the content; all pointers are borrowed */
typedef struct {
    const UprofPicture *picture;
    const UprofTimeline *timeline; /* (nullable) */
    const UprofRun *const
        *runs; /* one for each side; the old one is %NULL if there is one profile */
} UprofSvgTables;

/**
 * uprof_svg_tables_append: appends the element
 *
 * The frames are rows of numbers (digits-priv.h) without separators, callers first: the index of
 * the name; twice the number of levels from the previous frame up to the caller, plus 1 if the row
 * has all weights; and the weights: the rest of the new profile, and if the row has all weights,
 * its hidden part; in a comparison then rest and hidden part of the old profile. Other weights are
 * 0.
 *
 * The names are lines: the kind, two digits of the hash, a digit for the number of letters that the
 * name has in common with the previous name, and the other letters.
 *
 * The modules are lines. If there are any, "within" has a number for each name, in the same order:
 * the line of its module, from 1 on, or 0.
 *
 * The functions are the weights of each name, in the same order: self and total of the new profile;
 * in a comparison, then those of the old profile.
 */
void uprof_svg_tables_append(GString *out, const UprofSvgTables *tables);

/** uprof_svg_hash_name: Returns: a number that chooses the shade; similar names have different ones
 */
uint32_t uprof_svg_hash_name(const UprofName *name);
