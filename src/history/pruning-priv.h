/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * pruning-priv.h - the state and the functions that the steps of one prune share
 */
#pragma once

#include "uprof/prune-settings.h"
#include "store-priv.h"

/** UprofPruning: all pointers are borrowed */
typedef struct {
    UprofStore *store;
    const UprofPruneSettings *settings;
    int64_t today_s; /* 00:00 UTC, since 1970 */
    UprofPruneResult *result;
} UprofPruning;

/** uprof_pruning_show: shows the user the next change to the store */
void uprof_pruning_show(const UprofPruning *pruning, const char *format, ...) G_GNUC_PRINTF(2, 3);

/** uprof_pruning_add_error: sends a warning, and notes the code in the result */
void uprof_pruning_add_error(UprofPruning *pruning, const GError *error);

/**
 * uprof_pruning_add_failure: the same, for a process that could not read the profiles of a folder
 * @error: (nullable): %NULL: its reply breaks the rules
 */
void uprof_pruning_add_failure(UprofPruning *pruning, const UprofStoreFolder *folder,
                               const GError *error);

/** uprof_pruning_take_code: notes the code of a process in the result; @code may be any number */
void uprof_pruning_take_code(UprofPruning *pruning, UprofErrorCode code);

/** uprof_pruning_limit: Returns: 00:00 UTC of the first of the last @days days, since 1970 */
int64_t uprof_pruning_limit(const UprofPruning *pruning, uint64_t days);

/**
 * uprof_pruning_first_day: Returns: the first day whose merged profile is kept
 *
 * A merged profile is kept at least as long as its slices, because the next run would merge these
 * slices again.
 */
int64_t uprof_pruning_first_day(const UprofPruning *pruning);
