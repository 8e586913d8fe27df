/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Once a second, each worker packs its samples into a slice, which the program keeps without
 * looking into it (watch-slice-priv.h). A trigger hands the slices of its time to a process that
 * writes the files (watch-writer-priv.h). So neither a worker that dies nor a domain that ends
 * takes them along.
 */
#include "uprof/watch-domains.h"

#include "busy-share-priv.h"
#include "uprof/clock.h"
#include "uprof/number-text.h"
#include "uprof/store.h"
#include "uprof/text.h"

#include "watch-log-priv.h"
#include "watch-slice-priv.h"
#include "watch-socket-priv.h"
#include "watch-trigger-priv.h"
#include "watch-word-priv.h"
#include "watch-writer-priv.h"

#include <signal.h>
#include <string.h>

enum {
    STEP_MS = 1000,
    STEP_S_MAX = 10, /* a worker that takes longer to pack its samples counts as dead */
    /* more than the time that may be written, because a trigger is seen late */
    SPARE_S = 10,
    /* A domain is opened again after this time, because a worker never forgets a name. */
    RENEW_S = 6 * 3600,
    FACTS_BYTES_MAX = 4 * 1024 * 1024,
    COUNT_MAX = 1 << 30, /* samples of a step: the numbers of a worker may be anything */
};

/* A domain, from its first sample until nothing of it is kept. */
typedef struct {
    char *uuid, *name, *shown;
    UprofWatchLog *log;
    GBytes *facts; /* (nullable): as the worker sent them last */
    UprofWatchTriggers triggers;

    /* the current sampling of the domain */
    const UprofSession *session; /* (nullable): borrowed */
    UprofBusyShare share;
    UprofSamplerCounts before; /* until the last step */
    uint64_t step_ns;          /* when the last step ended */
    uint64_t step_utc_ns;
} Watched;

typedef struct {
    const UprofWatchSettings *settings;
    const UprofNotices *notices;
    UprofErrorTally *tally;
    GPtrArray *watched; /* of Watched */
    UprofStore *store;  /* (nullable) */
    UprofWatchWriter *writer;
    UprofWatchSocket *socket;
    bool had_domains; /* a domain was sampled */
    uint64_t step_ns; /* when the last steps were taken */
    uint64_t cpu_ns;  /* processor time of the program until then */
} Watch;

static void
free_watched(gpointer data)
{
    Watched *watched = data;

    g_free(watched->uuid);
    g_free(watched->name);
    g_free(watched->shown);
    uprof_watch_log_free(watched->log);
    g_clear_pointer(&watched->facts, g_bytes_unref);
    uprof_watch_triggers_clear(&watched->triggers);
    g_free(watched);
}

static Watched *
find_watched(const Watch *watch, const char *uuid)
{
    for (guint i = 0; i < watch->watched->len; i++) {
        Watched *watched = g_ptr_array_index(watch->watched, i);
        if (strcmp(watched->uuid, uuid) == 0)
            return watched;
    }
    return NULL;
}

/* ---- Triggers ---- */

/*
 * Takes the slices of the time that is kept before @at_ns, and those after it. The facts are those
 * of the guest at @at_ns: it may have been booted again since then.
 */
static UprofWatchProfile *
make_profile(const Watch *watch, const Watched *watched, const char *trigger, uint64_t at_ns)
{
    const uint64_t keep_ns = watch->settings->keep_ns;
    const uint64_t from_ns = at_ns > keep_ns ? at_ns - keep_ns : 0;
    UprofWatchProfile *profile = uprof_watch_profile_new();

    profile->name = g_strdup(watched->name);
    profile->uuid = g_strdup(watched->uuid);
    profile->shown = g_strdup(watched->shown);
    profile->trigger = g_strdup(trigger);
    for (const GList *at = uprof_watch_log_steps(watched->log); at; at = at->next) {
        const UprofWatchStep *step = at->data;
        if (step->end_ns <= from_ns)
            continue;
        if (profile->slices->len == 0)
            profile->started_ns = step->start_utc_ns;
        if (!profile->facts || step->start_ns <= at_ns) {
            g_clear_pointer(&profile->facts, g_bytes_unref);
            profile->facts = g_bytes_ref(step->facts);
        }
        g_ptr_array_add(profile->slices, g_bytes_ref(step->slice));
    }
    return profile;
}

