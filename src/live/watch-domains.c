/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Once a second, each worker packs its samples into a slice, which the program keeps without looking
 * into it (watch-slice-priv.h). A trigger hands the slices of its time to a process that writes the
 * files (watch-writer-priv.h). So neither a worker that dies nor a domain that ends takes them along.
 */
#include "uprof/watch-domains.h"

#include "uprof/busy-share.h"
#include "uprof/clock.h"
#include "uprof/number-text.h"
#include "uprof/output-request.h"
#include "uprof/store.h"
#include "uprof/text.h"

#include "watch-log-priv.h"
#include "watch-slice-priv.h"
#include "watch-socket-priv.h"
#include "watch-writer-priv.h"

#include <string.h>

enum {
    STEP_MS = 1000,
    /* A domain is opened anew so often, because a worker cannot forget the names that it has seen. */
    RENEW_S = 6 * 3600,
    COUNT_MAX = 1 << 30, /* samples of a step: the numbers of a worker may be anything */
};

/* A domain, from its first sample to the end of the run. */
typedef struct {
    char *uuid, *name, *shown;
    UprofWatchLog *log;
    GBytes *facts; /* (nullable): as the worker sent them last */
    bool held_rules[UPROF_WATCH_RULES_MAX];
    bool has_said_short;

    /* the current sampling of the domain */
    const UprofSession *session; /* (nullable): borrowed */
    UprofBusyShare share;
    UprofRun *before; /* counts of the sampler until the last step */
    uint64_t step_ns; /* when the last step ended */
    uint64_t step_utc_ns;

    /* the trigger that waits for the time after it */
    char *trigger; /* (nullable) */
    uint64_t trigger_ns;
    uint64_t last_ns; /* of the last trigger; 0: none */
    unsigned n_left_out;
} Watched;

