/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/push-rounds.h"

#include "push-client-priv.h"
#include "push-lag-priv.h"
#include "push-log-priv.h"
#include "request-body-priv.h"
#include "uprof/clock.h"
#include "uprof/metrics-file.h"
#include "uprof/sorted.h"
#include "uprof/stored-rounds.h"
#include "uprof/text.h"

#include <string.h>

enum {
    TRIES_MAX = 4,         /* for a round, in one run */
    DELAY_MS = 500,        /* before the second try; it doubles */
    RETRY_S_MAX = 30,      /* that an engine can ask to wait */
    RUN_S = 180,           /* for a destination; other rounds are left for the next run */
    FAILED_IN_ROW_MAX = 3, /* rounds; then the engine is down */
    /* rounds, before the first one that it takes; then the destination is not set up well */
    REFUSED_FIRST_MAX = 10,
    RUNS_MAX = 10, /* in which the engine puts off a round, but not others; then it is refused */
};

/* The push to one destination. All pointers are borrowed. */
typedef struct {
    const UprofPushSettings *settings;
    const UprofDestination *destination;
    UprofStoredRounds *rounds;
    UprofPushLog *log;
    UprofPushClient *client;
    UprofPushResult *result;
    GArray *queue;     /* of Waiting */
    GArray *put_off;   /* of PutOff */
    uint64_t until_ns; /* when to begin with no other round */
    uint64_t next_ns;  /* when the rate permits the next request */
    unsigned n_failed; /* rounds in a row that could not be sent */
} Push;

/* A round to send. */
typedef struct {
    guint index; /* in the list of rounds */
    unsigned n_later;
} Waiting;

/* A round that the engine could not take. */
typedef struct {
    Waiting waiting;
    char *why; /* owned */
} PutOff;

static const UprofStoredRound *
round_at(const Push *push, guint i)
{
    return &g_array_index(uprof_stored_rounds_list(push->rounds), UprofStoredRound, i);
}

static void
set_error(UprofPushResult *result, const GError *error)
{
    if (result->error)
        return;
    result->error = g_strdup(error->message);
    result->code = uprof_error_code_of(error);
}

/* @words: safe to print */
static void
stop_push(Push *push, const char *words)
{
    g_autoptr(GError) error = g_error_new(UPROF_ERROR, UPROF_ERROR_FAILED, "%s", words);

    set_error(push->result, error);
}

/* @words: (nullable) */
static void
note_state(Push *push, guint i, UprofPushState state, const char *words)
{
    g_autoptr(GError) error = NULL;

    if (!push->settings->dry_run &&
        !uprof_push_log_add(push->log, round_at(push, i)->stem, state, words, &error))
        set_error(push->result, error);
}

/* ---- The queue ---- */

/* Rounds that were put off come last, so that one that always fails does not block others. */
static int
compare_waiting(const void *a, const void *b)
{
    const Waiting *one = a, *other = b;

    if (one->n_later != other->n_later)
        return UPROF_COMPARE(one->n_later, other->n_later);
    return UPROF_COMPARE(one->index, other->index);
}

/* @since_s: earlier rounds are not for this destination; @oldest_s: it takes no older ones */
static void
queue_round(Push *push, guint i, int64_t since_s, int64_t oldest_s)
{
    const UprofStoredRound *round = round_at(push, i);
    Waiting waiting = { .index = i };
    const UprofPushState state = uprof_push_log_state(push->log, round->stem, &waiting.n_later);

    if ((state != UPROF_PUSH_STATE_NEW && state != UPROF_PUSH_STATE_LATER) ||
        round->start_s < since_s || !uprof_request_may_want(round, push->destination))
        return;
    if (round->start_s >= oldest_s) {
        g_array_append_val(push->queue, waiting);
        return;
    }
    push->result->n_too_old++;
    note_state(push, i, UPROF_PUSH_STATE_TOO_OLD, NULL);
}

