/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * domain-list.h - a list of domains, and how each would be sampled
 */
#pragma once

#include "uprof/config.h"
#include "uprof/kernel-files.h"
#include "uprof/store.h"

/** UprofDomainListSources: the data for all rows; all pointers are borrowed */
typedef struct {
    UprofKernelFiles *files;
    const UprofConfig *config;
    UprofStore *store; /* (nullable): NULL if nothing has been collected yet */
} UprofDomainListSources;

/** UprofDomainListStyle: what stands below a row */
typedef enum {
    UPROF_DOMAIN_LIST_USUAL, /* reasons and problems */
    UPROF_DOMAIN_LIST_SHORT, /* nothing */
    UPROF_DOMAIN_LIST_LONG,  /* every reason, and the machine */
} UprofDomainListStyle;

/**
 * uprof_domain_list_text:
 * @domains: of UprofDomain
 *
 * Returns: (transfer full): a table
 */
GString *uprof_domain_list_text(const GPtrArray *domains, const UprofDomainListSources *sources,
                                UprofDomainListStyle style);

/** uprof_domain_list_json: Returns: (transfer full): the same as JSON */
GString *uprof_domain_list_json(const GPtrArray *domains, const UprofDomainListSources *sources);
