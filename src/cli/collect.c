/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * collect: one round over the domains that are enabled, one after another, into
 * the store. This process has no connection and no thread: what talks to libvirt
 * are helpers with a time limit (task.c), so that one domain's trouble, or a
 * daemon that hangs, is said and is over.
 */
#include "commands-priv.h"

#include "exit-priv.h"
#include "helper-priv.h"
#include "stored-priv.h"
#include "summary-priv.h"
#include "task-priv.h"
#include "verdict-priv.h"
#include "uprof/clock.h"
#include "uprof/marker.h"
#include "uprof/text.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum {
    HEAL_S = 15,
    LOOK_SILENCE_S = 15, /* of libvirt: a call that takes longer hangs */
    TASK_GRACE_S = 30,   /* more than its duration: to open, to unwind, to write */
};

typedef struct {
    UprofOptions *options;
    UprofStore *store; /* (nullable): there is none yet */
    UprofLookResult found;
    GHashTable *known; /* UUIDs */
    GRand *random;
    uint64_t start_ns;
    int lock;
    int signals;
    sigset_t mask;
    bool signaled;
    unsigned n_done, n_failed, n_skipped, n_late;
    unsigned n_lost;    /* connections */
    unsigned n_missing; /* domains that were named */
    int worst;          /* what outranks the rest */
} Round;

static int64_t
now_s(void)
{
    return (int64_t)(uprof_clock_utc_ns() / UPROF_NS_PER_S);
}

static uint64_t
longest_ns(const Round *round)
{
    return round->options->config->longest_ns;
}

static uint64_t
gone_ns(const Round *round)
{
    return uprof_clock_now_ns() - round->start_ns;
}

/* ---- What is said ---- */

static void
append_json(GString *out, const char *member, const char *text)
{
    g_autofree char *clean = uprof_text_quote(text);

    g_string_append_printf(out, "\"%s\": \"", member);
    uprof_text_append_json(out, clean);
    g_string_append_c(out, '"');
}

static void
print_json(const UprofCandidate *candidate, const char *result, const char *reason,
           const UprofTaskResult *facts)
{
    g_autoptr(GString) out = g_string_new("{");

    append_json(out, "name", candidate->name);
    g_string_append(out, ", ");
    append_json(out, "uuid", candidate->uuid);
    g_string_append(out, ", ");
    append_json(out, "result", result);
    g_string_append(out, ", ");
    append_json(out, "reason", reason);
    if (facts)
        g_string_append_printf(
            out,
            ", \"samples\": %" G_GUINT64_FORMAT ", \"duration_ms\": %" G_GUINT64_FORMAT
            ", \"held_us\": %" G_GUINT64_FORMAT,
            facts->samples, facts->duration_ns / UPROF_NS_PER_MS, facts->held_ns / UPROF_NS_PER_US);
    puts(g_string_append_c(out, '}')->str);
    fflush(stdout);
}

/* One line per domain, which the journal or cron keeps. */
static void
say_domain(const Round *round, const UprofCandidate *candidate, UprofVerdict result,
           const char *reason, const UprofTaskResult *facts)
{
    static const char *const words[] = { "ok", "skipped", "failed" };
    g_autofree char *name = uprof_text_quote(candidate->name);
    g_autofree char *why = uprof_text_quote(reason);
    g_autofree char *held = uprof_format_ns(facts ? facts->held_ns : 0);

    if (round->options->json)
        print_json(candidate, words[result], why, facts);
    if (round->options->quiet && result != UPROF_VERDICT_FAILED)
        return;
    if (result != UPROF_VERDICT_DONE) {
        uprof_say("%s (%s): %s: %s", name, candidate->uuid, words[result], why);
        return;
    }
    const uint64_t tenths = facts->duration_ns / (100 * UPROF_NS_PER_MS);
    uprof_say("%s (%s): ok: %" G_GUINT64_FORMAT " samples in %" G_GUINT64_FORMAT
              ".%u s, each vCPU held %s or less",
              name, candidate->uuid, facts->samples, tenths / 10, (unsigned)(tenths % 10), held);
}

static void
count(Round *round, const UprofCandidate *candidate, UprofVerdict result, const char *reason,
      const UprofTaskResult *facts)
{
    g_autoptr(GError) error = NULL;

    say_domain(round, candidate, result, reason, facts);
    round->n_done += result == UPROF_VERDICT_DONE;
    round->n_skipped += result == UPROF_VERDICT_SKIPPED;
    round->n_failed += result == UPROF_VERDICT_FAILED;
    if (result == UPROF_VERDICT_FAILED && round->store && !round->options->dry_run &&
        !uprof_store_note_failure(round->store, candidate->name, candidate->uuid, now_s(), reason,
                                  &error))
        uprof_say_error(error);
}

