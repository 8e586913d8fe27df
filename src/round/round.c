/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/round.h"

#include "helper-priv.h"
#include "outcome-priv.h"
#include "task-priv.h"
#include "uprof/clock.h"
#include "uprof/counted-slices.h"
#include "uprof/marker.h"
#include "uprof/metrics-file.h"
#include "uprof/text.h"
#include "uprof/time-text.h"

#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum {
    RECOVER_S = 15,
    SCAN_SILENCE_S = 15, /* a libvirt call that takes longer is considered to hang */
    METRICS_DAYS = 30,   /* for which metrics have a domain that is not sampled any more */
    TASK_GRACE_S = 30,   /* time to open, to unwind and to write, besides the duration */
};

typedef struct {
    const UprofRoundSettings *settings; /* borrowed */
    const UprofNotices *notices;        /* borrowed */
    UprofRoundResult *result;           /* borrowed */
    UprofStore *store;                  /* (nullable): owned; %NULL only with @dry_run */
    UprofHostScanResult found;
    GHashTable *candidate_uuids; /* owned; set of char: UUIDs of candidates */
    GRand *random;               /* owned */
    UprofMetrics *metrics;       /* (nullable): owned */
    uint64_t start_ns;
    int lock;      /* owned; descriptor; -1: none */
    int signals;   /* owned; signalfd; -1: none */
    sigset_t mask; /* signal mask before the round */
    bool signaled; /* a signal ends the round */
} Round;

static int64_t
now_s(void)
{
    return (int64_t)(uprof_clock_utc_ns() / UPROF_NS_PER_S);
}

static uint64_t
longest_ns(const Round *round)
{
    return round->settings->session.config->longest_ns;
}

static uint64_t
gone_ns(const Round *round)
{
    return uprof_clock_now_ns() - round->start_ns;
}

/* @facts: (nullable) */
static void
count_turn(Round *round, const UprofCandidate *candidate, UprofOutcome outcome,
           const UprofTaskResult *facts)
{
    if (!round->metrics || outcome == UPROF_OUTCOME_SKIPPED)
        return;
    const bool is_done = outcome == UPROF_OUTCOME_DONE;
    uprof_metrics_add(round->metrics, UPROF_METRIC_ROUNDS, candidate->name, is_done);
    uprof_metrics_add(round->metrics, UPROF_METRIC_FAILURES, candidate->name, !is_done);
    uprof_metrics_add(round->metrics, UPROF_METRIC_SAMPLES, candidate->name,
                      is_done && facts ? facts->samples : 0);
    uprof_metrics_set(round->metrics, UPROF_METRIC_LAST_ROUND, candidate->name,
                      (uint64_t)MAX(now_s(), 0));
}

static void
end_domain(Round *round, const UprofCandidate *candidate, UprofOutcome outcome, const char *reason,
           const UprofTaskResult *facts)
{
    const UprofRoundObserver *observer = round->settings->observer;
    g_autoptr(GError) error = NULL;

    observer->ended(candidate, outcome, reason, facts, observer->data);
    count_turn(round, candidate, outcome, facts);
    round->result->n_done += outcome == UPROF_OUTCOME_DONE;
    round->result->n_skipped += outcome == UPROF_OUTCOME_SKIPPED;
    round->result->n_failed += outcome == UPROF_OUTCOME_FAILED;
    if (outcome == UPROF_OUTCOME_FAILED && round->store && !round->settings->dry_run &&
        !uprof_store_note_failure(round->store, candidate->name, candidate->uuid, now_s(), reason,
                                  &error))
        uprof_notice_error(round->notices, error);
}

/* ---- Recovery ---- */

/* Returns: (nullable): why the answer is not complete; a literal */
static const char *
describe_end(UprofHelperEnd end)
{
    switch (end) {
    case UPROF_HELPER_SLOW:
        return "libvirt does not answer; see: systemctl status libvirtd";
    case UPROF_HELPER_DIED:
        return "the process that asked libvirt has died";
    case UPROF_HELPER_DONE:
        return NULL;
    }
    return NULL;
}

/*
 * Resumes guests that dead runs left stopped. If a guest cannot be resumed, the round samples the
 * other domains. When the turn of that guest comes, the session tries again to resume it.
 */
