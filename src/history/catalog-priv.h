/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * catalog-priv.h - selects profiles of the store by domain and time
 *
 * A selection has each sample once. If a day lies completely in the selected time, the selection
 * has the closed profile of the day, and the slices that this profile has not counted. For every
 * other day, the selection has the slices. UUIDs identify domains, because names change.
 */
#pragma once

#include "stored-profile-priv.h"
#include "uprof/catalog.h"

/** UprofSelected: one profile of a selection */
typedef struct {
    const UprofStoreFolder *folder; /* borrowed from the catalog */
    const UprofStoreItem *item;     /* borrowed from @folder */
    UprofRun *run;                  /* owned; uprof_selection_load() reads the stacks */
} UprofSelected;

/** UprofOmissions: profiles of the selected time that a selection does not have */
typedef struct {
    unsigned n_deleted; /* deleted slices of days that lie only partly in the time */
    unsigned n_damaged; /* files that cannot be read; a warning was sent for each */
} UprofOmissions;

/** uprof_catalog_folders: Returns: (transfer none): the domains' folders, of UprofStoreFolder */
const GPtrArray *uprof_catalog_folders(const UprofCatalog *catalog);

/** uprof_catalog_set_notices: @notices: (nullable): borrowed; outlives the catalog */
void uprof_catalog_set_notices(UprofCatalog *catalog, const UprofNotices *notices);

/**
 * uprof_catalog_find_domain:
 * @word: a UUID or a name. If several domains had this name, the domain that had it last counts.
 *
 * Returns: (transfer full) (nullable): the UUID; %NULL with %UPROF_ERROR_NOT_FOUND
 */
char *uprof_catalog_find_domain(const UprofCatalog *catalog, const char *word, GError **error);

/**
 * uprof_catalog_select: selects the profiles that began from @since_s on, and before @until_s
 * @since_s, @until_s: seconds since 1970
 * @uuid: (nullable): of the only domain to select
 * @omissions: (inout): counts are added
 *
 * Returns: (transfer full): of UprofSelected, by folder and then by time
 */
GPtrArray *uprof_catalog_select(const UprofCatalog *catalog, int64_t since_s, int64_t until_s,
                                const char *uuid, UprofOmissions *omissions);

/** uprof_selection_name: Returns: (transfer none) (nullable): the last name of domain @uuid */
const char *uprof_selection_name(const GPtrArray *selection, const char *uuid);

/**
 * uprof_selection_load: adds the profiles of one domain to @load
 * @selection: of uprof_catalog_select(), in its order
 * @n_slices: (out) (nullable): rounds of `collect` that were added
 *
 * Sends a warning for each profile that cannot be read.
 */
UprofErrorCode uprof_selection_load(const GPtrArray *selection, const char *uuid, UprofLoad *load,
                                    unsigned *n_slices);
