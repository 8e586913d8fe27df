/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * change.h - what became of a frame between two profiles, and whether it means anything
 *
 * Weights are compared as shares of their profiles, so that rate, duration and
 * load cancel out. Samples are counts, and counts scatter: what chance alone may
 * explain is no change.
 */
#pragma once

#include "uprof/tree.h"

enum {
    UPROF_CHANGE_SAMPLES_MIN = 30, /* of both sides together; fewer prove nothing */
    UPROF_CHANGE_SIGMAS = 3,
};

/**
 * UprofChange:
 * @ppm: share of the new profile less that of the old, in millionths
 * @is_significant: more than chance explains
 * @is_new, @is_gone: only one of them has it
 */
typedef struct {
    int64_t ppm;
    bool is_significant;
    bool is_new;
    bool is_gone;
} UprofChange;

/**
 * uprof_change_of:
 * @a: weight in the old profile, of @all_a; @b: in the new one, of @all_b
 *
 * Significant is a difference of more than three standard deviations of what two
 * draws from one population would show. Samples that follow each other are not
 * independent, so that three is the least.
 */
UprofChange uprof_change_of(uint64_t a, uint64_t all_a, uint64_t b, uint64_t all_b);

/** uprof_change_format: Returns: (transfer full): "+8.7 points" */
char *uprof_change_format(const UprofChange *change);

/** uprof_change_class: Returns: its class of styles: "r7" grew most .. "g0" .. "b7" shrank most */
const char *uprof_change_class(const UprofChange *change);

enum { UPROF_N_CHANGE_LEGENDS = 5 };
extern const struct _UprofChangeLegend {
    const char *class;
    const char *label;
} uprof_change_legends[UPROF_N_CHANGE_LEGENDS];

/**
 * UprofChangeRow: a function of a comparison
 * @self, @total: by side; as of UprofProfileRow
 * @own: change of what ends in it; @inclusive: of what it occurs in
 */
typedef struct {
    const UprofName *name;
    uint64_t self[UPROF_N_SIDES];
    uint64_t total[UPROF_N_SIDES];
    UprofChange own;
    UprofChange inclusive;
} UprofChangeRow;

/**
 * uprof_change_rows: Returns: (transfer full): UprofChangeRow per function, but for
 *   the first node; the largest inclusive change first, then the largest of its
 *   own, then by name
 */
GArray *uprof_change_rows(const UprofTree *both);

/**
 * uprof_change_gone: Returns: (transfer container): of UprofTreeNode, borrowed: at
 *   most @max frames that only the old profile has, while it shares their callers;
 *   the heaviest first
 */
GPtrArray *uprof_change_gone(const UprofTree *both, unsigned max);