static void
fill_queue(Push *push)
{
    const UprofPushSettings *settings = push->settings;
    const GArray *list = uprof_stored_rounds_list(push->rounds);
    const int64_t age_s = (int64_t)(push->destination->max_age_ns / UPROF_NS_PER_S);
    const int64_t oldest_s = settings->is_of_run ? 0 : uprof_clock_utc_s() - age_s;
    g_autoptr(GError) error = NULL;
    /* it may be later only if the clock was ahead at the first push */
    const int64_t begun_s = MIN(uprof_push_log_begin(push->log, oldest_s, &error), oldest_s);
    const int64_t since_s = settings->since_s > 0 ? settings->since_s : begun_s;

    if (error)
        set_error(push->result, error);
    for (guint i = 0; i < list->len; i++)
        queue_round(push, i, since_s, oldest_s);
    g_array_sort(push->queue, compare_waiting);
    if (push->result->n_too_old > 0)
        uprof_notice(settings->notices, UPROF_NOTICE_WARNING,
                     "%s: rounds that became too old (maxAge) before they could be sent: %u",
                     push->destination->name, push->result->n_too_old);
}

static void
shrink_log(Push *push)
{
    const GArray *list = uprof_stored_rounds_list(push->rounds);
    g_autoptr(GHashTable) stems = g_hash_table_new(g_str_hash, g_str_equal);
    g_autoptr(GError) error = NULL;

    for (guint i = 0; i < list->len; i++)
        g_hash_table_add(stems, (gpointer)round_at(push, i)->stem);
    if (!uprof_push_log_shrink(push->log, stems, &error))
        set_error(push->result, error);
}

/* ---- One round ---- */

static void
sleep_ms(uint64_t ms)
{
    uprof_clock_sleep_until(uprof_clock_now_ns() + ms * UPROF_NS_PER_MS);
}

/* Hosts that fail together must not try again together, so the time differs by a half. */
static uint64_t
choose_delay_ms(unsigned n_tries, const UprofPushAnswer *answer)
{
    const uint64_t delay_ms = (uint64_t)DELAY_MS << (n_tries - 1);
    const uint64_t spread_ms = delay_ms / 2 + (uint64_t)g_random_int_range(0, (gint32)delay_ms);

    return MAX(spread_ms, (uint64_t)MIN(answer->retry_s, RETRY_S_MAX) * 1000);
}

/* Waits until the rate permits a request. */
static void
keep_rate(Push *push, size_t bytes)
{
    const uint64_t rate = push->destination->bytes_per_s, now_ns = uprof_clock_now_ns();

    if (rate == 0)
        return;
    uprof_clock_sleep_until(MIN(push->next_ns, push->until_ns));
    push->next_ns =
        MAX(push->next_ns, now_ns) + (uint64_t)((double)bytes / (double)rate * UPROF_NS_PER_S);
}

/* @answer: (out): of the last try */
static void
try_request(Push *push, UprofSlice body, UprofPushAnswer *answer)
{
    for (unsigned n_tries = 1;; n_tries++) {
        keep_rate(push, body.len);
        uprof_push_client_send(push->client, body, answer);
        if (answer->verdict != UPROF_VERDICT_AGAIN || n_tries == TRIES_MAX ||
            uprof_clock_now_ns() >= push->until_ns)
            return;
        const uint64_t delay_ms = choose_delay_ms(n_tries, answer);
        uprof_push_answer_clear(answer);
        sleep_ms(delay_ms);
    }
}

static void
warn_of_refusal(const Push *push, guint i, const char *why)
{
    const UprofStoredRound *round = round_at(push, i);

    uprof_notice(push->settings->notices, UPROF_NOTICE_WARNING, "%s: '%s' is refused: %s",
                 push->destination->name, round->stem, why);
}

static void
refuse_round(Push *push, guint i, UprofPushState state, const char *why)
{
    push->result->n_refused++;
    warn_of_refusal(push, i, why);
    note_state(push, i, state, why);
}

/* @why: safe to print */
static void
leave_round(Push *push, const char *why)
{
    push->result->n_left++;
    if (!push->result->why_left)
        push->result->why_left = g_strdup(why);
}

/*
 * Leaves a round for the next run. @is_of_round: the engine, or the file, is the reason, and not
 * the connection
 */
