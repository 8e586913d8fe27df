/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * hot-rows-priv.h - how rows get into the table, and the list of the hottest
 */
#pragma once

#include "uprof/hot-rows.h"

enum {
    UPROF_HOT_ROWS_UNIT = 1024, /* weight of one sample, because weights fade in fractions */
    UPROF_HOT_ROWS_ROUNDS = 10, /* rounds until a row has faded to a third */
};

/** UprofHotRow: a row of the table */
typedef struct {
    UprofProfileRow row; /* in units of 1 / UPROF_HOT_ROWS_UNIT of a sample */
    unsigned domain;     /* the caller's number of the domain */
    UprofRowsBy by;      /* what the row stands for */
} UprofHotRow;

/** UprofHotChoice: which rows to list, and in which order */
typedef struct {
    UprofRowsBy by;
    bool by_total;       /* sorts functions by total, not by self; others are always sorted so */
    const char *pattern; /* only rows with this text, which is in lower case; "": all rows */
    unsigned max;        /* the most rows */
} UprofHotChoice;

/** uprof_hot_rows_names: Returns: (transfer none): the names of all rows */
UprofNames *uprof_hot_rows_names(UprofHotRows *rows);

/** uprof_hot_rows_add: adds a round of one domain; @round: of UprofProfileRow, in whole samples */
void uprof_hot_rows_add(UprofHotRows *rows, unsigned domain, UprofRowsBy by, const GArray *round);

/**
 * uprof_hot_rows_list:
 * @total: (out): the weight of all rows of this kind, with or without the pattern
 *
 * The share of a row is that of its own domain, so that a busy domain does not hide another one:
 * the weights of each domain are scaled to @total.
 *
 * Returns: (transfer full): of UprofHotRow: the largest share first
 */
GArray *
uprof_hot_rows_list(const UprofHotRows *rows, const UprofHotChoice *choice, uint64_t *total);