/* @asker: waits for the answer; -1: nobody */
static void
refuse_trigger(Watch *watch, const Watched *watched, const char *trigger, const char *why,
               int asker)
{
    g_autofree char *text =
        g_strdup_printf("%s: the profile of '%s' is not written: %s", watched->shown, trigger, why);

    if (asker >= 0) {
        uprof_watch_socket_answer(asker, UPROF_WATCH_FAILED, text);
        return;
    }
    uprof_notice(watch->notices, UPROF_NOTICE_WARNING, "%s", text);
    uprof_error_count(watch->tally, UPROF_ERROR_FAILED);
}

/* @asker: waits for the answer; -1: nobody */
static void
write_profile(Watch *watch, const Watched *watched, const char *trigger, uint64_t at_ns, int asker)
{
    UprofWatchProfile *profile = make_profile(watch, watched, trigger, at_ns);

    if (profile->slices->len == 0) {
        uprof_watch_profile_free(profile);
        refuse_trigger(watch, watched, trigger, "no sample was taken in that time", asker);
        return;
    }
    profile->asker = asker;
    if (!uprof_watch_writer_add(watch->writer, profile))
        refuse_trigger(watch, watched, trigger, "too many profiles wait to be written", -1);
}

/* Writes the profile of a trigger whose time after it is over. */
static void
end_trigger(Watch *watch, Watched *watched)
{
    g_autofree char *trigger =
        uprof_watch_triggers_end(&watched->triggers, watched->shown, watch->notices);

    write_profile(watch, watched, trigger, watched->triggers.time_ns, -1);
}

static void
say_trigger(const Watch *watch, const Watched *watched)
{
    g_autofree char *after = uprof_format_ns(watch->settings->after_ns);

    uprof_notice(watch->notices, UPROF_NOTICE_INFO,
                 "%s: '%s' happened; its profile is written in %s", watched->shown,
                 watched->triggers.text, after);
}

static void
check_rules(const Watch *watch, Watched *watched)
{
    const GPtrArray *rules = watch->settings->rules;
    const uint64_t now_ns = uprof_clock_now_ns();

    for (guint i = 0; i < rules->len; i++) {
        const UprofWatchRule *rule = g_ptr_array_index(rules, i);
        const bool holds = uprof_watch_log_holds(watched->log, rule, i);
        if (uprof_watch_triggers_check_rule(&watched->triggers, i, holds, rule->text, now_ns,
                                            watch->settings->rest_ns))
            say_trigger(watch, watched);
    }
}

static void
check_event(const char *uuid, const char *what, void *data)
{
    const Watch *watch = data;
    Watched *watched = find_watched(watch, uuid);

    for (guint i = 0; watched && i < watch->settings->rules->len; i++) {
        const UprofWatchRule *rule = g_ptr_array_index(watch->settings->rules, i);
        if (uprof_watch_rule_is_event(rule, what) &&
            uprof_watch_triggers_take_event(&watched->triggers, what, uprof_clock_now_ns(),
                                            watch->settings->rest_ns))
            say_trigger(watch, watched);
    }
}

static void take_step(Watch *watch, Watched *watched, uint64_t cpu_ns);

static void
write_now(Watch *watch, Watched *watched, const char *trigger, int asker)
{
    take_step(watch, watched, 0);
    write_profile(watch, watched, trigger, uprof_clock_now_ns(), asker);
}

static void
write_all(void *data)
{
    Watch *watch = data;

    for (guint i = 0; i < watch->watched->len; i++)
        write_now(watch, g_ptr_array_index(watch->watched, i), "SIGUSR1", -1);
}

/* ---- Steps ---- */

/* Returns: (transfer full): where the profile of a trigger goes */
static char *
describe_target(const UprofWatchSettings *settings)
{
    if (settings->outputs->len > 0)
        return g_strdup("the files of -o");
    g_autofree char *folder = g_build_filename(settings->store, UPROF_WATCH_STORE, NULL);
    g_autofree char *shown = uprof_text_quote(folder);
    return g_strdup_printf("'%s'", shown);
}

static void
say_watched(const Watch *watch, const char *shown)
{
    g_autofree char *keep = uprof_format_ns(watch->settings->keep_ns);
    g_autofree char *target = describe_target(watch->settings);

    uprof_notice(watch->notices, UPROF_NOTICE_INFO,
                 "%s: watched; a trigger writes its last %s to %s; to write them now: virt-uprof "
                 "watch --now %s",
                 shown, keep, target, shown);
}