static void
recover_guests(Round *round)
{
    const uint64_t time_ns = MIN(RECOVER_S * UPROF_NS_PER_S, longest_ns(round));
    g_autoptr(GError) error = NULL;
    UprofHelperEnd end;
    int code;
    const UprofHelperPlan plan = {
        .work = uprof_task_recover,
        .data = (void *)round->notices,
        .time_ns = time_ns,
        .signals = round->signals,
        .mask = round->mask,
        .signaled = &round->signaled,
    };
    g_autoptr(GPtrArray) texts = uprof_helper_run(&plan, &code, &end, &error);

    if (texts && end == UPROF_HELPER_DONE) {
        round->result->worst = uprof_error_merge(round->result->worst, (UprofErrorCode)code);
        return;
    }
    if (round->signaled)
        return;
    uprof_notice(round->notices, UPROF_NOTICE_WARNING,
                 "cannot check if a run that died has left a domain stopped: %s; try: "
                 "virt-uprof check --heal",
                 texts ? describe_end(end) : error->message);
    if (end == UPROF_HELPER_SLOW)
        round->result->worst = UPROF_ERROR_LEFT_HELD;
    else
        round->result->n_lost++;
}

/* ---- Which domains ---- */

static void
count_lost(Round *round, const char *uri, const char *why)
{
    g_autofree char *where = uprof_text_quote(uri ? uri : "libvirt's default connection");

    uprof_notice(round->notices, UPROF_NOTICE_WARNING, "%s: %s; its domains are left out", where,
                 why);
    round->result->n_lost++;
}

static void
scan_connection(Round *round, const char *uri)
{
    UprofHostScan scan = {
        .run = round->settings->session.run,
        .config = round->settings->session.config,
        .words = round->settings->words,
        .uri = uri,
    };
    g_autoptr(GError) error = NULL;
    UprofHelperEnd end;
    int code;
    const uint64_t silence_ns = MIN(SCAN_SILENCE_S * UPROF_NS_PER_S, longest_ns(round));
    const UprofHelperPlan plan = {
        .work = uprof_task_scan,
        .data = &scan,
        .time_ns = longest_ns(round),
        .silence_ns = silence_ns,
        .signals = round->signals,
        .mask = round->mask,
        .signaled = &round->signaled,
    };
    g_autoptr(GPtrArray) texts = uprof_helper_run(&plan, &code, &end, &error);
    const guint n_errors = round->found.errors->len;

    if (!texts) {
        count_lost(round, uri, error->message);
        return;
    }
    uprof_task_read_scan(texts, uri, &round->found);
    if (describe_end(end) && !round->signaled)
        count_lost(round, uri, describe_end(end));
    else if (round->found.errors->len > n_errors)
        count_lost(round, uri, g_ptr_array_index(round->found.errors, n_errors));
}

/* Keeps each domain once: two URIs can lead to one daemon, and the user can name a domain twice. */
static void
drop_duplicates(Round *round)
{
    GPtrArray *candidates = round->found.candidates;

    for (guint i = 0; i < candidates->len;) {
        const UprofCandidate *candidate = g_ptr_array_index(candidates, i);
        if (g_hash_table_add(round->candidate_uuids, g_strdup(candidate->uuid)))
            i++;
        else
            g_ptr_array_remove_index(candidates, i);
    }
}

static void
show_lines(const Round *round, UprofNoticeKind kind, const GPtrArray *lines)
{
    for (guint i = 0; i < lines->len; i++)
        uprof_notice(round->notices, kind, "%s", (const char *)g_ptr_array_index(lines, i));
}

static void
scan_connections(Round *round)
{
    const GPtrArray *uris = round->settings->uris;

    if (uris->len == 0)
        scan_connection(round, NULL);
    for (guint i = 0; i < uris->len && !round->signaled; i++)
        scan_connection(round, g_ptr_array_index(uris, i));
    drop_duplicates(round);
    show_lines(round, UPROF_NOTICE_HINT, round->found.warnings);
    show_lines(round, UPROF_NOTICE_WARNING, round->found.unreadable);
    if (round->found.candidates->len >= round->settings->words->len)
        return;
    show_lines(round, UPROF_NOTICE_WARNING, round->found.missing);
    round->result->n_missing = round->found.missing->len;
}

/* ---- Sampling ---- */

/* Shows the messages of the domain. If the outcome is not DONE, end_domain() shows the last one. */
static void
show_messages(const Round *round, const UprofCandidate *candidate, const UprofTaskResult *facts,
              UprofOutcome outcome)
{
    const UprofNoticeKind kind =
        outcome == UPROF_OUTCOME_DONE ? UPROF_NOTICE_HINT : UPROF_NOTICE_WARNING;
    g_autofree char *name = uprof_text_quote(candidate->name);

    for (guint i = 0; i < facts->lines->len; i++)
        uprof_notice(round->notices, kind, "%s: %s", name,
                     (const char *)g_ptr_array_index(facts->lines, i));
    if (outcome == UPROF_OUTCOME_DONE && facts->reason)
        uprof_notice(round->notices, kind, "%s: %s", name, facts->reason);
}

