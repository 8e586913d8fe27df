/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * hot-rows.h - the hottest functions, processes and cgroups of several domains
 *
 * Rounds of samples are added to the table. Earlier rounds can fade, so that a screen that is drawn
 * once a second does not flicker.
 */
#pragma once

#include "uprof/processes.h"

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

typedef struct _UprofHotRows UprofHotRows;

UprofHotRows *uprof_hot_rows_new(void);
void uprof_hot_rows_free(UprofHotRows *rows);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofHotRows, uprof_hot_rows_free)

/** uprof_hot_rows_fade: makes all rows lighter by one round, and drops rows without weight */
void uprof_hot_rows_fade(UprofHotRows *rows);

/** uprof_hot_rows_clear: drops all rows */
void uprof_hot_rows_clear(UprofHotRows *rows);

/**
 * uprof_hot_rows_list:
 * @total: (out): the weight of all rows of this kind, with or without the pattern
 *
 * The share of a row is that of its own domain, so that a busy domain does not hide another one: the
 * weights of each domain are scaled to @total.
 *
 * Returns: (transfer full): of UprofHotRow: the largest share first
 */
GArray *
uprof_hot_rows_list(const UprofHotRows *rows, const UprofHotChoice *choice, uint64_t *total);