/* ---- Healing ---- */

/* Returns: (nullable): why there is no answer; literal */
static const char *
describe_end(UprofHelperEnd end)
{
    switch (end) {
    case UPROF_HELPER_SLOW:
        return "libvirt does not answer; is its daemon well?";
    case UPROF_HELPER_DIED:
        return "the process that asked libvirt has died";
    case UPROF_HELPER_DONE:
        return NULL;
    }
    return NULL;
}

/*
 * Once for the round. What cannot be let go stops no other domain from being
 * sampled; the domain itself is healed, or refused, when it is its turn.
 */
static void
heal(Round *round)
{
    const uint64_t time_ns = MIN(HEAL_S * UPROF_NS_PER_S, longest_ns(round));
    g_autoptr(GError) error = NULL;
    UprofHelperEnd end;
    int code;
    const UprofHelperPlan plan = {
        .work = uprof_task_heal,
        .data = round->options,
        .time_ns = time_ns,
        .signals = round->signals,
        .mask = round->mask,
        .signaled = &round->signaled,
    };
    g_autoptr(GPtrArray) texts = uprof_helper_run(&plan, &code, &end, &error);

    if (texts && end == UPROF_HELPER_DONE) {
        round->worst = uprof_exit_worse(round->worst, code);
        return;
    }
    if (round->signaled)
        return;
    uprof_say("virt-uprof: whether a dead run has left a domain stopped could not be looked at: "
              "%s; try: virt-uprof check --heal",
              texts ? describe_end(end) : error->message);
    if (end == UPROF_HELPER_SLOW)
        round->worst = UPROF_EXIT_LEFT_HELD;
    else
        round->n_lost++;
}

/* ---- Looking ---- */

static void
lose(Round *round, const char *uri, const char *why)
{
    g_autofree char *where = uprof_text_quote(uri ? uri : "libvirt's default connection");

    uprof_say("virt-uprof: %s: %s; its domains are left out", where, why);
    round->n_lost++;
}

static void
look(Round *round, const char *uri)
{
    UprofLook data = { .options = round->options, .uri = uri };
    g_autoptr(GError) error = NULL;
    UprofHelperEnd end;
    int code;
    const uint64_t silence_ns = MIN(LOOK_SILENCE_S * UPROF_NS_PER_S, longest_ns(round));
    const UprofHelperPlan plan = {
        .work = uprof_task_look,
        .data = &data,
        .time_ns = longest_ns(round),
        .silence_ns = silence_ns,
        .signals = round->signals,
        .mask = round->mask,
        .signaled = &round->signaled,
    };
    g_autoptr(GPtrArray) texts = uprof_helper_run(&plan, &code, &end, &error);
    const guint n_errors = round->found.errors->len;

    if (!texts) {
        lose(round, uri, error->message);
        return;
    }
    uprof_task_read_look(texts, uri, &round->found);
    if (describe_end(end) && !round->signaled)
        lose(round, uri, describe_end(end));
    else if (round->found.errors->len > n_errors)
        lose(round, uri, g_ptr_array_index(round->found.errors, n_errors));
}

/* Two connections may lead to one daemon, and a domain may be named twice. */
static void
drop_doubles(Round *round)
{
    GPtrArray *candidates = round->found.candidates;

    for (guint i = 0; i < candidates->len;) {
        const UprofCandidate *candidate = g_ptr_array_index(candidates, i);
        if (g_hash_table_add(round->known, g_strdup(candidate->uuid)))
            i++;
        else
            g_ptr_array_remove_index(candidates, i);
    }
}

static void
look_everywhere(Round *round)
{
    const UprofOptions *options = round->options;
    const GPtrArray *uris = options->uris->len > 0 ? options->uris : options->config->uris;

    if (uris->len == 0)
        look(round, NULL);
    for (guint i = 0; i < uris->len && !round->signaled; i++)
        look(round, g_ptr_array_index(uris, i));
    drop_doubles(round);
    for (guint i = 0; i < round->found.warnings->len && !options->quiet; i++)
        uprof_say("virt-uprof: %s", (char *)g_ptr_array_index(round->found.warnings, i));
    for (guint i = 0; i < round->found.troubles->len; i++)
        uprof_say("virt-uprof: %s", (char *)g_ptr_array_index(round->found.troubles, i));
    if (round->found.candidates->len >= options->words->len)
        return;
    for (guint i = 0; i < round->found.missing->len; i++, round->n_missing++)
        uprof_say("virt-uprof: %s", (char *)g_ptr_array_index(round->found.missing, i));
}

/* ---- Sampling ---- */