static Watched *
add_watched(Watch *watch, const UprofSession *session)
{
    Watched *watched = g_new0(Watched, 1);

    watched->uuid = g_strdup(session->domain->uuid);
    watched->log = uprof_watch_log_new(watch->settings->keep_ns + watch->settings->after_ns +
                                           SPARE_S * UPROF_NS_PER_S,
                                       watch->settings->bytes_max);
    g_ptr_array_add(watch->watched, watched);
    say_watched(watch, session->shown);
    return watched;
}

static void
begin_domain(const UprofSession *session, void *data)
{
    Watch *watch = data;
    Watched *watched = find_watched(watch, session->domain->uuid);

    if (!watched)
        watched = add_watched(watch, session);
    watch->had_domains = true;
    g_free(watched->name);
    g_free(watched->shown);
    watched->name = g_strdup(session->domain->name);
    watched->shown = g_strdup(session->shown);
    watched->session = session;
    watched->share = (UprofBusyShare){ 0 };
    watched->before = (UprofSamplerCounts){ 0 };
    watched->step_ns = uprof_clock_now_ns();
    watched->step_utc_ns = uprof_clock_utc_ns();
    /* the time differs, so that not all domains are opened again at once */
    uprof_sampler_limit(session->sampler,
                        (RENEW_S / 2 + (uint64_t)g_random_int_range(0, RENEW_S)) * UPROF_NS_PER_S);
}

/* Returns: (transfer full): what the sampler has done since the last step */
static UprofRun *
count_step(Watched *watched, uint64_t cpu_ns)
{
    UprofRun *step = uprof_run_new();
    UprofSamplerCounts counts, *before = &watched->before;

    uprof_sampler_counts(watched->session->sampler, &counts);
    step->access = g_strdup(watched->session->run->access);
    step->started_utc_ns = watched->step_utc_ns;
    step->divisor = counts.divisor * MAX(watched->session->counts_before.divisor, 1);
    step->cpu_ns = cpu_ns;
    /* a sampler that was replaced begins again with 0 */
    if (counts.elapsed_ns < before->elapsed_ns)
        *before = (UprofSamplerCounts){ 0 };
    step->duration_ns = counts.elapsed_ns - before->elapsed_ns;
    step->late = counts.late - before->late;
    step->busy = counts.busy - before->busy;
    step->skipped = counts.skipped - before->skipped;
    step->stuck = counts.stuck - before->stuck;
    step->held_ns = counts.most_held_ns - before->most_held_ns;
    *before = counts;
    return step;
}

/* Keeps the worker's reply. The numbers in it may be anything. */
static void
keep_reply(const Watch *watch, Watched *watched, const GByteArray *reply)
{
    const uint64_t now_ns = uprof_clock_now_ns(), now_utc_ns = uprof_clock_utc_ns();
    const GPtrArray *rules = watch->settings->rules;
    UprofWatchReply head;

    if (reply->len < sizeof(head))
        return;
    memcpy(&head, reply->data, sizeof(head));
    const size_t rest = reply->len - sizeof(head);
    const guint8 *bytes = reply->data + sizeof(head);
    if (head.facts_len > rest || head.facts_len > FACTS_BYTES_MAX)
        return;
    if (head.facts_len > 0) {
        g_clear_pointer(&watched->facts, g_bytes_unref);
        watched->facts = g_bytes_new(bytes, head.facts_len);
    }
    if (!watched->facts)
        return;
    uprof_busy_share_step(&watched->share, watched->session, MIN(head.running, COUNT_MAX));
    UprofWatchStep step = {
        .start_ns = watched->step_ns,
        .end_ns = now_ns,
        .start_utc_ns = watched->step_utc_ns,
        .sampled_ns = watched->share.sampled_ns,
        .ticks = watched->share.ticks,
        .facts = g_bytes_ref(watched->facts),
        .slice = g_bytes_new(bytes + head.facts_len, rest - head.facts_len),
    };
    for (guint i = 0; i < rules->len; i++) {
        const UprofWatchRule *rule = g_ptr_array_index(rules, i);
        const uint64_t times = rule->subject == UPROF_WATCH_VCPU ? watched->share.n_vcpus : 1;
        step.matched[i] = MIN(head.matched[i], COUNT_MAX) * times;
    }
    uprof_watch_log_add(watched->log, &step);
    watched->step_ns = now_ns;
    watched->step_utc_ns = now_utc_ns;
}

