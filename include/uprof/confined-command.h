/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * confined-command.h - runs a complete command in a process without rights
 *
 * A command that only reads files, such as report, needs only the right to read those files. The
 * process has the standard streams of the program, and the outputs that the program has opened for
 * it.
 */
#pragma once

#include "uprof/file-rules.h"
#include "uprof/file.h"
#include "uprof/notice.h"

/** UprofConfinedPlan: the work of the process; all pointers are borrowed */
typedef struct {
    UprofErrorCode (*run)(void *data); /* runs in the process */
    void *data;                        /* passed to @run */
    const UprofFileRules *rules;       /* the files that the process may read */
    GPtrArray *outputs;                /* of UprofFile: open for writing */
    uint64_t symbols_max;              /* bytes of memory for symbols; 0: the default */
    const UprofNotices *notices;       /* (nullable): get the results of downloads */
} UprofConfinedPlan;

/**
 * uprof_confined_command_run: runs the command, and commits the outputs that it completes
 *
 * The program must have one thread. On return @outputs has %NULL for each committed output.
 *
 * Returns: what the command's function has returned; if the process has died, @error is set, and
 *   its code is returned
 */
UprofErrorCode uprof_confined_command_run(const UprofConfinedPlan *plan, GError **error);

/** uprof_confined_output: in the process: Returns: (transfer none): output @i */
UprofFile *uprof_confined_output(unsigned i);

/** uprof_confined_commit: in the process: makes output @i complete; see uprof_file_commit() */
bool uprof_confined_commit(unsigned i, GError **error);
