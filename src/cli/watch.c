/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * watch.c - the command watch: keeps the last minutes in memory, and writes them when something
 * happens
 */
#include "commands-priv.h"

#include "exit-priv.h"
#include "uprof/number-text.h"
#include "uprof/watch-socket.h"
#include "uprof/watch-domains.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

enum {
    RATE_MHZ = 49 * 1000,
    BUDGET_PPM = 5 * 1000, /* 0.5 % */
};

/* Without --when, the events that end or disturb a guest are triggers. */
static const char *const default_rules[] = { "crash", "reboot", "watchdog", "io-error" };

static void
exit_at_once(void)
{
    _exit(UPROF_EXIT_FAILED);
}

/* watch --now */
static int
ask_watch(const UprofOptions *options)
{
    int code = UPROF_EXIT_OK;

    for (guint i = 0; i < options->words->len; i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *answer = uprof_watch_ask(g_ptr_array_index(options->words, i), &error);
        if (answer)
            printf("%s\n", answer);
        else
            code = uprof_exit_worse(code, uprof_exit_say_error(error));
    }
    return fflush(stdout) == 0 ? code : UPROF_EXIT_FAILED;
}

static void
apply_defaults(UprofOptions *options)
{
    UprofSettings *settings = &options->settings;

    if (!settings->given.rate)
        settings->rate_mhz = RATE_MHZ;
    if (!settings->given.budget)
        settings->budget_ppm = BUDGET_PPM;
    for (gsize i = 0; options->rules->len == 0 && i < G_N_ELEMENTS(default_rules); i++)
        g_ptr_array_add(options->rules, uprof_watch_rule_new(default_rules[i], NULL));
}

/* Refuses a rule that needs more time than is kept: it could never hold. */
static bool
check_rules(const UprofOptions *options)
{
    for (guint i = 0; i < options->rules->len; i++) {
        const UprofWatchRule *rule = g_ptr_array_index(options->rules, i);
        const uint64_t needs_ns = uprof_watch_rule_needs_ns(rule);
        if (needs_ns <= options->keep_ns)
            continue;
        g_autofree char *time = uprof_format_ns(needs_ns);
        uprof_say("virt-uprof: --when '%s' needs %s: use a longer --keep", rule->text, time);
        return false;
    }
    return true;
}

/* Returns: (transfer full): the files of each trigger */
static GPtrArray *
list_outputs(const UprofOptions *options)
{
    GPtrArray *requests = uprof_output_request_list();

    for (guint i = 0; i < options->outputs->len; i++) {
        const UprofWanted *wanted = g_ptr_array_index(options->outputs, i);
        uprof_output_request_add(requests, wanted->path, wanted->format, true);
    }
    return requests;
}

int
uprof_watch_command_run(UprofOptions *options)
{
    const UprofNotices notices = uprof_options_notices(options);
    g_autoptr(GPtrArray) outputs = list_outputs(options);
    UprofErrorTally tally = { 0 };
    g_autoptr(GError) error = NULL;

    if (options->now)
        return ask_watch(options);
    signal(SIGUSR1, SIG_IGN); /* the run reads it from a descriptor */
    if (!check_rules(options))
        return UPROF_EXIT_USAGE;
    g_autoptr(UprofConfig) config = uprof_config_load(options->config_path, &error);
    if (!config)
        return uprof_exit_say_error(error);
    apply_defaults(options);
    const UprofWatchSettings settings = {
        .record = uprof_options_record(options, &notices),
        .rules = options->rules,
        .keep_ns = options->keep_ns,
        .after_ns = options->after_ns,
        .rest_ns = options->rest_ns,
        .bytes_max = (uint64_t)options->keep_mib << 20,
        .outputs = outputs,
        .store = options->store ? options->store : config->store,
        .min_free_megabytes = config->min_free_megabytes,
        .abort_run = exit_at_once,
        .leave = uprof_exit_leave,
    };
    const UprofErrorCode code = uprof_watch_domains(&settings, &tally);
    return uprof_exit_of_run(&tally, code);
}
