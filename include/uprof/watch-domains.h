/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * watch-domains.h - a flight recorder: keeps the last minutes of samples in memory, and writes them
 * to files when something says so
 */
#pragma once

#include "uprof/record-domains.h"
#include "uprof/watch-rule.h"

#define UPROF_WATCH_KEEP_FORM "a time from 10s to 1h"

/** The folder in the store for the profiles of `watch`; it has the layout of a store */
#define UPROF_WATCH_STORE "watch"

enum {
    UPROF_WATCH_KEEP_S_MIN = 10,
    UPROF_WATCH_KEEP_S_MAX = 3600,
    UPROF_WATCH_MIB_MAX = 1024,
    /* defaults of UprofWatchSettings */
    UPROF_WATCH_KEEP_S = 300,
    UPROF_WATCH_AFTER_S = 10,
    UPROF_WATCH_REST_S = 600,
    UPROF_WATCH_MIB = 16,
};

/** UprofWatchSettings: all pointers are borrowed */
typedef struct {
    /* the domains and how to sample them; its outputs, observer and calls are ignored */
    UprofRecordSettings record;
    const GPtrArray *rules;   /* of UprofWatchRule; up to %UPROF_WATCH_RULES_MAX */
    uint64_t keep_ns;         /* the time before a trigger that is written */
    uint64_t after_ns;        /* the time after it */
    uint64_t rest_ns;         /* the least time between two triggers of a domain */
    uint64_t bytes_max;       /* of the kept samples of a domain */
    const GPtrArray *outputs; /* of UprofOutputRequest: files of each trigger; empty: the store */
    const char *store;        /* (nullable): path of the store; %NULL: only @outputs are written */
    uint64_t min_free_megabytes; /* of the disk; with less, nothing is written to the store */
    void (*abort_run)(void);     /* see UprofRunObserver */
    void (*leave)(const UprofErrorTally *tally, UprofErrorCode code);
} UprofWatchSettings;

/**
 * uprof_watch_domains: samples until a signal ends it
 * @tally: (inout): adds one code for each domain, and one for each profile that could not be
 * written
 *
 * Forks, as uprof_record_domains() does.
 *
 * Returns: NONE, or the code of the run itself
 */
UprofErrorCode uprof_watch_domains(const UprofWatchSettings *settings, UprofErrorTally *tally);
