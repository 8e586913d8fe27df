/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * push.c - the command push: sends stored rounds to the engines of the configuration
 */
#include "commands-priv.h"

#include "exit-priv.h"
#include "push-results-priv.h"
#include "terminal-priv.h"
#include "uprof/push-rounds.h"

#include <stdio.h>

static void
print_round(const char *text, void *data)
{
    printf("%s\n", text);
}

UprofErrorCode
uprof_push_say_results(const GArray *results, bool is_quiet)
{
    for (guint i = 0; i < results->len; i++) {
        const UprofPushResult *result = &g_array_index(results, UprofPushResult, i);
        g_autofree char *text = uprof_push_describe(result);
        if (result->error)
            uprof_say("virt-uprof: %s", text);
        else if (!is_quiet)
            uprof_say("%s", text);
    }
    return uprof_push_code(results, false);
}

static UprofErrorCode
show_results(const UprofOptions *options, const GArray *results)
{
    const UprofErrorCode code =
        uprof_push_say_results(results, options->quiet || options->dry_run || options->json);
    const UprofErrorCode printed =
        options->json ? uprof_terminal_print(uprof_push_json(results)) : UPROF_ERROR_NONE;

    return uprof_error_merge(printed, options->dry_run ? uprof_push_code(results, true) : code);
}

static int
push_rounds(const UprofOptions *options, UprofStore *store, const GPtrArray *destinations,
            const UprofConfig *config)
{
    const UprofNotices notices = uprof_options_notices(options);
    UprofErrorCode code = UPROF_ERROR_NONE;
    const UprofPushSettings settings = {
        .store = store,
        .destinations = destinations,
        .words = options->words,
        .since_s = options->since_s,
        .spread_ns = options->spread_ns,
        .are_all = options->targets->len == 0,
        .metrics_folder = config->metrics_folder,
        .dry_run = options->dry_run,
        .notices = &notices,
        .show_round = options->json ? NULL : print_round,
    };
    g_autoptr(GArray) results = uprof_push_rounds(&settings, &code);
    return uprof_exit_of_code(uprof_error_merge(show_results(options, results), code));
}

int
uprof_push_run(UprofOptions *options)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofConfig) config = uprof_config_load(options->config_path, &error);
    g_autoptr(GPtrArray) destinations =
        config ? uprof_push_choose(config->destinations, options->targets, &error) : NULL;

    if (!destinations)
        return uprof_exit_say_error(error);
    const char *path = options->store ? options->store : config->store;
    if (destinations->len == 0 || !uprof_store_exists(path)) {
        if (!options->quiet)
            uprof_say("virt-uprof: %s",
                      destinations->len > 0
                          ? "nothing was collected yet"
                          : "no destination is configured; see: man virt-uprof.xml");
        return UPROF_EXIT_OK;
    }
    g_autoptr(UprofStore) store = uprof_store_open(path, !options->dry_run, &error);
    return store ? push_rounds(options, store, destinations, config) : uprof_exit_say_error(error);
}