static void
sample_domain(Round *round, const UprofCandidate *candidate, const char *base)
{
    UprofRoundTask task = {
        .session = &round->settings->session,
        .candidate = candidate,
        .is_named = round->settings->words->len > 0,
        .store = uprof_store_data(round->store),
        .base = base,
    };
    const uint64_t grace_ns = MIN(TASK_GRACE_S * UPROF_NS_PER_S, longest_ns(round));
    g_autoptr(GError) error = NULL;
    g_auto(UprofTaskResult) facts = { 0 };
    UprofHelperEnd end;
    int code;
    const UprofHelperPlan plan = {
        .work = uprof_task_sample,
        .data = &task,
        .time_ns = candidate->duration_ns + grace_ns,
        .signals = round->signals,
        .mask = round->mask,
        .signaled = &round->signaled,
    };
    g_autoptr(GPtrArray) texts = uprof_helper_run(&plan, &code, &end, &error);

    if (!texts) {
        end_domain(round, candidate, UPROF_OUTCOME_FAILED, error->message, NULL);
        return;
    }
    uprof_task_read_sample(texts, &facts);
    const UprofOutcome outcome = uprof_outcome_of((UprofErrorCode)code, end, round->signaled);
    const char *reason = uprof_outcome_reason(outcome, end, round->signaled, facts.reason);
    show_messages(round, candidate, &facts, outcome);
    if (outcome == UPROF_OUTCOME_DONE && end == UPROF_HELPER_SLOW) {
        g_autofree char *name = uprof_text_quote(candidate->name);
        uprof_notice(round->notices, UPROF_NOTICE_HINT,
                     "%s: its run took too long and was ended; the samples until then are stored",
                     name);
    }
    if (code == UPROF_ERROR_LEFT_HELD)
        round->result->worst = UPROF_ERROR_LEFT_HELD;
    end_domain(round, candidate, outcome, reason, &facts);
}

/* Returns: (transfer full) (nullable): path of the new slice's files, without an ending */
static char *
choose_base(const Round *round, const UprofCandidate *candidate, GError **error)
{
    const int64_t start_s = now_s();
    g_autoptr(GHashTable) counted =
        uprof_counted_slices(round->store, candidate->name, candidate->uuid, start_s, error);

    return counted ? uprof_store_slice_base(round->store, candidate->name, candidate->uuid, start_s,
                                            counted, error)
                   : NULL;
}

/* Stores one slice of the domain. Returns: false if the disk is full, which ends the round */
static bool
store_slice(Round *round, const UprofCandidate *candidate)
{
    g_autoptr(GError) error = NULL;
    const bool has_room = uprof_store_has_room(
        round->store, round->settings->session.config->min_free_megabytes, &error);
    g_autofree char *base = has_room ? choose_base(round, candidate, &error) : NULL;

    if (base)
        sample_domain(round, candidate, base);
    else
        end_domain(round, candidate, UPROF_OUTCOME_FAILED, error->message, NULL);
    return has_room;
}

/* @i: index of the candidate. Returns: false ends the round */
static bool
take_turn(Round *round, guint i)
{
    const GPtrArray *candidates = round->found.candidates;
    const UprofCandidate *candidate = g_ptr_array_index(candidates, i);
    const UprofRoundObserver *observer = round->settings->observer;
    const UprofRoundResult *result = round->result;

    if (candidate->obstacle)
        end_domain(round, candidate,
                   candidate->is_fault ? UPROF_OUTCOME_FAILED : UPROF_OUTCOME_SKIPPED,
                   candidate->obstacle, NULL);
    else if (!uprof_order_is_selected(round->settings->session.config->chance_ppm, round->random))
        end_domain(round, candidate, UPROF_OUTCOME_SKIPPED, "not selected (probability)", NULL);
    else if (!uprof_order_has_time(gone_ns(round), candidate->duration_ns, longest_ns(round),
                                   result->n_done + result->n_failed == 0))
        round->result->n_late++;
    else if (round->settings->dry_run)
        observer->would_sample(candidate, observer->data);
    else {
        observer->began(candidate, i + 1, candidates->len, observer->data);
        return store_slice(round, candidate);
    }
    return true;
}