/* What was said on the way; the last of it is the reason, if there is to be one. */
static void
say_lines(const Round *round, const UprofCandidate *candidate, const UprofTaskResult *facts,
          UprofVerdict result)
{
    g_autofree char *name = uprof_text_quote(candidate->name);

    if (round->options->quiet && result == UPROF_VERDICT_DONE)
        return;
    for (guint i = 0; i < facts->lines->len; i++)
        uprof_say("virt-uprof: %s: %s", name, (char *)g_ptr_array_index(facts->lines, i));
    if (result == UPROF_VERDICT_DONE && facts->reason)
        uprof_say("virt-uprof: %s: %s", name, facts->reason);
}

static void
sample(Round *round, const UprofCandidate *candidate, const char *base)
{
    UprofTask data = { .options = round->options, .candidate = candidate, .base = base };
    const uint64_t grace_ns = MIN(TASK_GRACE_S * UPROF_NS_PER_S, longest_ns(round));
    g_autoptr(GError) error = NULL;
    g_auto(UprofTaskResult) facts = { 0 };
    UprofHelperEnd end;
    int code;
    const UprofHelperPlan plan = {
        .work = uprof_task_sample,
        .data = &data,
        .time_ns = candidate->duration_ns + grace_ns,
        .signals = round->signals,
        .mask = round->mask,
        .signaled = &round->signaled,
    };
    g_autoptr(GPtrArray) texts = uprof_helper_run(&plan, &code, &end, &error);

    if (!texts) {
        count(round, candidate, UPROF_VERDICT_FAILED, error->message, NULL);
        return;
    }
    uprof_task_read_sample(texts, &facts);
    const UprofVerdict result = uprof_verdict(code, end, round->signaled);
    const char *reason = uprof_verdict_reason(result, end, round->signaled, facts.reason);
    say_lines(round, candidate, &facts, result);
    if (result == UPROF_VERDICT_DONE && end == UPROF_HELPER_SLOW && !round->options->quiet) {
        g_autofree char *name = uprof_text_quote(candidate->name);
        uprof_say("virt-uprof: %s: it took too long, and was ended; what it had is stored", name);
    }
    if (code == UPROF_EXIT_LEFT_HELD)
        round->worst = code;
    count(round, candidate, result, reason, &facts);
}

/* Returns: (transfer full) (nullable): of the files that are to be written */
static char *
choose_base(const Round *round, const UprofCandidate *candidate, GError **error)
{
    const int64_t start_s = now_s();
    g_autoptr(GHashTable) counted =
        uprof_stored_counted(round->store, candidate->name, candidate->uuid, start_s);

    return uprof_store_slice_base(round->store, candidate->name, candidate->uuid, start_s, counted,
                                  error);
}

/* Returns: false if the round is over: the next would fare the same */
static bool
take(Round *round, const UprofCandidate *candidate)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *base = NULL;

    if (candidate->obstacle) {
        count(round, candidate, candidate->is_fault ? UPROF_VERDICT_FAILED : UPROF_VERDICT_SKIPPED,
              candidate->obstacle, NULL);
        return true;
    }
    if (!uprof_order_draws(round->options->config->chance_ppm, round->random)) {
        count(round, candidate, UPROF_VERDICT_SKIPPED, "by chance", NULL);
        return true;
    }
    if (!uprof_order_has_time(gone_ns(round), candidate->duration_ns, longest_ns(round),
                              round->n_done + round->n_failed == 0)) {
        round->n_late++;
        return true;
    }
    if (round->options->dry_run) {
        g_autofree char *seconds = uprof_format_ns(candidate->duration_ns);
        g_autofree char *name = uprof_text_quote(candidate->name);
        if (round->options->json)
            print_json(candidate, "would", "", NULL);
        else
            printf("%s (%s): would be sampled for %s\n", name, candidate->uuid, seconds);
        return true;
    }
    if (!uprof_store_has_room(round->store, round->options->config->min_free_megabytes, &error)) {
        count(round, candidate, UPROF_VERDICT_FAILED, error->message, NULL);
        return false;
    }
    base = choose_base(round, candidate, &error);
    if (base)
        sample(round, candidate, base);
    else
        count(round, candidate, UPROF_VERDICT_FAILED, error->message, NULL);
    return true;
}

static void
take_all(Round *round)
{
    GPtrArray *candidates = round->found.candidates;

    for (guint i = 0; i < candidates->len && round->store; i++) {
        UprofCandidate *candidate = g_ptr_array_index(candidates, i);
        candidate->last_s =
            uprof_store_last_turn(round->store, candidate->name, candidate->uuid, now_s());
    }
    uprof_order_sort(candidates, now_s(), round->random);
    for (guint i = 0; i < candidates->len && !round->signaled; i++)
        if (!take(round, g_ptr_array_index(candidates, i)))
            break;
    if (round->n_late > 0 && !round->options->quiet)
        uprof_say("virt-uprof: no time for %u more; they come first in the next round",
                  round->n_late);
    if (candidates->len == 0 && round->n_lost == 0 && round->options->words->len == 0 &&
        !round->options->quiet)
        uprof_say("virt-uprof: no domain that runs is enabled; see: virt-uprof enable, or "
                  "<collect domains> in virt-uprof.xml(5)");
}

