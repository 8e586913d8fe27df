/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sidecar.h - the facts of a run, as they stand beside its profile in NAME.meta.json
 *
 * What src/output/json.c writes. What it does not say is 0 or NULL; members that
 * are not known are skipped. Times have the grain that they are written in:
 * milliseconds and microseconds. Of the distribution of holds a few percentiles
 * are there: a histogram with these is made up. Images count as seen once.
 */
#pragma once

#include "uprof/run.h"
#include "uprof/scan.h"

enum {
    UPROF_SIDECAR_BYTES_MAX = 4 * 1024 * 1024,
    UPROF_SIDECAR_IMAGES_MAX = 1024,
    UPROF_SIDECAR_VERSION = 1,
};

/* Samples and frames of one file, and its milliseconds: thousands of files add up to no overflow. */
#define UPROF_SIDECAR_COUNT_MAX (UINT64_C(1) << 52)
#define UPROF_SIDECAR_MS_MAX (UINT64_C(1) << 33)

/**
 * uprof_sidecar_parse:
 * @name: of what is read, for messages
 *
 * Returns: (transfer full) (nullable): %NULL with %UPROF_ERROR_BAD_DATA: it is no sidecar, of a
 *   later version, or a member has a type or a value that it cannot have
 */
UprofRun *uprof_sidecar_parse(const char *name, UprofSlice text, GError **error);
