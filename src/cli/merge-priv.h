/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * merge-priv.h - closed days: the slices of a day as one profile
 *
 * A day's sidecar lists the slices that it has counted. So a slice that comes
 * late is added, and none is counted twice, however often this is done and
 * wherever it was interrupted:
 *
 *   NAME.pending     the sidecar to be, with the digest of the stacks to be
 *   NAME.folded.gz   replaced; from here on the day is the new one
 *   NAME.meta.json   is the pending one
 */
#pragma once

#include "store-priv.h"

/** UprofMergeVisit: @day: "2026-11-20"; @n: slices that are added to it */
typedef void (*UprofMergeVisit)(const UprofStoreFolder *folder, const char *day, unsigned n,
                                void *data);

/**
 * uprof_merge_folder: closes all days before @today_s
 * @folder: its items are as before afterwards: open it again
 * @dry_run: writes nothing
 * @visit: told of each day that gets slices
 *
 * Says which files are damaged; these are left out, and stay. Nothing is added to a day of which
 * it cannot be read what it has counted.
 *
 * Returns: exit code
 */
int uprof_merge_folder(UprofStoreFolder *folder, int64_t today_s, bool dry_run,
                       UprofMergeVisit visit, void *data);
