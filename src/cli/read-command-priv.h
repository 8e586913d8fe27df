/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * read-command-priv.h - commands that read profiles run in a process without rights
 *
 * Profiles and captures may come from anywhere. An attacker who uses a fault in their parsers must
 * not get the rights of the user.
 */
#pragma once

#include "options-priv.h"
#include "uprof/catalog.h"
#include "uprof/confined-command.h"
#include "uprof/load.h"

/** UprofReadCommand: the input of the command in its process; all pointers are borrowed */
typedef struct {
    UprofOptions *options;
    UprofLoadTarget *targets;    /* one for each output of @options */
    bool *are_files;             /* one for each word of @options: a file has that path */
    const UprofCatalog *catalog; /* (nullable): of the store; %NULL: the command does not read it */
    UprofErrorCode code;         /* why folders of the store could not be listed */
} UprofReadCommand;

/**
 * uprof_read_command_run: opens the outputs of @options, and runs the command
 * @reads_store: the command reads the store, too
 * @run: runs in the process without rights; output i is uprof_confined_output(i)
 *
 * Returns: exit code
 */
int uprof_read_command_run(UprofOptions *options, bool reads_store,
                           UprofErrorCode (*run)(const UprofReadCommand *command));

/** uprof_read_command_shows: is stdout a terminal that gets a table, too, besides the outputs? */
bool uprof_read_command_shows(const UprofOptions *options);

/**
 * uprof_read_command_finish: commits an output that was written, and says so, or why it was not
 * @i: index of the output
 * @error: (nullable): why the output could not be written
 *
 * Returns: NONE or FAILED
 */
UprofErrorCode
uprof_read_command_finish(const UprofReadCommand *command, unsigned i, const GError *error);
