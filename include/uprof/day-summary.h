/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * day-summary.h - the summary of a day as text: for each domain its top functions, their
 * changes, the rounds that failed, and what the profiles cost
 */
#pragma once

#include "uprof/catalog.h"

/**
 * uprof_day_summary_render:
 * @day_s: 00:00 UTC of the day, since 1970
 * @is_over: false if the day is today
 * @notices: (nullable): get a warning for each profile that is damaged
 * @code: (inout): gets an error if a profile is damaged
 *
 * Compares the day with the day before and with the same day a week before, as `diff` does: a
 * change that can be due to chance is not shown.
 *
 * Returns: (transfer full) (nullable): %NULL if the store has nothing of that day
 */
GString *uprof_day_summary_render(const UprofCatalog *catalog, int64_t day_s, bool is_over,
                                  const UprofNotices *notices, UprofErrorCode *code);
