/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sidecar.h - reads the facts of a run from NAME.meta.json beside its profile
 *
 * src/output/json.c writes the file. Absent values are 0 or NULL, and unknown members are
 * skipped. Times are in milliseconds or microseconds. The file has only a few percentiles of the
 * holds; the histogram is built from them. Each image counts as seen once.
 */
#pragma once

#include "uprof/run-facts.h"
#include "uprof/scan.h"

enum {
    UPROF_SIDECAR_BYTES_MAX = 4 * 1024 * 1024,
};

/**
 * uprof_sidecar_parse:
 * @name: of the file, for messages
 * @text: contents of the file
 *
 * Returns: (transfer full) (nullable): %NULL with %UPROF_ERROR_BAD_DATA if @text is not a
 *   sidecar, has another version, or a member has a bad type or value
 */
UprofRun *uprof_sidecar_parse(const char *name, UprofSlice text, GError **error);
