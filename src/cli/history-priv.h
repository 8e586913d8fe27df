/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * history-priv.h - stored profiles of a domain, for report and diff
 */
#pragma once

#include "load-priv.h"

/**
 * uprof_history_add: adds what is stored of a domain
 * @word: its name or UUID
 * @since_s, @until_s: since 1970
 *
 * Says what is wrong, and if there is nothing.
 *
 * Returns: exit code
 */
int uprof_history_add(UprofLoad *load, const char *word, int64_t since_s, int64_t until_s,
                      const UprofOptions *options);

/**
 * uprof_history_split: DOMAIN@DAY
 * @domain: (out) (transfer full)
 * @day_s: (out): 00:00 UTC, since 1970
 *
 * Returns: false if @word is not written like that, or is the name of a file
 */
bool uprof_history_split(const char *word, char **domain, int64_t *day_s);