static void
sort_candidates(Round *round)
{
    GPtrArray *candidates = round->found.candidates;

    for (guint i = 0; i < candidates->len && round->store; i++) {
        UprofCandidate *candidate = g_ptr_array_index(candidates, i);
        candidate->last_s =
            uprof_store_last_attempt(round->store, candidate->name, candidate->uuid, now_s());
    }
    uprof_order_sort(candidates, now_s(), round->random);
}

static void
take_turns(Round *round)
{
    const GPtrArray *candidates = round->found.candidates;

    sort_candidates(round);
    for (guint i = 0; i < candidates->len && !round->signaled; i++)
        if (!take_turn(round, i))
            break;
    if (round->result->n_late > 0)
        uprof_notice(round->notices, UPROF_NOTICE_HINT,
                     "the round had no time for %u more domains; the next round begins with them",
                     round->result->n_late);
    if (candidates->len == 0 && round->result->n_lost == 0 && round->settings->words->len == 0)
        uprof_notice(round->notices, UPROF_NOTICE_HINT,
                     "no domain that runs is enabled; see: virt-uprof enable, or <collect "
                     "domains> in virt-uprof.xml(5)");
}

/* ---- The round ---- */

static UprofErrorCode
open_store(Round *round)
{
    const UprofRoundSettings *settings = round->settings;
    g_autoptr(GError) error = NULL;

    if (settings->dry_run && !uprof_store_exists(settings->store))
        return UPROF_ERROR_NONE;
    round->store = uprof_store_open(settings->store, !settings->dry_run, &error);
    if (!round->store)
        return uprof_notice_error(round->notices, error);
    if (!settings->dry_run)
        uprof_store_remove_leftovers(round->store, now_s(), false, NULL, NULL);
    return UPROF_ERROR_NONE;
}

static UprofErrorCode
take_lock(Round *round)
{
    g_autoptr(GError) error = NULL;
    bool taken;

    if (round->settings->dry_run)
        return UPROF_ERROR_NONE;
    round->lock = uprof_marker_lock_round(&taken, &error);
    if (round->lock >= 0)
        return UPROF_ERROR_NONE;
    if (!taken)
        return uprof_notice_error(round->notices, error);
    uprof_notice(round->notices, UPROF_NOTICE_HINT, "another round is running");
    return UPROF_ERROR_LOCKED;
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

static void
load_metrics(Round *round)
{
    const char *folder = round->settings->session.config->metrics_folder;

    if (folder[0] && !round->settings->dry_run)
        round->metrics = uprof_metrics_load(folder, "virt-uprof-collect");
}

/* A round does not fail because of its metrics. */
static void
save_metrics(Round *round)
{
    g_autoptr(GError) error = NULL;

    if (!round->metrics)
        return;
    uprof_metrics_forget(round->metrics, now_s() - METRICS_DAYS * (int64_t)UPROF_DAY_S);
    if (!uprof_metrics_save(round->metrics, &error))
        uprof_notice_error(round->notices, error);
    g_clear_pointer(&round->metrics, uprof_metrics_free);
}

static UprofErrorCode
run_round(Round *round)
{
    UprofErrorCode code = take_lock(round);

    if (code == UPROF_ERROR_NONE)
        code = open_store(round);
    if (code != UPROF_ERROR_NONE)
        return code;
    open_signals(round);
    round->start_ns = uprof_clock_now_ns();
    if (!round->settings->dry_run)
        recover_guests(round);
    if (!round->signaled)
        scan_connections(round);
    load_metrics(round);
    take_turns(round);
    save_metrics(round);
    return UPROF_ERROR_NONE;
}

UprofErrorCode
uprof_round_run(const UprofRoundSettings *settings, UprofRoundResult *result)
{
    Round round = {
        .settings = settings,
        .notices = settings->session.notices,
        .result = result,
        .candidate_uuids = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
        .random = g_rand_new(),
        .lock = -1,
        .signals = -1,
    };

    *result = (UprofRoundResult){ 0 };
    uprof_host_scan_result_init(&round.found);
    const UprofErrorCode code = run_round(&round);
    uprof_host_scan_result_clear(&round.found);
    g_hash_table_unref(round.candidate_uuids);
    g_rand_free(round.random);
    uprof_store_close(round.store);
    if (round.signals >= 0)
        close(round.signals);
    if (round.lock >= 0)
        close(round.lock);
    return code;
}
