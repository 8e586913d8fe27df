/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * load-options-priv.h - the options about reading profiles
 */
#pragma once

#include "options-priv.h"
#include "uprof/load.h"
#include "uprof/query.h"

/** UprofLoadOptions: must not be moved, because @settings points to other members */
typedef struct {
    const UprofOptions *options; /* borrowed */
    UprofSymbolSettings symbols;
    UprofNotices notices;
    UprofLoadSettings settings;
} UprofLoadOptions;

/** uprof_load_options_init: @options: borrowed; outlives @load_options */
void uprof_load_options_init(UprofLoadOptions *load_options, const UprofOptions *options);

/**
 * uprof_load_options_add_stored: adds stored profiles of a domain
 * @catalog: of the store
 * @domain: (nullable): name or UUID; %NULL: all domains
 * @since_s, @until_s: since 1970
 *
 * Returns: NONE, or why a profile could not be added
 */
UprofErrorCode uprof_load_options_add_stored(const UprofCatalog *catalog, UprofLoad *load,
                                             const char *domain, int64_t since_s, int64_t until_s);