static int
exit_code(const Round *round)
{
    if (round->worst != UPROF_EXIT_OK)
        return round->worst;
    if (round->n_failed + round->n_lost + round->n_missing == 0)
        return UPROF_EXIT_OK;
    if (round->n_done > 0)
        return UPROF_EXIT_SOME_FAILED;
    if (round->n_failed > 0)
        return UPROF_EXIT_USELESS;
    return round->n_lost > 0 ? UPROF_EXIT_DENIED : UPROF_EXIT_DOMAIN;
}

/* ---- Around it ---- */

/* What the command line does not say is as configured; metadata stands between the two. */
static void
take_config(UprofOptions *options)
{
    const UprofConfig *config = options->config;
    UprofSettings *settings = &options->settings;

    if (!settings->given.rate)
        settings->rate_mhz = config->rate_mhz;
    if (!settings->given.duration)
        settings->duration_ns = config->duration_ns;
    if (!settings->given.budget)
        settings->budget_ppm = config->budget_ppm;
}

/* Returns: false with @code */
static bool
open_store(Round *round, int *code)
{
    const UprofOptions *options = round->options;
    const char *folder = options->store ? options->store : options->config->store;
    g_autoptr(GError) error = NULL;

    if (options->dry_run && !uprof_store_exists(folder))
        return true;
    round->store = uprof_store_open(folder, !options->dry_run, &error);
    if (!round->store)
        *code = uprof_say_error(error);
    else if (!options->dry_run)
        uprof_store_sweep(round->store, now_s(), false, NULL, NULL);
    return round->store;
}

/* Returns: false with @code: another round runs, or there can be no lock */
static bool
take_lock(Round *round, int *code)
{
    g_autoptr(GError) error = NULL;
    bool taken;

    if (round->options->dry_run)
        return true;
    round->lock = uprof_marker_lock_round(&taken, &error);
    if (round->lock >= 0)
        return true;
    if (!taken) {
        *code = uprof_say_error(error);
        return false;
    }
    if (!round->options->quiet)
        uprof_say("virt-uprof: another round is running");
    *code = UPROF_EXIT_LOCKED;
    return false;
}

static void
open_signals(Round *round)
{
    static const int handled[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
    sigset_t wanted;

    sigemptyset(&wanted);
    for (size_t i = 0; i < G_N_ELEMENTS(handled); i++)
        sigaddset(&wanted, handled[i]);
    sigprocmask(SIG_BLOCK, &wanted, &round->mask);
    round->signals = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int
run(Round *round)
{
    int code = UPROF_EXIT_OK;

    if (!take_lock(round, &code) || !open_store(round, &code))
        return code;
    open_signals(round);
    round->start_ns = uprof_clock_now_ns();
    if (!round->options->dry_run)
        heal(round);
    if (!round->signaled)
        look_everywhere(round);
    take_all(round);
    return fflush(stdout) == 0 ? exit_code(round) : UPROF_EXIT_FAILED;
}

int
uprof_collect_run(UprofOptions *options)
{
    g_autoptr(GError) error = NULL;
    Round round = { .options = options, .lock = -1, .signals = -1 };

    options->config = uprof_config_load(options->config_path, &error);
    if (!options->config)
        return uprof_say_error(error);
    take_config(options);
    round.found = (UprofLookResult){
        .candidates = g_ptr_array_new_with_free_func((GDestroyNotify)uprof_candidate_free),
        .warnings = g_ptr_array_new_with_free_func(g_free),
        .troubles = g_ptr_array_new_with_free_func(g_free),
        .missing = g_ptr_array_new_with_free_func(g_free),
        .errors = g_ptr_array_new_with_free_func(g_free),
    };
    round.known = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    round.random = g_rand_new();
    const int code = run(&round);
    g_ptr_array_unref(round.found.candidates);
    g_ptr_array_unref(round.found.warnings);
    g_ptr_array_unref(round.found.troubles);
    g_ptr_array_unref(round.found.missing);
    g_ptr_array_unref(round.found.errors);
    g_hash_table_unref(round.known);
    g_rand_free(round.random);
    uprof_store_close(round.store);
    if (round.signals >= 0)
        close(round.signals);
    if (round.lock >= 0)
        close(round.lock);
    return code;
}