/* @cpu_ns: processor time of the program for this domain since the last step */
static void
take_step(Watch *watch, Watched *watched, uint64_t cpu_ns)
{
    g_autoptr(GByteArray) reply = NULL;

    if (!watched->session)
        return;
    g_autoptr(UprofRun) run = count_step(watched, cpu_ns);
    g_autoptr(GByteArray) ask = uprof_watch_slice_ask(run, watch->settings->rules);
    /* a worker that has died is replaced by the run */
    if (!uprof_worker_call_within(watched->session->worker, STEP_S_MAX, 0,
                                  (UprofSlice){ ask->data, ask->len }, &reply, NULL))
        return;
    keep_reply(watch, watched, reply);
    uprof_watch_log_say_short(watched->log, watched->shown, watch->notices);
    check_rules(watch, watched);
}

static void
end_domain(const UprofRecording *recording, void *data)
{
    Watch *watch = data;
    Watched *watched = find_watched(watch, recording->session->domain->uuid);

    if (!watched)
        return;
    take_step(watch, watched, 0);
    watched->session = NULL;
}

static void
show_results(Watch *watch)
{
    for (;;) {
        g_autoptr(UprofWatchResult) result = uprof_watch_writer_take(watch->writer);
        if (!result)
            return;
        const bool has_failed = result->is_error && !result->is_answered;
        uprof_notice(watch->notices, has_failed ? UPROF_NOTICE_WARNING : UPROF_NOTICE_INFO, "%s",
                     result->text);
        if (has_failed)
            uprof_error_count(watch->tally, UPROF_ERROR_FAILED);
    }
}

/* Forgets domains that are not sampled, and of which nothing is kept any more. */
static void
forget_ended(Watch *watch)
{
    for (guint i = watch->watched->len; i > 0; i--) {
        const Watched *watched = g_ptr_array_index(watch->watched, i - 1);
        if (!watched->session && !watched->triggers.text && !uprof_watch_log_steps(watched->log))
            g_ptr_array_remove_index(watch->watched, i - 1);
    }
}

static bool
look_at_all(const GPtrArray *recordings, void *data)
{
    Watch *watch = data;
    const uint64_t now_ns = uprof_clock_now_ns(), cpu_ns = uprof_clock_cpu_ns();

    show_results(watch);
    if (now_ns - watch->step_ns < STEP_MS * UPROF_NS_PER_MS)
        return true;
    const uint64_t own_ns = (cpu_ns - watch->cpu_ns) / MAX(recordings->len, 1);
    watch->step_ns =
        MAX(watch->step_ns + STEP_MS * UPROF_NS_PER_MS, now_ns - STEP_MS * UPROF_NS_PER_MS / 2);
    watch->cpu_ns = cpu_ns;
    for (guint i = 0; i < watch->watched->len; i++) {
        Watched *watched = g_ptr_array_index(watch->watched, i);
        take_step(watch, watched, own_ns);
        uprof_watch_log_drop_old(watched->log, now_ns);
        if (watched->triggers.text &&
            now_ns >= watched->triggers.time_ns + watch->settings->after_ns)
            end_trigger(watch, watched);
    }
    forget_ended(watch);
    return true;
}

/* ---- Questions ---- */

static int
question_fd(void *data)
{
    const Watch *watch = data;

    return uprof_watch_socket_fd(watch->socket);
}

/* Returns: an index in @watched, or as uprof_watch_word_find() */
static int
find_meant(const Watch *watch, const char *word)
{
    g_autoptr(GArray) known = g_array_new(FALSE, FALSE, sizeof(UprofWatchKnown));

    for (guint i = 0; i < watch->watched->len; i++) {
        const Watched *watched = g_ptr_array_index(watch->watched, i);
        const UprofWatchKnown row = { watched->name, watched->uuid,
                                      watched->session ? watched->session->domain->id : -1 };
        g_array_append_val(known, row);
    }
    return uprof_watch_word_find(word, (const UprofWatchKnown *)known->data, known->len);
}

static void
refuse_number(const char *word, int asker)
{
    g_autofree char *quoted = uprof_text_quote(word);
    g_autofree char *text = g_strdup_printf(
        "'%s' is the id of one domain and the name of another; give the UUID", quoted);

    uprof_watch_socket_answer(asker, UPROF_WATCH_FAILED, text);
}

