/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * mapped-files.h - the files that the processes of a Linux guest run, and that this host lacks
 */
#pragma once

#include "uprof/analysis.h"

/** UprofMappedFile: both strings are owned */
typedef struct {
    char *build_id; /* in lower-case hex */
    char *path;     /* in the guest; any bytes */
} UprofMappedFile;

/**
 * uprof_mapped_files_make: in a worker: a call of UprofWorkerPlan; replies with the files whose
 * code the snapshots so far have met, and whose build-id is known. Files that this host has are
 * left out.
 */
void uprof_mapped_files_make(UprofAnalysis *analysis, UprofSlice argument, GByteArray *reply);

/**
 * uprof_mapped_files_read: in the program
 * @reply: of uprof_mapped_files_make(); any bytes
 *
 * Returns: (transfer full) (nullable): of UprofMappedFile; %NULL if the worker broke the rules
 */
GPtrArray *uprof_mapped_files_read(UprofSlice reply);
