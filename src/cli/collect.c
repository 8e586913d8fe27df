/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * collect.c - the command collect: samples the enabled domains once, one after another
 */
#include "commands-priv.h"

#include "exit-priv.h"
#include "uprof/run-lines.h"
#include "uprof/clock.h"
#include "uprof/round.h"
#include "uprof/text.h"
#include "uprof/turn-json.h"

#include <stdio.h>
#include <unistd.h>

static void
print_json(const UprofCandidate *candidate, const char *result, const char *reason,
           const UprofTaskResult *facts)
{
    g_autoptr(GString) out = uprof_turn_json(candidate, result, reason, facts);

    puts(out->str);
    fflush(stdout);
}

/* On a terminal, shows which domain is being sampled. */
static void
show_turn(const UprofCandidate *candidate, unsigned i, unsigned n, void *data)
{
    const UprofOptions *options = data;
    g_autofree char *seconds = uprof_format_ns(candidate->duration_ns);
    g_autofree char *name = uprof_text_quote(candidate->name);
    g_autofree char *text =
        g_strdup_printf("  %s: sampling for %s (%u of %u)", name, seconds, i, n);

    if (isatty(STDERR_FILENO) && !options->quiet)
        uprof_say_progress(text);
}

/* Prints one line for each domain; the journal or cron keeps them. */
static void
print_domain(const UprofCandidate *candidate, UprofOutcome outcome, const char *reason,
             const UprofTaskResult *facts, void *data)
{
    const UprofOptions *options = data;
    static const char *const words[] = { "ok", "skipped", "failed" };
    g_autofree char *name = uprof_text_quote(candidate->name);
    g_autofree char *why = uprof_text_quote(reason);
    g_autofree char *held =
        uprof_format_percent(facts ? facts->held_ns : 0, facts ? facts->duration_ns : 0);

    if (options->json)
        print_json(candidate, words[outcome], why, facts);
    if (options->quiet && outcome != UPROF_OUTCOME_FAILED)
        return;
    if (outcome != UPROF_OUTCOME_DONE) {
        uprof_say("%s (%s): %s: %s", name, candidate->uuid, words[outcome], why);
        return;
    }
    const uint64_t tenths = facts->duration_ns / (100 * UPROF_NS_PER_MS);
    uprof_say("%s (%s): ok: %" G_GUINT64_FORMAT " samples in %" G_GUINT64_FORMAT
              ".%u s, each vCPU held %s %% of the time or less",
              name, candidate->uuid, facts->samples, tenths / 10, (unsigned)(tenths % 10), held);
}

static void
print_candidate(const UprofCandidate *candidate, void *data)
{
    const UprofOptions *options = data;
    g_autofree char *seconds = uprof_format_ns(candidate->duration_ns);
    g_autofree char *name = uprof_text_quote(candidate->name);

    if (options->json)
        print_json(candidate, "would", "", NULL);
    else
        printf("%s (%s): would be sampled for %s\n", name, candidate->uuid, seconds);
}

static int
choose_exit(const UprofRoundResult *result)
{
    if (result->worst != UPROF_ERROR_NONE)
        return uprof_exit_of_code(result->worst);
    if (result->n_failed + result->n_lost + result->n_missing == 0)
        return UPROF_EXIT_OK;
    if (result->n_done > 0)
        return UPROF_EXIT_SOME_FAILED;
    if (result->n_failed > 0)
        return UPROF_EXIT_USELESS;
    return result->n_lost > 0 ? UPROF_EXIT_DENIED : UPROF_EXIT_DOMAIN;
}

int
uprof_collect_run(UprofOptions *options)
{
    const UprofNotices notices = uprof_options_notices(options);
    const UprofRoundObserver observer = { show_turn, print_domain, print_candidate, options };
    g_autoptr(GError) error = NULL;
    UprofRoundResult result;

    options->config = uprof_config_load(options->config_path, &error);
    if (!options->config)
        return uprof_exit_say_error(error);
    uprof_settings_take_config(&options->settings, options->config);
    const UprofRoundSettings settings = {
        .session = uprof_options_session(options, &notices),
        .uris = options->uris->len > 0 ? options->uris : options->config->uris,
        .words = options->words,
        .store = options->store ? options->store : options->config->store,
        .dry_run = options->dry_run,
        .observer = &observer,
    };
    const UprofErrorCode code = uprof_round_run(&settings, &result);
    if (code != UPROF_ERROR_NONE)
        return uprof_exit_of_code(code);
    return fflush(stdout) == 0 ? choose_exit(&result) : UPROF_EXIT_FAILED;
}
