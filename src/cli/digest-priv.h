/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * digest-priv.h - what a day was like, as text: for each domain its top functions,
 * what has changed, what failed, and what it cost
 */
#pragma once

#include "stock-priv.h"

/**
 * uprof_digest_render:
 * @day_s: 00:00 UTC of the day, since 1970
 * @is_over: whether it is
 * @code: (inout): exit code; what is damaged was said
 *
 * Compared are the day before and the same weekday of the week before, with the
 * rules of diff: what chance may explain is no change.
 *
 * Returns: (transfer full) (nullable): %NULL if nothing is known of that day
 */
GString *uprof_digest_render(const UprofStock *stock, int64_t day_s, bool is_over, int *code);
