/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * item-facts-priv.h - what a prune must know of the content of profiles before it deletes some
 */
#pragma once

#include "pruning-priv.h"
#include "store-priv.h"

enum { UPROF_ITEM_UUID_BYTES = 37 };

/** UprofItemFacts: of one item of a folder */
typedef struct {
    bool is_read;                     /* its sidecar was read; a day, or in a dry run any profile */
    bool is_unknown;                  /* the sidecar cannot be read now, but may be sound */
    char uuid[UPROF_ITEM_UUID_BYTES]; /* if @is_read: of its domain */
    bool is_merged;                   /* a slice: a closed day has counted it, or would do so */
    bool is_damaged; /* a slice that is old and not merged: it cannot be repaired */
} UprofItemFacts;

/**
 * uprof_item_facts_find: reads the profiles of all folders, each folder in a process of its own
 * @folders: of UprofStoreFolder
 *
 * If a process dies, notes the error in the result of @pruning. The items of that folder are unknown.
 *
 * Returns: (transfer full): for each folder a GArray of UprofItemFacts, one for each item
 */
GPtrArray *uprof_item_facts_find(UprofPruning *pruning, const GPtrArray *folders);
