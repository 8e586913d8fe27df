/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * merge-days-priv.h - closes days: merges the slices of a day into one profile
 *
 * The sidecar of a closed day lists the slices that the day has counted. So a late slice can be
 * added, and no slice is counted twice. A merge can be interrupted after each of these steps:
 *
 *   1. NAME.pending is written: the new sidecar, with the digest of the new stacks
 *   2. NAME.folded.gz is replaced: from here on the new profile counts
 *   3. NAME.pending is renamed to NAME.meta.json
 */
#pragma once

#include "store-priv.h"
#include "uprof/notice.h"

/** UprofMergeSettings: all pointers are borrowed */
typedef struct {
    int64_t today_s;             /* 00:00 UTC, since 1970; earlier days are closed */
    bool dry_run;                /* writes nothing */
    const UprofNotices *notices; /* (nullable) */
    /* called for each day (00:00 UTC, since 1970) that @n_slices are added to */
    void (*show_day)(int64_t day_s, unsigned n_slices);
} UprofMergeSettings;

/**
 * uprof_merge_days: closes all days before today
 * @folder: afterwards its items are out of date; open the folder again
 *
 * Sends a warning for each damaged file, and leaves the file in place. If the sidecar of a closed
 * day cannot be read, its counted slices are unknown, so nothing is added to that day.
 */
UprofErrorCode uprof_merge_days(UprofStoreFolder *folder, const UprofMergeSettings *settings);
