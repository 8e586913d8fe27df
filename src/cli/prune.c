/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * prune.c - the command prune: closes days, deletes old profiles, writes the summaries of days
 */
#include "commands-priv.h"

#include "exit-priv.h"
#include "uprof/clock.h"
#include "uprof/config.h"
#include "uprof/prune-store.h"
#include "uprof/text.h"
#include "uprof/watch-domains.h"

#include <stdio.h>

/* Prints a change: on stdout in a dry run, because the changes are its result; else on stderr. */
static void
show_change(const char *text, void *data)
{
    const UprofOptions *options = data;

    if (options->dry_run)
        printf("%s\n", text);
    else if (options->verbose)
        uprof_say("%s", text);
}

static int
prune_store(const UprofOptions *options, const UprofConfig *config, UprofStore *store)
{
    const UprofNotices notices = uprof_options_notices(options);
    const UprofPruneSettings settings = {
        .slice_days = config->slice_days,
        .merged_days = config->merged_days,
        .max_megabytes = config->max_megabytes,
        .dry_run = options->dry_run,
        .notices = &notices,
        .show_change = show_change,
        .data = (void *)options,
    };
    UprofPruneResult result;

    uprof_prune_store(store, &settings, uprof_clock_utc_s(), &result);
    if (!options->quiet) {
        g_autofree char *shown = uprof_text_quote(uprof_store_path(store));
        g_autofree char *text = uprof_prune_describe(&result, options->dry_run);
        uprof_say("%s: %s", shown, text);
    }
    const bool is_printed = !options->dry_run || fflush(stdout) == 0;
    return uprof_exit_worse(uprof_exit_of_code(result.code),
                            is_printed ? UPROF_EXIT_OK : UPROF_EXIT_FAILED);
}

/* @code: (out): exit code. Returns: false if nothing can be pruned now */
static bool
lock_store(const UprofOptions *options, UprofStore *store, const char *shown, int *code)
{
    g_autoptr(GError) error = NULL;
    bool is_taken;

    if (uprof_store_lock(store, &is_taken, &error))
        return true;
    if (is_taken && !options->quiet)
        uprof_say("virt-uprof: another 'virt-uprof prune' is running in '%s'", shown);
    *code = is_taken ? UPROF_EXIT_LOCKED : uprof_exit_say_error(error);
    return false;
}

/* Returns: an exit code; OK if there is no such store */
static int
prune_path(const UprofOptions *options, const UprofConfig *config, const char *path)
{
    g_autofree char *shown = uprof_text_quote(path);
    g_autoptr(GError) error = NULL;
    int code;

    if (!uprof_store_exists(path))
        return UPROF_EXIT_OK;
    g_autoptr(UprofStore) store = uprof_store_open(path, !options->dry_run, &error);
    if (!store)
        return uprof_exit_say_error(error);
    return lock_store(options, store, shown, &code) ? prune_store(options, config, store) : code;
}

int
uprof_prune_run(UprofOptions *options)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofConfig) config = uprof_config_load(options->config_path, &error);

    if (!config)
        return uprof_exit_say_error(error);
    const char *path = options->store ? options->store : config->store;
    g_autofree char *watched = g_build_filename(path, UPROF_WATCH_STORE, NULL);
    g_autofree char *shown = uprof_text_quote(path);
    if (!uprof_store_exists(path) && !options->quiet)
        uprof_say("virt-uprof: nothing was collected yet: there is no '%s'", shown);
    const int code = prune_path(options, config, path);
    return uprof_exit_worse(code, prune_path(options, config, watched));
}
