/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * watch-slice-priv.h - a step of `watch` as bytes: made in a worker, kept by the program, read in
 * another process without rights
 *
 * The program does not look into these bytes: it only measures them.
 */
#pragma once

#include "uprof/analysis.h"
#include "uprof/load.h"
#include "uprof/watch-rule.h"

/** UprofWatchReply: the head of a worker's reply; the facts and the slice follow */
typedef struct {
    uint64_t running;                        /* samples of running vCPUs */
    uint64_t matched[UPROF_WATCH_RULES_MAX]; /* of these, by rule */
    uint64_t facts_len;                      /* bytes; 0: the facts have not changed */
} UprofWatchReply;

/**
 * uprof_watch_slice_ask: Returns: (transfer full): the argument of uprof_watch_slice_make()
 * @run: facts of the step that the sampler knows
 * @rules: of UprofWatchRule
 */
GByteArray *uprof_watch_slice_ask(const UprofRun *run, const GPtrArray *rules);

/** uprof_watch_slice_make: in a worker: an UprofAnalysisCall: the samples since the last call */
void uprof_watch_slice_make(UprofAnalysis *analysis, UprofSlice argument, GByteArray *reply);

/** uprof_watch_slice_set_facts: sets the facts of @load, without counts; before the first slice */
bool uprof_watch_slice_set_facts(UprofLoad *load, UprofSlice facts, GError **error);

/** uprof_watch_slice_add: adds the samples of @slice, any bytes, to @load */
bool uprof_watch_slice_add(UprofLoad *load, UprofSlice slice, GError **error);
