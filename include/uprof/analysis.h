/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * analysis.h - the analysis of one domain, in a worker
 *
 * A worker is a process without rights. It unwinds, names and counts the snapshots that the program
 * sends, and writes the outputs that the program has opened. The program calls functions in the
 * worker, among them those of UprofWorkerPlan.
 */
#pragma once

#include "uprof/file.h"
#include "uprof/notice.h"
#include "uprof/pipeline.h"
#include "uprof/symbol-settings.h"
#include "uprof/waits.h"

/** UprofAnalysis: the domain. All members are owned unless they say "borrowed". */
typedef struct {
    char *shown;             /* the domain's name, safe to print */
    UprofNotices notices;    /* sends notices to the program */
    UprofGuest *guest;       /* (nullable): its memory is read through the program */
    UprofRun *run;           /* the program's facts at the start, and the counts since then */
    UprofPipeline *pipeline; /* %NULL until the first call makes it */
    UprofWaits *waits;       /* (nullable): the run walks tasks */
    /* (nullable): what uprof_task_reply_read_table() or the like has read: task-table.h */
    struct _UprofTaskReading *tasks;
    UprofWindowSize *sizes; /* by vCPU */
    char *symbols_hint;     /* (nullable): why the kernel file of the domain gives no names */
    GPtrArray *outputs;     /* of Output, see analysis.c */
    UprofWriter *writer;    /* (nullable): of the capture */
    GError *capture_error;  /* (nullable): why the capture ends early */
    uint64_t time_ns;       /* of the last snapshot */
    uint32_t reset;         /* of the last snapshot */
} UprofAnalysis;

/**
 * UprofAnalysisCall: a function that the program calls in a worker
 * @argument: the caller's bytes; aligned for every type
 * @reply: (inout): empty; gets the bytes for the caller
 */
typedef void (*UprofAnalysisCall)(UprofAnalysis *analysis, UprofSlice argument, GByteArray *reply);

/**
 * UprofWorkerPlan: the functions of workers; all pointers are borrowed; workers have the data as it
 * was at the fork
 */
typedef struct {
    UprofSymbolSettings symbols;    /* of the command line */
    const UprofAnalysisCall *calls; /* numbered from 0 */
    unsigned n_calls;
    uint64_t cpu_s; /* processor time of each worker; 0: no limit */
} UprofWorkerPlan;
