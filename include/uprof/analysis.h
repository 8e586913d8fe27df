/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * analysis.h - in a worker: the analysis of one domain
 *
 * A worker is a process without rights. It unwinds, names and counts the snapshots that the program
 * sends, and writes the outputs that the program has opened. The program calls functions in it:
 * those below, and those of UprofWorkerPlan.
 */
#pragma once

#include "uprof/file.h"
#include "uprof/notice.h"
#include "uprof/pipeline.h"
#include "uprof/symbol-settings.h"

/** UprofAnalysis: the domain. All members are owned unless they say "borrowed". */
typedef struct {
    char *shown;             /* the domain's name, safe to print */
    UprofNotices notices;    /* leads to the program */
    UprofGuest *guest;       /* (nullable): its memory is read through the program */
    UprofRun *run;           /* as the program knew it at the start, and what was counted since */
    UprofPipeline *pipeline; /* (nullable): until the first call has made it */
    UprofWindowSize *sizes;  /* by vCPU */
    char *symbols_hint;      /* (nullable): why the kernel file of the domain gives no names */
    GPtrArray *outputs;      /* of Output, see analysis.c */
    UprofWriter *writer;     /* (nullable): of the capture */
    GError *capture_error;   /* (nullable): why the capture ends early */
} UprofAnalysis;

/**
 * UprofAnalysisCall: a function that the program calls in a worker
 * @argument: bytes as the caller gave them; aligned for every type
 * @reply: (inout): empty; what the caller gets
 */
typedef void (*UprofAnalysisCall)(UprofAnalysis *analysis, UprofSlice argument, GByteArray *reply);

/** UprofWorkerPlan: what workers can do; all pointers are borrowed and as they are at the fork */
typedef struct {
    UprofSymbolSettings symbols;    /* of the command line */
    const UprofAnalysisCall *calls; /* numbered from 0 */
    unsigned n_calls;
} UprofWorkerPlan;
