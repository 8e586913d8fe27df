/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * query.h - loads the stored profiles of a domain
 */
#pragma once

#include "uprof/catalog.h"
#include "uprof/load.h"

/** UprofQuery: the stored profiles to load; all pointers are borrowed */
typedef struct {
    const UprofCatalog *catalog;
    const char *domain; /* (nullable): name or UUID; %NULL: all domains of that time */
    int64_t since_s;    /* since 1970; selects profiles that began then or later */
    int64_t until_s;    /* since 1970; INT64_MAX: now; selects profiles that began before */
} UprofQuery;

/**
 * uprof_query_load: adds the profiles to @load
 *
 * Sends a warning for each error. Returns: %UPROF_ERROR_EMPTY if no profile is stored
 */
UprofErrorCode uprof_query_load(const UprofQuery *query, UprofLoad *load);
