/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * change.h - how the share of a frame changed between two profiles, and whether by chance
 *
 * Weights are compared as shares of their profiles, so that rate, duration and load cancel
 * out. Samples are counts and therefore scatter: a difference that chance can explain is
 * not significant.
 */
#pragma once

#include "uprof/tree.h"

/** UprofChange: from the old profile to the new one */
typedef struct {
    int64_t ppm;         /* new share minus old share, in millionths */
    bool is_significant; /* chance does not explain the difference */
    bool is_new;         /* only the new profile has the frame */
    bool is_gone;        /* only the old profile has the frame */
} UprofChange;

/**
 * uprof_change_of: compares @a of @all_a in the old profile with @b of @all_b in the new one
 *
 * A difference is significant if it exceeds three standard deviations of the difference between two
 * random samples of one population. A smaller threshold would not do, because consecutive samples
 * are not independent.
 */
UprofChange uprof_change_of(uint64_t a, uint64_t all_a, uint64_t b, uint64_t all_b);

/** uprof_change_format: Returns: (transfer full): text such as "+8.7 points" */
char *uprof_change_format(const UprofChange *change);

/**
 * uprof_change_class: Returns: a class of the style sheet, from "r7" (grew most) through "g0" to
 * "b7" (shrank most)
 */
const char *uprof_change_class(const UprofChange *change);

enum { UPROF_N_CHANGE_LEGENDS = 5 };

/** uprof_change_legends: some classes and their meaning, for a legend */
extern const struct _UprofChangeLegend {
    const char *class;
    const char *label;
} uprof_change_legends[UPROF_N_CHANGE_LEGENDS];

/** UprofChangeRow: a function of a comparison; arrays have one value for each UprofSide */
typedef struct {
    const UprofName *name;         /* borrowed */
    uint64_t self[UPROF_N_SIDES];  /* weight of stacks that end in the function */
    uint64_t total[UPROF_N_SIDES]; /* weight of stacks that contain the function */
    UprofChange own;               /* of @self */
    UprofChange inclusive;         /* of @total */
} UprofChangeRow;

/**
 * uprof_change_rows:
 *
 * Returns: (transfer full): an UprofChangeRow for each function except the root, by size of
 *   the inclusive change, then of the own change, then by name
 */
GArray *uprof_change_rows(const UprofTree *both);

/**
 * uprof_change_gone:
 *
 * Returns: (transfer container): (element-type UprofTreeNode): at most @max frames that only the
 *   old profile has, below callers that both have; heaviest first; nodes are borrowed
 */
GPtrArray *uprof_change_gone(const UprofTree *both, unsigned max);
