/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * filter-priv.h - stacks of a profile that are wanted, by the names in them
 */
#pragma once

#include "uprof/profile.h"

/**
 * UprofFilter:
 * @include: (nullable): stacks without a frame that matches are dropped
 * @exclude: (nullable): so are those with one
 * @drop_idle: and those of halted vCPUs
 */
typedef struct {
    const GRegex *include;
    const GRegex *exclude;
    bool drop_idle;
} UprofFilter;

/** uprof_filter_is_empty: Returns: whether it lets everything pass */
bool uprof_filter_is_empty(const UprofFilter *filter);

/**
 * uprof_filter_apply:
 * @profile: settled
 * @run: (inout): of --include and --exclude: counts samples anew, and forgets what is not
 *   known of a part
 *
 * Returns: (transfer full): what passes, with the same names and root
 */
UprofProfile *
uprof_filter_apply(const UprofFilter *filter, const UprofProfile *profile, UprofRun *run);

/** uprof_filter_count: adds one stack to the numbers of samples of @run */
void uprof_filter_count(UprofRun *run, const UprofName *const *frames, unsigned n, uint64_t weight);
