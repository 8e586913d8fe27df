/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * main.c - the table of commands, and the start of the program
 *
 * Only this file sets what is global to the process, such as signal handlers and limits.
 */
#include "commands-priv.h"
#include "exit-priv.h"
#include "uprof/child-command.h"
#include "uprof/text.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define NEEDS_DOMAIN 1, UINT_MAX, "no DOMAIN is given; to list them: virt-uprof list"
#define ANY_NUMBER 0, UINT_MAX, NULL

/* clang-format off */
static const UprofCommand commands[] = {
    { "record", UPROF_COMMAND_RECORD, "DOMAIN...",
      "sample, and write files (the default); with -- COMMAND, while COMMAND runs",
      uprof_record_run, NEEDS_DOMAIN },
    { "list", UPROF_COMMAND_LIST, "",
      "list all domains, and how each would be sampled",
      uprof_list_run, 0, 0, "'list' takes no domain: it lists them all" },
    { "dump", UPROF_COMMAND_DUMP, "DOMAIN...",
      "print the current stack of each vCPU",
      uprof_dump_run, NEEDS_DOMAIN },
    { "stack", UPROF_COMMAND_DUMP, "DOMAIN...",
      "the same as dump",
      uprof_dump_run, NEEDS_DOMAIN },
    { "ps", UPROF_COMMAND_PS, "DOMAIN...",
      "list the tasks of a Linux guest: which run, which wait, where, how long",
      uprof_ps_run, NEEDS_DOMAIN },
    { "dmesg", UPROF_COMMAND_DMESG, "DOMAIN...",
      "print the log of a Linux guest's kernel, also of one that hangs",
      uprof_dmesg_run, NEEDS_DOMAIN },
    { "check", UPROF_COMMAND_CHECK, "[DOMAIN...]",
      "diagnose: what works, what does not, and what to do about it",
      uprof_check_run, ANY_NUMBER },
    { "symbols", UPROF_COMMAND_SYMBOLS, "DOMAIN...",
      "copy the programs and libraries that a Linux guest runs out of its disks",
      uprof_symbols_run, NEEDS_DOMAIN },
    { "report", UPROF_COMMAND_REPORT, "FILE...",
      "show saved profiles as table, picture or files; --since: stored ones",
      uprof_report_run, 1, UINT_MAX, "'report' needs a FILE: a capture, folded stacks or pprof; - reads stdin" },
    { "diff", UPROF_COMMAND_DIFF, "OLD NEW",
      "compare two profiles: files, or stored ones as DOMAIN@DAY",
      uprof_diff_run, 2, 2, "'diff' needs two files, OLD and NEW" },
    { "top", UPROF_COMMAND_TOP, "DOMAIN...",
      "show the hottest functions, once a second",
      uprof_top_run, NEEDS_DOMAIN },
    { "watch", UPROF_COMMAND_WATCH, "DOMAIN...",
      "keep the last minutes in memory, and write them when something happens",
      uprof_watch_command_run, NEEDS_DOMAIN },
    { "collect", UPROF_COMMAND_COLLECT, "[DOMAIN...]",
      "sample all enabled domains, or the named ones, into the store",
      uprof_collect_run, ANY_NUMBER },
    { "enable", UPROF_COMMAND_ENABLE, "DOMAIN...",
      "allow collect to sample a domain, in its metadata",
      uprof_enable_run, NEEDS_DOMAIN },
    { "disable", UPROF_COMMAND_DISABLE, "DOMAIN...",
      "stop collect from sampling a domain, in its metadata",
      uprof_disable_run, NEEDS_DOMAIN },
    { "configure", UPROF_COMMAND_CONFIGURE, "DOMAIN...",
      "show how collect samples a domain, or change it in its metadata",
      uprof_configure_run, NEEDS_DOMAIN },
    { "prune", UPROF_COMMAND_PRUNE, "",
      "close past days of the store: merge, summarize, delete old profiles",
      uprof_prune_run, 0, 0, "'prune' takes no domain: it works on the whole store" },
    { "history", UPROF_COMMAND_HISTORY, "[DOMAIN]",
      "list the stored days and rounds: how busy, what was hottest, what failed",
      uprof_history_run, 0, 1, "'history' takes one DOMAIN" },
    { "summary", UPROF_COMMAND_SUMMARY, "[DAY]",
      "print a day (default: yesterday): functions, changes, cost",
      uprof_summary_run, 0, 1, "'summary' takes one DAY" },
    { "push", UPROF_COMMAND_PUSH, "[DOMAIN...]",
      "send stored rounds to Pyroscope or Parca, as configured",
      uprof_push_run, ANY_NUMBER },
    { "help", UPROF_COMMAND_HELP, "[COMMAND]",
      "print this text, or the options of a command",
      uprof_options_help_run, 0, 1, "'help' takes one COMMAND" },
    { NULL },
};
/* clang-format on */

/*
 * Opens stdin, stdout and stderr if the caller has closed them, so that no other file gets their
 * numbers. Opens them for reading only, so that writing to stdout or stderr fails.
 */
static void
open_standard_files(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDONLY);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

/* Messages of GLib, for example about a call that failed in libvirt's connection: one line each. */
static void
log_line(const char *domain, GLogLevelFlags level, const char *message, gpointer data)
{
    g_autofree char *clean = uprof_text_quote(message);

    uprof_say("virt-uprof: %s: %s", domain ? domain : "GLib", clean);
}

int
main(int argc, char **argv)
{
    int code = UPROF_EXIT_USAGE;

    open_standard_files();
    uprof_child_raise_files();
    /* A write to a closed pipe or beyond the file-size limit must fail, not end the program. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    /* If the program inherits an ignored SIGCHLD, the kernel keeps no exit status of children. */
    signal(SIGCHLD, SIG_DFL);
    g_log_set_default_handler(log_line, NULL);
    if (argc > 1 && strcmp(argv[1], "--complete") == 0)
        return uprof_complete_run(commands, argc - 2, (const char *const *)argv + 2);
    g_autoptr(UprofOptions) options =
        uprof_options_parse(argc, (const char **)argv, commands, &code);

    return options ? options->command->run(options) : code;
}
