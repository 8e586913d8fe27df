/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * config.h - the configuration file, with units and defaults
 *
 * The file sets what periodic rounds do, and the limits for domain metadata. A file may
 * omit any value; xml/virt-uprof.xml shows the defaults.
 */
#pragma once

#include "uprof/bytes.h"
#include "uprof/destination.h"

enum {
    UPROF_CONFIG_MEMORY_MIN = 16, /* megabytes for symbols */
    UPROF_CONFIG_MEMORY_MAX = 65536,
};

/** UprofConfig: all members are owned */
typedef struct {
    /* `collect` uses these values for a domain whose metadata does not set them */
    uint64_t rate_mhz; /* samples per second of each vCPU, in millihertz */
    uint64_t duration_ns;
    uint64_t budget_ppm; /* share of time that a vCPU may be held, in millionths */

    GPtrArray *uris; /* (element-type utf8): connections of `collect`; empty: libvirt's default */
    /* (element-type utf8): patterns with * and ? (one character) for the names of domains that
     * are sampled even without metadata */
    GPtrArray *domains;
    uint64_t chance_ppm; /* probability that a round samples a domain, in millionths */
    uint64_t longest_ns; /* a round starts no more domains after this time */

    /* Upper limits for metadata */
    uint64_t limit_rate_mhz;
    uint64_t limit_duration_ns;
    uint64_t limit_budget_ppm;

    /* (element-type utf8): absolute paths of folders for symbol files that metadata names */
    GPtrArray *symbol_folders;
    uint64_t symbols_megabytes; /* memory for the symbol files and their tables of a domain */

    char *store;                 /* absolute path of the folder of stored profiles */
    uint64_t slice_days;         /* retention of the profiles of single rounds */
    uint64_t merged_days;        /* retention of the profiles of complete days */
    uint64_t max_megabytes;      /* of all stored profiles; 0: no limit */
    uint64_t min_free_megabytes; /* `collect` does not write if less space is free */

    char *metrics_folder;    /* absolute path: where files of metrics go; "": nowhere */
    GPtrArray *destinations; /* of UprofDestination: where `push` sends stored profiles */
} UprofConfig;

/** uprof_config_new: Returns: (transfer full): the defaults */
UprofConfig *uprof_config_new(void);
void uprof_config_free(UprofConfig *config);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofConfig, uprof_config_free)

/**
 * uprof_config_load:
 * @path: (nullable): a file that must exist; %NULL: the installed file, or the defaults if it
 *   does not exist
 *
 * If this process runs as root, the file must belong to root and only root may write it.
 *
 * Returns: (transfer full) (nullable): %NULL with an error that names the file
 */
UprofConfig *uprof_config_load(const char *path, GError **error);

/** uprof_config_has_domain: does one of the patterns match all of @name, which may be any bytes? */
bool uprof_config_has_domain(const UprofConfig *config, const char *name);

/**
 * uprof_config_names_others: does one of the patterns match none of @names?
 * @names: (element-type utf8)
 */
bool uprof_config_names_others(const UprofConfig *config, const GPtrArray *names);