static bool
answer_question(const GPtrArray *recordings, void *data)
{
    Watch *watch = data;
    int asker = -1;
    g_autofree char *word = uprof_watch_socket_accept(watch->socket, &asker);

    if (!word)
        return true;
    const int found = find_meant(watch, word);
    if (found >= 0)
        write_now(watch, g_ptr_array_index(watch->watched, found), "asked by watch --now", asker);
    else if (found == UPROF_WATCH_WORD_AMBIGUOUS)
        refuse_number(word, asker);
    else
        uprof_watch_socket_answer(asker, UPROF_WATCH_UNKNOWN, "");
    return true;
}

/* ---- The run ---- */

static UprofErrorCode
run_domains(Watch *watch)
{
    static const UprofAnalysisCall calls[] = { uprof_watch_slice_make };
    const UprofWatchSettings *settings = watch->settings;
    g_autoptr(GPtrArray) no_outputs = g_ptr_array_new();
    const UprofRunObserver observer = {
        .started = begin_domain,
        .looped = look_at_all,
        .input_fd = question_fd,
        .input = answer_question,
        .asked = write_all,
        .on_domain_event = check_event,
        .ended = end_domain,
        .abort_run = settings->abort_run,
        .leave = settings->leave,
        .data = watch,
    };
    UprofSettings run = *settings->record.session.run;
    UprofRecordSettings record = settings->record;
    UprofErrorTally tally = { 0 };

    run.duration_ns = RENEW_S * UPROF_NS_PER_S;
    run.given.duration = true;
    for (guint i = 0; i < settings->rules->len; i++)
        run.per_vcpu |= ((const UprofWatchRule *)g_ptr_array_index(settings->rules, i))->subject ==
                        UPROF_WATCH_VCPU;
    record.session.run = &run;
    record.session.yields = true;
    record.outputs = no_outputs;
    record.observer = &observer;
    record.calls = calls;
    record.n_calls = G_N_ELEMENTS(calls);
    record.wait = !record.all;
    record.rejoins = true;
    const UprofErrorCode code = uprof_record_domains(&record, &tally);
    /* in months, errors come and go; they count if there was never a domain */
    if (!watch->had_domains && tally.n > 0)
        uprof_error_count(watch->tally, tally.code);
    return code == UPROF_ERROR_NOT_FOUND && (watch->had_domains || record.all) ? UPROF_ERROR_NONE
                                                                               : code;
}

/* Opens what is needed before the run forks: an error ends the run before it begins. */
static bool
open_watch(Watch *watch, GError **error)
{
    const UprofWatchSettings *settings = watch->settings;
    g_autofree char *path = settings->outputs->len == 0
                                ? g_build_filename(settings->store, UPROF_WATCH_STORE, NULL)
                                : NULL;
    g_autoptr(UprofStore) parent = path ? uprof_store_open(settings->store, true, error) : NULL;

    if (path && !parent)
        return false;
    watch->store = path ? uprof_store_open(path, true, error) : NULL;
    if (path && !watch->store)
        return false;
    const UprofWatchTarget target = { watch->store, settings->min_free_megabytes,
                                      settings->outputs };
    watch->writer = uprof_watch_writer_new(&target, error);
    watch->socket = watch->writer ? uprof_watch_socket_new(error) : NULL;
    return watch->socket != NULL;
}

/* A second signal ends the process at once: see @abort_run. */
static void
unblock_signals(void)
{
    sigset_t none;

    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, NULL);
}

static void
close_watch(Watch *watch)
{
    unblock_signals();
    /* the end of the run also ends the time after a trigger */
    for (guint i = 0; i < watch->watched->len; i++) {
        Watched *watched = g_ptr_array_index(watch->watched, i);
        if (watched->triggers.text)
            end_trigger(watch, watched);
    }
    if (watch->writer) {
        uprof_watch_writer_finish(watch->writer);
        show_results(watch);
    }
    uprof_watch_socket_free(watch->socket);
    uprof_watch_writer_free(watch->writer);
    uprof_store_close(watch->store);
    g_ptr_array_unref(watch->watched);
}

UprofErrorCode
uprof_watch_domains(const UprofWatchSettings *settings, UprofErrorTally *tally)
{
    g_autoptr(GError) error = NULL;
    UprofErrorCode code;
    Watch watch = {
        .settings = settings,
        .notices = settings->record.session.notices,
        .tally = tally,
        .watched = g_ptr_array_new_with_free_func(free_watched),
        .step_ns = uprof_clock_now_ns(),
    };

    if (open_watch(&watch, &error))
        code = run_domains(&watch);
    else
        code = uprof_notice_error(watch.notices, error);
    close_watch(&watch);
    return code;
}
