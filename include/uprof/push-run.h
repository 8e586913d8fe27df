/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * push-run.h - sends the profiles of one run at its end
 *
 * The run writes its profiles into a store in a temporary folder. A process that was forked before
 * the run, and so has no connection, sends them from there.
 */
#pragma once

#include "uprof/push-rounds.h"

typedef struct _UprofPushRun UprofPushRun;

/** UprofPushRunPlan: all pointers are borrowed; the process sees the data as it was at the start */
typedef struct {
    const GPtrArray *destinations; /* of UprofDestination */
    const UprofNotices *notices;
    /* Shows the results in the process. @code: of the store. Returns: its exit status */
    int (*show)(const GArray *results, UprofErrorCode code, void *data);
    void *data; /* passed to @show */
} UprofPushRunPlan;

/**
 * uprof_push_run_start: makes the folder, and forks the process
 *
 * The program must have one thread, and no connection.
 *
 * Returns: (transfer full) (nullable): %NULL with an error
 */
UprofPushRun *uprof_push_run_start(const UprofPushRunPlan *plan, GError **error);

/**
 * uprof_push_run_add_outputs: adds the files of a round
 * @requests: of UprofOutputRequest; borrow from @run
 */
void uprof_push_run_add_outputs(const UprofPushRun *run, GPtrArray *requests);

/**
 * uprof_push_run_end: sends the profiles, and removes the folder
 * @run: freed
 *
 * Returns: the exit status of the process; -1 if it has died
 */
int uprof_push_run_end(UprofPushRun *run);