typedef struct {
    const UprofWatchSettings *settings;
    const UprofNotices *notices;
    UprofErrorTally *tally;
    GPtrArray *watched; /* of Watched */
    UprofStore *store;  /* (nullable) */
    UprofWatchWriter *writer;
    UprofWatchSocket *socket; /* (nullable) */
    uint64_t step_ns;         /* when the last steps were taken */
    uint64_t cpu_ns;          /* processor time of the program until then */
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
    uprof_run_free(watched->before);
    g_free(watched->trigger);
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

/* ---- Files ---- */

static bool
open_file(Watch *watch, UprofWatchProfile *profile, const char *path, const UprofFormat *format,
          GError **error)
{
    UprofFile *file = watch->store
                          ? uprof_file_open_own(uprof_store_data(watch->store), path, error)
                          : uprof_file_open(path, format->is_secret, error);

    if (!file)
        return false;
    g_ptr_array_add(profile->files, file);
    g_ptr_array_add(profile->formats, (gpointer)format);
    return true;
}

static bool
open_in_store(Watch *watch, const Watched *watched, UprofWatchProfile *profile, GError **error)
{
    if (!uprof_store_has_room(watch->store, watch->settings->min_free_megabytes, error))
        return false;
    g_autofree char *base =
        uprof_store_slice_base(watch->store, watched->name, watched->uuid,
                               (int64_t)(profile->started_ns / UPROF_NS_PER_S), NULL, error);
    if (!base)
        return false;
    g_autofree char *stacks = g_strconcat(base, UPROF_STORE_PROFILE, NULL);
    g_autofree char *sidecar = g_strconcat(base, UPROF_STORE_SIDECAR, NULL);
    /* the sidecar is the last file: it is the commit mark of the slice */
    return open_file(watch, profile, stacks, &uprof_format_folded_gz, error) &&
           open_file(watch, profile, sidecar, &uprof_format_meta, error);
}

static bool
open_outputs(Watch *watch, const Watched *watched, UprofWatchProfile *profile, GError **error)
{
    const GPtrArray *outputs = watch->settings->outputs;
    g_autofree char *time = uprof_clock_format_utc(uprof_clock_utc_ns(), TRUE);

    for (guint i = 0; i < outputs->len; i++) {
        const UprofOutputRequest *request = g_ptr_array_index(outputs, i);
        g_autofree char *path =
            uprof_output_request_expand(request->path, watched->name, watched->uuid, time);
        if (!open_file(watch, profile, path, request->format, error))
            return false;
    }
    return true;
}

/* ---- Triggers ---- */

/* Takes the slices from @from_ns on. */
static UprofWatchProfile *
make_profile(const Watched *watched, const char *trigger, uint64_t from_ns)
{
    UprofWatchProfile *profile = uprof_watch_profile_new(watched->shown, trigger);

    profile->facts = g_bytes_ref(watched->facts);
    for (unsigned i = 0; i < uprof_watch_log_n_steps(watched->log); i++) {
        const UprofWatchStep *step = uprof_watch_log_step(watched->log, i);
        if (step->end_ns <= from_ns)
            continue;
        if (profile->slices->len == 0)
            profile->started_ns = step->start_utc_ns;
        g_ptr_array_add(profile->slices, g_bytes_ref(step->slice));
    }
    return profile;
}

static void
refuse_profile(Watch *watch, UprofWatchProfile *profile, const GError *error)
{
    uprof_notice(watch->notices, UPROF_NOTICE_WARNING, "%s: '%s': nothing is kept: %s",
                 profile->shown, profile->trigger, error->message);
    uprof_error_count(watch->tally, uprof_error_code_of(error));
    if (profile->asker >= 0)
        uprof_watch_socket_answer(profile->asker, UPROF_WATCH_FAILED, error->message);
    profile->asker = -1;
    uprof_watch_profile_free(profile);
}

/* @asker: waits for the answer; -1: nobody */
static void
write_profile(Watch *watch, const Watched *watched, const char *trigger, uint64_t at_ns, int asker)
{
    const uint64_t keep_ns = watch->settings->keep_ns;
    g_autoptr(GError) error = NULL;

    if (!watched->facts || uprof_watch_log_n_steps(watched->log) == 0) {
        uprof_notice(watch->notices, UPROF_NOTICE_WARNING,
                     "%s: '%s': there are no samples of the last minutes", watched->shown, trigger);
        if (asker >= 0)
            uprof_watch_socket_answer(asker, UPROF_WATCH_FAILED,
                                      "there are no samples of the last minutes");
        return;
    }
    UprofWatchProfile *profile =
        make_profile(watched, trigger, at_ns > keep_ns ? at_ns - keep_ns : 0);
    profile->asker = asker;
    if (watch->store ? open_in_store(watch, watched, profile, &error)
                     : open_outputs(watch, watched, profile, &error))
        uprof_watch_writer_add(watch->writer, profile);
    else
        refuse_profile(watch, profile, error);
}

/* Writes the profile of a trigger whose time after it is over. */
static void
end_trigger(Watch *watch, Watched *watched)
{
    g_autofree char *trigger = g_steal_pointer(&watched->trigger);

    if (watched->n_left_out > 0)
        uprof_notice(watch->notices, UPROF_NOTICE_HINT,
                     "%s: left out %u more triggers, which came too soon after others",
                     watched->shown, watched->n_left_out);
    watched->n_left_out = 0;
    write_profile(watch, watched, trigger, watched->trigger_ns, -1);
}

static void
begin_trigger(Watch *watch, Watched *watched, const char *trigger)
{
    const uint64_t now_ns = uprof_clock_now_ns();

    if (watched->trigger ||
        (watched->last_ns > 0 && now_ns - watched->last_ns < watch->settings->rest_ns)) {
        watched->n_left_out++;
        return;
    }
    watched->trigger = g_strdup(trigger);
    watched->trigger_ns = watched->last_ns = now_ns;
    g_autofree char *after = uprof_format_ns(watch->settings->after_ns);
    uprof_notice(watch->notices, UPROF_NOTICE_INFO, "%s: '%s'; keeping %s more", watched->shown,
                 trigger, after);
}

/* A rule triggers when it begins to hold. */
static void
check_rules(Watch *watch, Watched *watched)
{
    const GPtrArray *rules = watch->settings->rules;

    for (guint i = 0; i < rules->len; i++) {
        const UprofWatchRule *rule = g_ptr_array_index(rules, i);
        const bool holds = uprof_watch_log_holds(watched->log, rule, i);
        if (holds && !watched->held_rules[i])
            begin_trigger(watch, watched, rule->text);
        watched->held_rules[i] = holds;
    }
}

static void
check_event(const char *uuid, const char *what, void *data)
{
    Watch *watch = data;
    Watched *watched = find_watched(watch, uuid);

    for (guint i = 0; watched && i < watch->settings->rules->len; i++) {
        const UprofWatchRule *rule = g_ptr_array_index(watch->settings->rules, i);
        if (uprof_watch_rule_is_event(rule, what))
            begin_trigger(watch, watched, what);
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

static Watched *
add_watched(Watch *watch, const UprofSession *session)
{
    Watched *watched = g_new0(Watched, 1);

    watched->uuid = g_strdup(session->domain->uuid);
    watched->log = uprof_watch_log_new(watch->settings->keep_ns + watch->settings->after_ns,
                                       watch->settings->bytes_max);
    g_ptr_array_add(watch->watched, watched);
    return watched;
}

static void
begin_domain(const UprofSession *session, void *data)
{
    Watch *watch = data;
    Watched *watched = find_watched(watch, session->domain->uuid);

    if (!watched)
        watched = add_watched(watch, session);
    g_free(watched->name);
    g_free(watched->shown);
    uprof_run_free(watched->before);
    watched->name = g_strdup(session->domain->name);
    watched->shown = g_strdup(session->shown);
    watched->session = session;
    watched->share = (UprofBusyShare){ 0 };
    watched->before = uprof_run_new();
    watched->step_ns = uprof_clock_now_ns();
    watched->step_utc_ns = uprof_clock_utc_ns();
}

/* Returns: (transfer full): what the sampler has done since the last step */
static UprofRun *
count_step(Watched *watched, uint64_t cpu_ns)
{
    UprofRun *step = uprof_run_new(), *before = watched->before;
    UprofSamplerCounts counts;

    uprof_sampler_counts(watched->session->sampler, &counts);
    step->access = g_strdup(watched->session->run->access);
    step->started_utc_ns = watched->step_utc_ns;
    step->divisor = counts.divisor;
    step->cpu_ns = cpu_ns;
    /* a sampler that was replaced begins again with 0 */
    if (counts.elapsed_ns < before->duration_ns)
        uprof_run_clear_counts(before);
    step->duration_ns = counts.elapsed_ns - before->duration_ns;
    step->late = counts.late - before->late;
    step->busy = counts.busy - before->busy;
    step->skipped = counts.skipped - before->skipped;
    step->stuck = counts.stuck - before->stuck;
    step->held_ns = counts.most_held_ns - before->held_ns;
    before->duration_ns = counts.elapsed_ns;
    before->late = counts.late;
    before->busy = counts.busy;
    before->skipped = counts.skipped;
    before->stuck = counts.stuck;
    before->held_ns = counts.most_held_ns;
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
    if (head.facts_len > rest)
        return;
    if (head.facts_len > 0) {
        g_clear_pointer(&watched->facts, g_bytes_unref);
        watched->facts = g_bytes_new(bytes, head.facts_len);
    }
    uprof_busy_share_step(&watched->share, watched->session, MIN(head.running, COUNT_MAX));
    UprofWatchStep step = {
        .start_ns = watched->step_ns,
        .end_ns = now_ns,
        .start_utc_ns = watched->step_utc_ns,
        .ticks = watched->share.ticks,
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

static void
say_short(const Watch *watch, Watched *watched)
{
    const uint64_t mib = watch->settings->bytes_max >> 20;

    if (watched->has_said_short || !uprof_watch_log_is_short(watched->log))
        return;
    watched->has_said_short = true;
    uprof_notice(watch->notices, UPROF_NOTICE_WARNING,
                 "%s: its samples need more than %" G_GUINT64_FORMAT
                 " MiB, so less time is kept than --keep says; see --keep-memory",
                 watched->shown, mib);
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
    if (!uprof_worker_call(watched->session->worker, 0, (UprofSlice){ ask->data, ask->len }, &reply,
                           NULL))
        return;
    keep_reply(watch, watched, reply);
    say_short(watch, watched);
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
        uprof_notice(watch->notices, result->is_error ? UPROF_NOTICE_WARNING : UPROF_NOTICE_INFO,
                     "%s", result->text);
        if (result->is_error)
            uprof_error_count(watch->tally, UPROF_ERROR_FAILED);
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
        if (watched->trigger && now_ns - watched->trigger_ns >= watch->settings->after_ns)
            end_trigger(watch, watched);
    }
    return true;
}

/* ---- Questions ---- */

static int
question_fd(void *data)
{
    const Watch *watch = data;

    return watch->socket ? uprof_watch_socket_fd(watch->socket) : -1;
}

static bool
is_meant(const Watched *watched, const char *word)
{
    return strcmp(watched->name, word) == 0 || g_ascii_strcasecmp(watched->uuid, word) == 0;
}

static bool
answer_question(const GPtrArray *recordings, void *data)
{
    Watch *watch = data;
    int asker = -1;
    g_autofree char *word = uprof_watch_socket_accept(watch->socket, &asker);

    for (guint i = 0; word && i < watch->watched->len; i++) {
        Watched *watched = g_ptr_array_index(watch->watched, i);
        if (!is_meant(watched, word))
            continue;
        write_now(watch, watched, "asked by watch --now", asker);
        return true;
    }
    if (word)
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
        .befell = check_event,
        .ended = end_domain,
        .abort_run = settings->abort_run,
        .leave = settings->leave,
        .data = watch,
    };
    UprofSettings run = *settings->record.session.run;
    UprofRecordSettings record = settings->record;

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
    return uprof_record_domains(&record, watch->tally);
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
    watch->writer = uprof_watch_writer_new(error);
    watch->socket = watch->writer ? uprof_watch_socket_new(error) : NULL;
    return watch->socket != NULL;
}

static void
close_watch(Watch *watch)
{
    /* the end of the run also ends the time after a trigger */
    for (guint i = 0; i < watch->watched->len; i++) {
        Watched *watched = g_ptr_array_index(watch->watched, i);
        if (watched->trigger)
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
