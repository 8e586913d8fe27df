/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * hot-rows-priv.h - how rows get into the table
 */
#pragma once

#include "uprof/hot-rows.h"

/** uprof_hot_rows_names: Returns: (transfer none): the names of all rows */
UprofNames *uprof_hot_rows_names(UprofHotRows *rows);

/** uprof_hot_rows_add: adds a round of one domain; @round: of UprofProfileRow, in whole samples */
void uprof_hot_rows_add(UprofHotRows *rows, unsigned domain, UprofRowsBy by, const GArray *round);