static void
put_round_off(Push *push, const Waiting *waiting, const char *why, bool is_of_round)
{
    const PutOff put_off = { *waiting, g_strdup(why) };

    leave_round(push, why);
    if (is_of_round)
        g_array_append_val(push->put_off, put_off);
    else
        g_free(put_off.why);
}

static void
clear_put_off(gpointer data)
{
    g_free(((PutOff *)data)->why);
}

/*
 * Counts how often a round was put off, so that it comes last in the next run, and is refused in
 * the end. An engine that takes no other round is to blame itself.
 */
static void
note_put_off(Push *push)
{
    const bool works = push->result->n_sent > 0;

    for (guint i = 0; i < push->put_off->len; i++) {
        const PutOff *put_off = &g_array_index(push->put_off, PutOff, i);
        const Waiting *waiting = &put_off->waiting;
        if (works && waiting->n_later + 1 >= RUNS_MAX) {
            push->result->n_left--;
            refuse_round(push, waiting->index, UPROF_PUSH_STATE_REFUSED, put_off->why);
        } else if (works) {
            note_state(push, waiting->index, UPROF_PUSH_STATE_LATER, put_off->why);
        }
    }
}

static void
send_body(Push *push, const Waiting *waiting, UprofSlice body)
{
    g_auto(UprofPushAnswer) answer = { 0 };

    try_request(push, body, &answer);
    g_autofree char *words = uprof_push_answer_describe(&answer);
    if (answer.verdict != UPROF_VERDICT_AGAIN)
        push->n_failed = 0;
    switch (answer.verdict) {
    case UPROF_VERDICT_SENT:
        push->result->n_sent++;
        push->result->bytes_sent += body.len;
        note_state(push, waiting->index, UPROF_PUSH_STATE_SENT, NULL);
        break;
    case UPROF_VERDICT_REFUSED:
        refuse_round(push, waiting->index, UPROF_PUSH_STATE_REFUSED, words);
        break;
    case UPROF_VERDICT_AGAIN:
        push->n_failed++;
        put_round_off(push, waiting, words, answer.status > 0);
        break;
    case UPROF_VERDICT_LEAVE:
        push->result->n_left++;
        stop_push(push, words);
        break;
    }
}

static void
show_round(const Push *push, guint i)
{
    const UprofStoredRound *round = round_at(push, i);
    g_autofree char *text =
        g_strdup_printf("%s: data/%s/%s", push->destination->name, round->folder, round->stem);

    push->result->n_left++;
    if (push->settings->show_round)
        push->settings->show_round(text, push->settings->data);
}

static void
push_round(Push *push, const Waiting *waiting)
{
    g_autoptr(GByteArray) body = g_byte_array_new();
    g_autoptr(GError) error = NULL;

    switch (uprof_stored_rounds_read(push->rounds, waiting->index, body, &error)) {
    case UPROF_ROUND_UNWANTED:
        /* words of the command line say nothing about the next run */
        if (push->settings->words->len == 0)
            note_state(push, waiting->index, UPROF_PUSH_STATE_UNWANTED, NULL);
        break;
    case UPROF_ROUND_GONE:
        break;
    case UPROF_ROUND_DAMAGED:
        refuse_round(push, waiting->index, UPROF_PUSH_STATE_DAMAGED, error->message);
        break;
    case UPROF_ROUND_FAILED:
        put_round_off(push, waiting, error->message, true);
        break;
    case UPROF_ROUND_READ:
        if (body->len == 0 && !push->settings->dry_run)
            put_round_off(push, waiting, "the process that reads the files has sent nothing", true);
        else if (push->settings->dry_run)
            show_round(push, waiting->index);
        else
            send_body(push, waiting, (UprofSlice){ body->data, body->len });
        break;
    }
}

/* ---- Destinations ---- */

