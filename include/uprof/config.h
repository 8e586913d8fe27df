/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * config.h - the configuration file, with units and defaults
 *
 * What periodic rounds do, and what a domain's metadata may not go beyond. A
 * file says some of it or all; what it does not say is built in, as
 * xml/virt-uprof.xml shows.
 */
#pragma once

#include "uprof/bytes.h"

enum {
    UPROF_CONFIG_DAYS_MAX = 36500,
    UPROF_CONFIG_MEGABYTES_MAX = 1024 * 1024 * 1024,
};

/**
 * UprofConfig:
 * @rate_mhz, @duration_ns, @budget_ppm: what `collect` does where a domain's
 *   metadata is silent: samples per second and vCPU in millihertz, nanoseconds,
 *   share of time that a vCPU may be held in millionths
 * @uris: (element-type utf8): connections of `collect`; empty: libvirt's own
 * @domains: (element-type utf8): patterns with * and ? (one character) of names that are sampled
 *   without metadata
 * @chance_ppm: with which a round takes each domain, in millionths
 * @longest_ns: after so long a round begins no other domain
 * @limit_rate_mhz, @limit_duration_ns, @limit_budget_ppm: metadata cannot ask for more
 * @symbol_folders: (element-type utf8): absolute; where symbol files that
 *   metadata names may lie
 * @store: absolute; the folder of stored profiles
 * @slice_days: profiles of single rounds are kept so long
 * @merged_days: and those of whole days so long
 * @max_megabytes: of all of them; 0: no limit
 * @min_free_megabytes: `collect` writes nothing where less is free
 */
typedef struct {
    uint64_t rate_mhz;
    uint64_t duration_ns;
    uint64_t budget_ppm;
    GPtrArray *uris;
    GPtrArray *domains;
    uint64_t chance_ppm;
    uint64_t longest_ns;
    uint64_t limit_rate_mhz;
    uint64_t limit_duration_ns;
    uint64_t limit_budget_ppm;
    GPtrArray *symbol_folders;
    char *store;
    uint64_t slice_days;
    uint64_t merged_days;
    uint64_t max_megabytes;
    uint64_t min_free_megabytes;
} UprofConfig;

/** uprof_config_new: Returns: (transfer full): what is built in */
UprofConfig *uprof_config_new(void);
void uprof_config_free(UprofConfig *config);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofConfig, uprof_config_free)

/**
 * uprof_config_parse:
 * @text: of a file
 *
 * Returns: (transfer full) (nullable): what it says, and else what is built in;
 *   %NULL with %UPROF_ERROR_BAD_DATA, without the file's name
 */
UprofConfig *uprof_config_parse(UprofSlice text, GError **error);

/**
 * uprof_config_load:
 * @path: (nullable): of a file that must be there; %NULL: the installed one, or
 *   what is built in where there is none
 *
 * Where this is run by root the file must be root's, and writable by root alone.
 *
 * Returns: (transfer full) (nullable): %NULL with an error that names the file
 */
UprofConfig *uprof_config_load(const char *path, GError **error);

/**
 * uprof_config_has_domain:
 * @name: any bytes
 *
 * Returns: whether one of the patterns matches the whole of @name
 */
bool uprof_config_has_domain(const UprofConfig *config, const char *name);
