/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * catalog.h - the list of stored profiles, by domain and time
 */
#pragma once

#include "uprof/load.h"
#include "uprof/store.h"

typedef struct _UprofCatalog UprofCatalog;

/**
 * uprof_catalog_new: lists the store as it is now
 * @store: borrowed; outlives the catalog
 * @notices: (nullable): borrowed; outlives the catalog
 * @code: (inout): gets an error if a folder cannot be opened; a warning is sent, too
 */
UprofCatalog *
uprof_catalog_new(UprofStore *store, const UprofNotices *notices, UprofErrorCode *code);
void uprof_catalog_free(UprofCatalog *catalog);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofCatalog, uprof_catalog_free)

/**
 * uprof_catalog_describe_range: Returns: (transfer full): which days have profiles, as
 *   "2026-11-20 to 2026-11-23" or "no day"
 */
char *uprof_catalog_describe_range(const UprofCatalog *catalog);

/**
 * uprof_catalog_paths: Returns: (transfer container): of char: the paths of its folders
 */
GPtrArray *uprof_catalog_paths(const UprofCatalog *catalog);
