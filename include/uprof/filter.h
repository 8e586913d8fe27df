/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * filter.h - keeps the stacks of a profile whose names match
 */
#pragma once

#include "uprof/profile.h"

/** UprofFilter: the stacks to keep */
typedef struct {
    const GRegex *include; /* (nullable): drops stacks in which no frame matches */
    const GRegex *exclude; /* (nullable): drops stacks in which a frame matches */
    bool drop_idle;        /* drops the stacks of halted vCPUs */
} UprofFilter;

/** uprof_filter_is_empty: the filter keeps every stack */
bool uprof_filter_is_empty(const UprofFilter *filter);

/**
 * uprof_filter_apply:
 * @profile: settled
 * @run: (inout): if the filter has @include or @exclude, counts the samples again, and clears the
 *   facts that are only known for all samples together
 *
 * Returns: (transfer full): a profile of the stacks that pass, with the same names and root
 */
UprofProfile *
uprof_filter_apply(const UprofFilter *filter, const UprofProfile *profile, UprofRun *run);

/** uprof_filter_count: adds one stack to the sample counts of @run */
void uprof_filter_count(UprofRun *run, const UprofName *const *frames, unsigned n, uint64_t weight);
