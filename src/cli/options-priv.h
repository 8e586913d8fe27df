/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * options-priv.h - the command line, parsed
 *
 * The command line is parsed before the program takes a lock, forks or connects.
 */
#pragma once

#include "uprof/record-domains.h"
#include "uprof/notice.h"
#include "uprof/output.h"
#include "uprof/settings.h"
#include "uprof/symbol-settings.h"
#include "uprof/task-choice.h"

typedef struct _UprofOptions UprofOptions;

/** UprofCommandBit: one bit for each command, so that an option can name all that take it */
typedef enum {
    UPROF_COMMAND_RECORD = 1 << 0,
    UPROF_COMMAND_LIST = 1 << 1,
    UPROF_COMMAND_DUMP = 1 << 2,
    UPROF_COMMAND_CHECK = 1 << 3,
    UPROF_COMMAND_REPORT = 1 << 4,
    UPROF_COMMAND_DIFF = 1 << 5,
    UPROF_COMMAND_TOP = 1 << 6,
    UPROF_COMMAND_COLLECT = 1 << 7,
    UPROF_COMMAND_ENABLE = 1 << 8,
    UPROF_COMMAND_DISABLE = 1 << 9,
    UPROF_COMMAND_CONFIGURE = 1 << 10,
    UPROF_COMMAND_PRUNE = 1 << 11,
    UPROF_COMMAND_SUMMARY = 1 << 12,
    UPROF_COMMAND_HELP = 1 << 13,
    UPROF_COMMAND_WATCH = 1 << 14,
    UPROF_COMMAND_HISTORY = 1 << 15,
    UPROF_COMMAND_DMESG = 1 << 16,
    UPROF_COMMAND_PS = 1 << 17,
    UPROF_COMMAND_PUSH = 1 << 18,
    UPROF_COMMAND_SYMBOLS = 1 << 19,
} UprofCommandBit;

/** UprofCommand: a row of the table of commands, which ends with a row without a name */
typedef struct {
    const char *name;
    UprofCommandBit bit;
    const char *arguments; /* for --help; completion finds DOMAIN, FILE, OLD or DAY in it */
    const char *summary;   /* for --help */
    int (*run)(UprofOptions *options); /* returns an exit code (exit-priv.h) */
    unsigned min_words, max_words;     /* how many arguments the command takes */
    const char *words_message;         /* (nullable): the message for another number of arguments */
} UprofCommand;

/** UprofWanted: an output that the user asked for */
typedef struct {
    char *path; /* owned; with %d, %t and %u as the user gave them; "-" is stdout */
    const UprofFormat *format;
} UprofWanted;

/** UprofOptions: the parsed command line. All members are owned unless they say "borrowed". */
struct _UprofOptions {
    const UprofCommand *command;  /* borrowed */
    const UprofCommand *commands; /* borrowed: all of them */
    const char *command_meant; /* (nullable): borrowed: no command is named, but the first word is
                                * almost the name of this one */
    GPtrArray *child; /* of char: a command to run while domains are sampled; ends with NULL */
    GPtrArray *words; /* of char: arguments of the command, for uprof_domid_find() */

    /* which domains */
    GPtrArray *uris;  /* of char: every --connect */
    const char *uri;  /* (nullable): borrowed from @uris: the last --connect */
    bool all;         /* every running domain, instead of @words */
    bool wait;        /* also waits for domains that do not run yet ... */
    uint64_t wait_ns; /* ... at most for this time; 0: until a signal */

    /* how to sample them */
    const char *access;     /* borrowed; "auto", "direct", "monitor" or "xen" */
    UprofSettings settings; /* rate, duration and the like */
    unsigned samples;       /* the most of each domain; 0: no limit */
    bool given_depth;       /* --max-depth was given */
    bool given_max_pause;   /* --max-pause was given */
    char *config_path;      /* (nullable): of --config */
    UprofConfig *config;    /* (nullable): only of periodic runs; limits what metadata asks for */

    /* symbols */
    GPtrArray *symbols;       /* of UprofSymbolFile */
    GPtrArray *debug_folders; /* of char; the last one is NULL */
    GPtrArray *sysroots;      /* of char; the last one is NULL */
    bool no_demangle;         /* names as the symbol file has them */
    unsigned memory_mib;      /* for symbol files and tables; 0: as configured */
    bool lines;               /* source file and line in each frame */

