/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * prune-store.h - keeps the store tidy: closes days, deletes old profiles, writes summaries
 */
#pragma once

#include "uprof/prune-settings.h"
#include "uprof/store.h"

/**
 * uprof_prune_store:
 * @store: must be locked, except in a dry run
 * @now_s: since 1970
 * @result: (out)
 *
 * First closes days, then deletes, then writes summaries. So no slice is deleted before it is
 * merged, and old profiles are deleted even if a summary cannot be made. If a run is interrupted,
 * the next run completes the work.
 */
void uprof_prune_store(UprofStore *store, const UprofPruneSettings *settings, int64_t now_s,
                       UprofPruneResult *result);

/** uprof_prune_describe: Returns: (transfer full): the result in one line */
char *uprof_prune_describe(const UprofPruneResult *result, bool dry_run);
