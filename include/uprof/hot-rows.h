/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * hot-rows.h - the hottest functions, processes and cgroups of several domains
 *
 * Rounds of samples are added to the table. Earlier rounds can fade, so that a screen that is drawn
 * once a second does not flicker.
 */
#pragma once

#include "uprof/processes.h"

typedef struct _UprofHotRows UprofHotRows;

UprofHotRows *uprof_hot_rows_new(void);
void uprof_hot_rows_free(UprofHotRows *rows);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofHotRows, uprof_hot_rows_free)

/** uprof_hot_rows_fade: makes all rows lighter by one round, and drops rows without weight */
void uprof_hot_rows_fade(UprofHotRows *rows);

/** uprof_hot_rows_clear: drops all rows */
void uprof_hot_rows_clear(UprofHotRows *rows);