    /* outputs */
    GPtrArray *outputs;        /* of UprofWanted */
    const UprofFormat *format; /* (nullable): borrowed: of --format, for all outputs */
    unsigned rows;             /* the most rows of a table; 0: the command's default */
    UprofRowsBy by;            /* what a row of a table stands for */
    const char *sort;          /* (nullable): borrowed; of --sort; its command says which */
    bool json;
    bool quiet;
    bool verbose;

    /* top */
    bool batch;      /* plain text instead of a screen */
    unsigned rounds; /* number of rounds, each of a second; 0: until a signal */

    /* ps and dump */
    UprofTaskChoice tasks; /* which tasks are shown */
    bool shows_tasks;      /* dump: tasks that do not run, instead of vCPUs */
    bool is_blocked;       /* dump: the same, in the order of a guest that hangs */
    bool pauses;           /* the whole guest is held while its tasks are read */

    /* watch */
    GPtrArray *rules;  /* of UprofWatchRule */
    uint64_t keep_ns;  /* the time before a trigger that is written ... */
    uint64_t after_ns; /* ... and after it */
    uint64_t rest_ns;  /* the least time between two triggers of a domain */
    unsigned keep_mib; /* memory for the kept samples of a domain */
    bool now;          /* asks a running watch to write what it keeps */

    /* report and diff */
    char *focus;     /* (nullable): the function whose callers and callees are shown */
    char *annotate;  /* (nullable): the function whose instructions are shown */
    GRegex *include; /* (nullable): drops stacks in which no name matches */
    GRegex *exclude; /* (nullable): drops stacks in which a name matches */

    /* the store */
    char *store;     /* (nullable): of --store */
    bool is_stored;  /* --since was given: @words are domains of the store, not files */
    int64_t since_s; /* runs that began then or later, in seconds since 1970 */
    int64_t until_s; /* ... and before; INT64_MAX: no limit */
    bool dry_run;    /* show what would be done */

    /* push */
    bool push;          /* record: sends the run at its end; check: tries the destinations */
    GPtrArray *targets; /* of char: names and URLs of destinations; empty: as configured */
    uint64_t spread_ns; /* wait for a random time of up to this first */
};

/* Values of UprofOptionInfo.choices that stand for a kind of word. */
#define UPROF_COMPLETE_FILES "/files"
#define UPROF_COMPLETE_FOLDERS "/folders"
#define UPROF_COMPLETE_FORMATS "/formats"

/** UprofOptionInfo: one spelling of an option; all text is literal */
typedef struct {
    const char *long_name; /* (nullable) */
    char short_name;       /* '\0': none */
    unsigned commands;     /* bits of the commands that take the option */
    const char *argument;  /* (nullable): the name of its argument */
    bool is_optional;      /* the argument can be left out */
    const char *choices;   /* (nullable): possible values, between blanks, or UPROF_COMPLETE_... */
} UprofOptionInfo;

/** uprof_options_describe: describes option @i. Returns: false if there are fewer options */
bool uprof_options_describe(size_t i, UprofOptionInfo *info);

/**
 * uprof_options_parse:
 * @commands: borrowed by the result; the first one runs if the command line names none
 * @code: (out): the exit code if there is nothing to run
 *
 * Prints the help, the version, or one message about a usage error.
 *
 * Returns: (transfer full) (nullable): %NULL if the program must exit with @code
 */
UprofOptions *
uprof_options_parse(int argc, const char **argv, const UprofCommand *commands, int *code);

/** uprof_options_help_run: the command help. Returns: exit code */
int uprof_options_help_run(UprofOptions *options);

/** uprof_options_symbols: Returns: the options about symbols; borrows from @options */
UprofSymbolSettings uprof_options_symbols(const UprofOptions *options);

/**
 * uprof_options_notices: Returns: a receiver that prints notices on stderr, only warnings with
 * --quiet; borrows @options
 */
UprofNotices uprof_options_notices(const UprofOptions *options);

/** uprof_options_session: Returns: how to open domains; borrows @options and @notices */
UprofSessionSettings
uprof_options_session(const UprofOptions *options, const UprofNotices *notices);

/**
 * uprof_options_record: Returns: the run that the user asked for, without outputs and
 *   observer; borrows @options and @notices
 */
UprofRecordSettings uprof_options_record(const UprofOptions *options, const UprofNotices *notices);

void uprof_options_free(UprofOptions *options);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofOptions, uprof_options_free)
