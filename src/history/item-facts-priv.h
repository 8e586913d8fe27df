/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * item-facts-priv.h - facts from the content of profiles, by which a prune decides what to delete
 */
#pragma once

#include "pruning-priv.h"
#include "store-priv.h"

enum { UPROF_ITEM_UUID_BYTES = 37 };

/** UprofItemFacts: of one item of a folder */
typedef struct {
    bool is_read;                     /* the sidecar was read: of a day, or a slice in a dry run */
    bool is_unknown;                  /* the sidecar cannot be read now, but may be sound */
    char uuid[UPROF_ITEM_UUID_BYTES]; /* if @is_read: of the domain */
    bool is_merged;                   /* a slice that a closed day has counted, or would count */
    bool is_damaged;                  /* a slice that is damaged, old and not merged */
} UprofItemFacts;

/**
 * uprof_item_facts_find: reads the profiles of all folders, each folder in a process of its own
 * @folders: of UprofStoreFolder
 *
 * If a process dies, notes the error in the result of @pruning, and the items of the folder are
 * unknown.
 *
 * Returns: (transfer full): for each folder a GArray of UprofItemFacts, one for each item
 */
GPtrArray *uprof_item_facts_find(UprofPruning *pruning, const GPtrArray *folders);
