/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * prune-settings.h - the settings of a prune of the store, and its results
 */
#pragma once

#include "uprof/notice.h"

#include <stdbool.h>
#include <stdint.h>

/** UprofPruneSettings: all pointers are borrowed */
typedef struct {
    uint64_t slice_days;         /* age at which slices that are merged into a day are deleted */
    uint64_t merged_days;        /* age at which closed days and summaries are deleted */
    uint64_t max_megabytes;      /* limit of the whole store; 0: none */
    bool dry_run;                /* changes nothing, but calls @show_change */
    const UprofNotices *notices; /* (nullable) */
    /* (nullable): called before each change to the store. @text: such as "remove data/web-1/..." */
    void (*show_change)(const char *text, void *data);
    void *data; /* passed to @show_change */
} UprofPruneSettings;

/** UprofPruneResult: the changes made; with @dry_run, the changes that a prune would make */
typedef struct {
    UprofErrorCode code;  /* of the first error; a warning was sent for each */
    unsigned n_days;      /* days that slices were merged into */
    unsigned n_slices;    /* slices that were merged */
    unsigned n_summaries; /* summaries that were written */
    unsigned n_removed;   /* slices and days that were deleted */
    uint64_t bytes_kept;  /* of the store afterwards, as disk space */
} UprofPruneResult;
