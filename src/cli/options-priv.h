/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * options-priv.h - the command line, parsed
 *
 * Parsed before any lock, fork or connection.
 */
#pragma once

#include "uprof/output.h"
#include "uprof/settings.h"
#include "uprof/sym.h"

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
 * UprofSymbolFile: one of --symbols
 * @base: where the guest has it, if @is_moved
 */
typedef struct {
    char *path;
    uint64_t base;
    bool is_moved;
} UprofSymbolFile;

/**
 * UprofOptions:
 * @uri: (nullable): the last one that was given; @uris: of char *: all of them
 * @config_path, @store: (nullable)
 * @access: "auto", "direct", "monitor" or "xen"
 * @config: (nullable): owned: of periodic runs; its limits hold for what metadata asks for
 * @wait: for domains that do not run yet; @wait_ns: how long, 0: until stopped
 * @outputs: of UprofWanted *; @symbols: of UprofSymbolFile *; @words: of char *,
 *   each for uprof_domid_find()
 * @debug_folders, @sysroots: of char *, the last one NULL
 * @format: (nullable): of --format, for all outputs
 * @rows: of tables; 0: as many as the command thinks right
 * @focus: (nullable): name of a function; @include, @exclude: (nullable)
 * @sort: (nullable): "self" or "total", if it was given; @rounds: 0: until stopped
 * @by_process: tables have processes, not functions
 * @is_stored: of --since: @words are domains of the store
 * @since_s, @until_s: since 1970
 */
struct _UprofOptions {
    const UprofCommand *command;
    char *uri;
    GPtrArray *uris;
    char *config_path;
    char *store;
    char *access;
    UprofSettings settings;
    UprofConfig *config;
    GPtrArray *outputs;
    GPtrArray *symbols;
    GPtrArray *debug_folders;
    GPtrArray *sysroots;
    GPtrArray *words;
    const UprofFormat *format;
    unsigned rows;
    char *focus;
    GRegex *include;
    GRegex *exclude;
    char *sort;
    bool by_process;
    unsigned rounds;
    bool is_stored;
    int64_t since_s, until_s;
    bool batch;
    bool is_top; /* shows what it samples, and writes nothing */
    bool given_depth;
    bool all;
    bool wait;
    uint64_t wait_ns;
    bool no_demangle;
    bool lines;
    bool json;
    bool quiet;
    bool verbose;
    bool dry_run;
    bool no_wait;      /* for another run's lock */
    bool no_heal;      /* of other domains: that was tried already */
    bool only_enabled; /* what metadata, or @config, does not want is refused */
    bool in_store;     /* files replace what is there, and none is written behind one that failed */
};

/**
 * UprofOptionInfo: one spelling of an option
 * @long_name: (nullable); @short_name: 0: none
 * @commands: bits of those that take it
 * @argument: (nullable): what it is called; @is_optional: may be left out
 */
typedef struct {
    const char *long_name;
    char short_name;
    unsigned commands;
    const char *argument;
    bool is_optional;
} UprofOptionInfo;

/** uprof_options_describe: the options one by one, from @i 0 on. Returns: false behind the last */
bool uprof_options_describe(size_t i, UprofOptionInfo *info);

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

/** uprof_options_add_symbols: adds those of --symbols to @sym, all or with an error */
bool uprof_options_add_symbols(const UprofOptions *options, UprofSym *sym, GError **error);

/** uprof_options_sym_config: Returns: what they say about symbols; borrowed from @options */
UprofSymConfig uprof_options_sym_config(const UprofOptions *options);

void uprof_options_free(UprofOptions *options);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofOptions, uprof_options_free)
