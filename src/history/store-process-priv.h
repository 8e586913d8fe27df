/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * store-process-priv.h - parses profiles of the store in processes without rights
 *
 * The names in a stored profile come from a guest, so a program that may write to the store does
 * not parse stored profiles itself. It makes a process for each job, and opens the files for which
 * the process asks. The process may read all files of the store, and write at most the closed days
 * of one folder. It may delete nothing but the remains of an interrupted merge.
 */
#pragma once

#include "store-priv.h"
#include "uprof/notice.h"

typedef struct _UprofStoreProcess UprofStoreProcess;

/**
 * UprofStoreWork: the work of the processes
 *
 * All pointers are borrowed. The processes see the data as it is at the start.
 */
typedef struct {
    const GPtrArray *folders; /* of UprofStoreFolder: those that the processes may read */
    /*
     * Runs in a process.
     * @job: of uprof_store_process_run()
     * @notices: lead to the program
     * @reply: (inout): empty; gets the reply to the program
     */
    void (*work)(guint job, const UprofNotices *notices, GByteArray *reply, void *data);
    void *data; /* passed to @work */
} UprofStoreWork;

/** UprofStoreReaction: what one job may do, and who gets its messages; all pointers are borrowed */
typedef struct {
    const UprofStoreFolder *written; /* (nullable): the folder whose closed days may be written */
    int64_t today_s;                 /* days before this one may be written */
    const UprofNotices *notices;     /* (nullable) */
    /* (nullable): called with @shown after uprof_store_process_show_day() in the process */
    void (*show_day)(const UprofStoreFolder *folder, int64_t day_s, unsigned n_slices, void *data);
    const UprofStoreFolder *shown;
    void *data;       /* passed to @show_day */
    unsigned time_ms; /* the longest time of the job; 0: as UprofConfinedJob */
} UprofStoreReaction;

/**
 * uprof_store_process_start: forks the process that makes the processes of jobs
 *
 * The program must have one thread, and no connection.
 *
 * Returns: (transfer full) (nullable): %NULL with an error
 */
UprofStoreProcess *uprof_store_process_start(const UprofStoreWork *work, GError **error);
void uprof_store_process_end(UprofStoreProcess *process);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofStoreProcess, uprof_store_process_end)

/**
 * uprof_store_process_run: does one job
 *
 * Returns: (transfer full) (nullable): the reply, with any content; %NULL with an error if the
 *   process has died
 */
GByteArray *uprof_store_process_run(UprofStoreProcess *process, guint job,
                                    const UprofStoreReaction *reaction, GError **error);

/** uprof_store_process_show_day: in a process: reports that @n_slices are added to a closed day */
void uprof_store_process_show_day(int64_t day_s, unsigned n_slices);
