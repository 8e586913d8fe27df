/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * options-priv.h - the command line, parsed
 *
 * Parsed before any lock, fork or connection.
 */
#pragma once

#include "uprof/output.h"
#include "uprof/settings.h"

typedef struct _UprofOptions UprofOptions;

/** UprofCommand: @run: Returns: exit code (exit-priv.h) */
typedef struct {
    const char *name;
    unsigned bit;
    const char *arguments;
    const char *summary;
    int (*run)(UprofOptions *options);
} UprofCommand;

/**
 * UprofWanted: one output
 * @path: as given, %d and the like not yet replaced; "-" is stdout
 */
typedef struct {
    char *path;
    const UprofFormat *format;
} UprofWanted;

/**
 * UprofOptions:
 * @uri: (nullable)
 * @access: "auto", "monitor", ...
 * @outputs: of UprofWanted *; @symbols, @words: of char *
 * @format: (nullable): of --format, for all outputs
 */
struct _UprofOptions {
    const UprofCommand *command;
    char *uri;
    char *access;
    UprofSettings settings;
    GPtrArray *outputs;
    GPtrArray *symbols;
    GPtrArray *words;
    const UprofFormat *format;
    unsigned rows;
    bool given_depth;
    bool all;
    bool json;
    bool quiet;
    bool verbose;
};

/** uprof_commands: ends with a row without a name */
extern const UprofCommand uprof_commands[];

/**
 * uprof_options_parse:
 * @code: (out): exit code if there is nothing to do
 *
 * Prints help, version and usage errors.
 *
 * Returns: (transfer full) (nullable): %NULL: leave with @code
 */
UprofOptions *uprof_options_parse(int argc, const char **argv, int *code);
void uprof_options_free(UprofOptions *options);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofOptions, uprof_options_free)