static bool
may_go_on(Push *push)
{
    const UprofPushResult *result = push->result;

    if (result->n_sent == 0 && result->n_refused >= REFUSED_FIRST_MAX)
        stop_push(push, "it refuses everything; check the url and the type");
    return !result->error && push->n_failed < FAILED_IN_ROW_MAX &&
           MAX(uprof_clock_now_ns(), push->next_ns) < push->until_ns;
}

static void
push_queue(Push *push)
{
    guint i = 0;

    push->until_ns = uprof_clock_now_ns() + RUN_S * UPROF_NS_PER_S;
    for (; i < push->queue->len && may_go_on(push); i++)
        push_round(push, &g_array_index(push->queue, Waiting, i));
    if (push->settings->dry_run)
        return;
    push->result->n_left += push->queue->len - i;
    note_put_off(push);
}

/* The process that reads the store is forked while the program has no connection to the helper. */
static void
start_push(Push *push, UprofRequestContext *context)
{
    const UprofRoundWork work = {
        .wants = uprof_request_wants,
        .use = uprof_request_make,
        .data = context,
    };
    g_autoptr(GError) error = NULL;

    if (push->queue->len == 0)
        return;
    if (uprof_stored_rounds_start(push->rounds, &work, &error) && !push->settings->dry_run)
        push->client =
            uprof_push_client_new(push->destination, uprof_request_path(push->destination), &error);
    if (error) {
        push->result->n_left += push->queue->len;
        set_error(push->result, error);
    } else {
        push_queue(push);
    }
    uprof_push_client_free(push->client);
}

static void
push_to(const UprofPushSettings *settings, const UprofDestination *destination,
        UprofStoredRounds *rounds, UprofPushResult *result)
{
    g_autoptr(GArray) queue = g_array_new(FALSE, FALSE, sizeof(Waiting));
    g_autoptr(GArray) put_off = g_array_new(FALSE, FALSE, sizeof(PutOff));
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofPushLog) log =
        uprof_push_log_open(settings->store, destination->file, !settings->dry_run, &error);
    UprofRequestContext context = {
        .destination = destination,
        .host = g_get_host_name(),
        .words = settings->words,
        .is_dry = settings->dry_run,
    };
    Push push = { settings,       destination,       rounds, log, .result = result,
                  .queue = queue, .put_off = put_off };

    g_array_set_clear_func(put_off, clear_put_off);
    if (!log) {
        set_error(result, error);
        return;
    }
    shrink_log(&push);
    fill_queue(&push);
    start_push(&push, &context);
}

static UprofDestination *
find_destination(const GPtrArray *known, const char *name)
{
    for (guint i = 0; i < known->len; i++) {
        UprofDestination *destination = g_ptr_array_index(known, i);
        if (strcmp(destination->name, name) == 0)
            return destination;
    }
    return NULL;
}

GPtrArray *
uprof_push_choose(const GPtrArray *known, const GPtrArray *targets, GError **error)
{
    g_autoptr(GPtrArray) chosen =
        g_ptr_array_new_with_free_func((GDestroyNotify)uprof_destination_free);

    for (guint i = 0; targets->len == 0 && i < known->len; i++)
        g_ptr_array_add(chosen, uprof_destination_ref(g_ptr_array_index(known, i)));
    for (guint i = 0; i < targets->len; i++) {
        const char *target = g_ptr_array_index(targets, i);
        UprofDestination *destination = find_destination(known, target);
        destination = destination ? uprof_destination_ref(destination)
                                  : uprof_destination_of_url(target, error);
        if (!destination)
            return NULL;
        g_ptr_array_add(chosen, destination);
    }
    return g_steal_pointer(&chosen);
}

static void
count_result(UprofMetrics *metrics, const UprofPushSettings *settings,
             const UprofPushResult *result, const UprofDestination *destination)
{
    const char *name = result->name;
    UprofPushLag lag;

    uprof_metrics_add(metrics, UPROF_METRIC_PUSHED, name, result->n_sent);
    uprof_metrics_add(metrics, UPROF_METRIC_PUSHED_BYTES, name, result->bytes_sent);
    uprof_metrics_add(metrics, UPROF_METRIC_REFUSED, name, result->n_refused);
    uprof_metrics_add(metrics, UPROF_METRIC_TOO_OLD, name, result->n_too_old);
    if (!uprof_push_lag_measure(settings->store, destination, &lag, NULL))
        return;
    uprof_metrics_set(metrics, UPROF_METRIC_WAITING, name, lag.n_waiting);
    uprof_metrics_set(metrics, UPROF_METRIC_OLDEST, name, (uint64_t)MAX(lag.oldest_s, 0));
}

