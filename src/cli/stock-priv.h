/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * stock-priv.h - what the store has now, of domains and between two moments
 *
 * Of a day that lies in between as a whole its closed profile is taken, and what
 * came too late for that; of all others the slices. So each sample counts once.
 * A domain is its UUID, whatever it was called and in whose folder it stands.
 */
#pragma once

#include "load-priv.h"
#include "stored-priv.h"

/**
 * UprofPick: one profile
 * @run: its facts; stacks, of which there may be many, are read when they are needed
 */
typedef struct {
    const UprofStoreFolder *folder; /* borrowed */
    const UprofStoreItem *item;     /* borrowed */
    UprofRun *run;
} UprofPick;

/**
 * UprofStockGaps: what is not among the picks
 * @n_gone: slices in between that are only left as part of a day that is not all in between
 * @n_damaged: files; that was said
 */
typedef struct {
    unsigned n_gone;
    unsigned n_damaged;
} UprofStockGaps;

typedef struct _UprofStock UprofStock;

/**
 * uprof_stock_new:
 * @code: (inout): worse if a folder cannot be opened; that was said
 *
 * Returns: (transfer full): what is there now
 */
UprofStock *uprof_stock_new(UprofStore *store, int *code);
void uprof_stock_free(UprofStock *stock);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofStock, uprof_stock_free)

/**
 * uprof_stock_find: which domain is meant
 * @word: a UUID, or a name: then of the domain that had it last
 *
 * Returns: (transfer full) (nullable): its UUID; %NULL with %UPROF_ERROR_NOT_FOUND
 */
char *uprof_stock_find(const UprofStock *stock, const char *word, GError **error);

/**
 * uprof_stock_pick:
 * @since_s, @until_s: since 1970; what began then or later, and before
 * @uuid: (nullable): of this domain alone
 * @gaps: (inout): counted on
 *
 * Returns: (transfer full): of UprofPick, in order of time within each folder
 */
GPtrArray *uprof_stock_pick(const UprofStock *stock, int64_t since_s, int64_t until_s,
                            const char *uuid, UprofStockGaps *gaps);

/** uprof_stock_name: Returns: (transfer none) (nullable): the last name among the picks of @uuid */
const char *uprof_stock_name(const GPtrArray *picks, const char *uuid);

/**
 * uprof_stock_load: adds those picks that are of @uuid, one after the other
 * @picks: of uprof_stock_pick(), in its order
 * @options: (nullable): for their symbols
 *
 * Returns: exit code; what is wrong was said
 */
int uprof_stock_load(UprofLoad *load, const GPtrArray *picks, const char *uuid,
                     const UprofOptions *options);

/** uprof_stock_folders: Returns: (transfer none): of UprofStoreFolder */
const GPtrArray *uprof_stock_folders(const UprofStock *stock);
