/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * watch-log-priv.h - what `watch` keeps of one domain: the samples of the last minutes
 *
 * The samples are in steps of about a second. The log does not look into their bytes, which come
 * from a worker.
 */
#pragma once

#include "uprof/notice.h"

#include "watch-rule-priv.h"

/** UprofWatchStep: one step */
typedef struct {
    uint64_t start_ns, end_ns; /* monotonic */
    uint64_t start_utc_ns;
    uint64_t sampled_ns;                     /* without the time of missed samples */
    uint64_t ticks;                          /* that a sample was taken at, of all vCPUs */
    uint64_t matched[UPROF_WATCH_RULES_MAX]; /* of these, by rule */
    GBytes *slice;                           /* owned by the log: the samples */
    GBytes *facts; /* owned by the log: the facts of the guest, as they were sent last */
} UprofWatchStep;

typedef struct _UprofWatchLog UprofWatchLog;

/**
 * uprof_watch_log_new:
 * @keep_ns: steps that ended longer ago are dropped
 * @bytes_max: of all slices; the oldest are dropped first
 */
UprofWatchLog *uprof_watch_log_new(uint64_t keep_ns, uint64_t bytes_max);
void uprof_watch_log_free(UprofWatchLog *log);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofWatchLog, uprof_watch_log_free)

/**
 * uprof_watch_log_add: adds a step, unless its slice alone has too many bytes
 * @step: copied; its slice and its facts are (transfer full)
 */
void uprof_watch_log_add(UprofWatchLog *log, const UprofWatchStep *step);

/** uprof_watch_log_drop_old: drops what is too old at @now_ns, of a domain that adds no steps */
void uprof_watch_log_drop_old(UprofWatchLog *log, uint64_t now_ns);

/**
 * uprof_watch_log_say_short: warns once if the limit of bytes drops steps that are not too old
 * @shown: the domain's name, safe to print
 */
void uprof_watch_log_say_short(UprofWatchLog *log, const char *shown, const UprofNotices *notices);

/**
 * uprof_watch_log_holds: does the rule with the number @i hold now?
 *
 * Returns: false also if there are too few samples to tell
 */
bool uprof_watch_log_holds(const UprofWatchLog *log, const UprofWatchRule *rule, unsigned i);

/** uprof_watch_log_steps: Returns: (transfer none): of UprofWatchStep: the oldest first */
const GList *uprof_watch_log_steps(const UprofWatchLog *log);