/* A push does not fail because of its metrics. */
static void
save_metrics(const UprofPushSettings *settings, const GArray *results)
{
    g_autoptr(UprofMetrics) metrics =
        uprof_metrics_load(settings->metrics_folder, "virt-uprof-push");
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    g_autoptr(GError) error = NULL;

    for (guint i = 0; i < results->len; i++) {
        const UprofPushResult *result = &g_array_index(results, UprofPushResult, i);
        g_ptr_array_add(names, result->name);
        /* the push that has the lock counts */
        if (result->code != UPROF_ERROR_LOCKED)
            count_result(metrics, settings, result, settings->destinations->pdata[i]);
    }
    if (settings->are_all)
        uprof_metrics_keep(metrics, UPROF_METRIC_PUSHED, names);
    if (!uprof_metrics_save(metrics, &error))
        uprof_notice_error(settings->notices, error);
}

static void
clear_result(gpointer data)
{
    UprofPushResult *result = data;

    g_free(result->name);
    g_free(result->url);
    g_free(result->why_left);
    g_free(result->error);
}

/* Waits, so that the hosts of a fleet do not send at the same time. */
static void
spread_start(const UprofPushSettings *settings)
{
    if (settings->spread_ns > 0 && !settings->dry_run)
        sleep_ms((uint64_t)(g_random_double() * (double)(settings->spread_ns / UPROF_NS_PER_MS)));
}

/* @code: (inout): an error of the store */
static void
push_all(const UprofPushSettings *settings, GArray *results, UprofErrorCode *code)
{
    g_autoptr(UprofCatalog) catalog = uprof_catalog_new(settings->store, settings->notices, code);
    g_autoptr(UprofStoredRounds) rounds = uprof_stored_rounds_new(catalog);
    const guint n = settings->destinations->len;
    const guint first = n > 1 ? (guint)g_random_int_range(0, (gint32)n) : 0;

    /* each comes first in some runs, so that one that takes long does not starve the others */
    for (guint k = 0; k < n; k++) {
        const guint i = (first + k) % n;
        push_to(settings, g_ptr_array_index(settings->destinations, i), rounds,
                &g_array_index(results, UprofPushResult, i));
    }
}

GArray *
uprof_push_rounds(const UprofPushSettings *settings, UprofErrorCode *code)
{
    GArray *results = g_array_new(FALSE, FALSE, sizeof(UprofPushResult));

    g_array_set_clear_func(results, clear_result);
    for (guint i = 0; i < settings->destinations->len; i++) {
        const UprofDestination *destination = g_ptr_array_index(settings->destinations, i);
        const UprofPushResult result = {
            .name = g_strdup(destination->name),
            .url = g_strdup(destination->url),
            .type = uprof_destination_type_name(destination),
            .is_of_run = settings->is_of_run,
        };
        g_array_append_val(results, result);
    }
    spread_start(settings);
    push_all(settings, results, code);
    if (settings->metrics_folder && settings->metrics_folder[0] && !settings->dry_run)
        save_metrics(settings, results);
    return results;
}

UprofErrorCode
uprof_push_code(const GArray *results, bool dry_run)
{
    UprofErrorCode code = UPROF_ERROR_NONE;

    for (guint i = 0; i < results->len; i++) {
        const UprofPushResult *result = &g_array_index(results, UprofPushResult, i);
        const bool is_complete =
            dry_run || (result->n_refused == 0 && result->n_left == 0 && result->n_too_old == 0);
        code = uprof_error_merge(code, result->error ? result->code
                                       : is_complete ? UPROF_ERROR_NONE
                                                     : UPROF_ERROR_FAILED);
    }
    return code;
}
