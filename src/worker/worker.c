/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "worker-pool-priv.h"

#include "fetch-report-priv.h"
#include "kept-file-priv.h"
#include "uprof/capture.h"
#include "uprof/clock.h"
#include "uprof/text.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    WAIT_MS = 50,       /* between two checks of time limits */
    OUTPUTS_MAX = 60,   /* of one domain */
    CALL_S = 900,       /* a call never takes longer, unless its caller has another limit */
    END_WAIT_MS = 1000, /* for the process of a worker, after its channels were closed */
};

static const char analyzing[] = "analyzed samples";

/* ---- Calls ---- */

/* Returns: (transfer full): the path in a request for a file, safe to print */
static char *
show_file(GBytes *request)
{
    gsize len;
    const char *bytes = g_bytes_get_data(request, &len);
    const char *folder = bytes + sizeof(UprofFileAsk);
    const char *path = folder + strlen(folder) + 1;

    return uprof_text_quote_slice(
        (UprofSlice){ path, strnlen(path, len - (size_t)(path - bytes)) });
}

/* Returns: (transfer full): how a dead worker ended, and during which work */
static char *
describe_death(UprofWorker *worker)
{
    g_mutex_lock(&worker->pool->lock);
    g_autofree char *why = g_strdup(worker->why_dead);
    g_autofree char *file = worker->reading ? show_file(worker->reading) : NULL;
    g_mutex_unlock(&worker->pool->lock);
    const int status =
        uprof_spawner_wait(worker->pool->spawner, worker->pid, why ? 0 : END_WAIT_MS);

    g_mutex_lock(&worker->pool->lock);
    worker->pid = 0;
    g_mutex_unlock(&worker->pool->lock);
    if (!why)
        why = uprof_spawner_describe_end(status);
    return g_strdup_printf("%s while it %s%s%s", why ? why : "it has ended",
                           file ? "read '" : worker->doing, file ? file : "", file ? "'" : "");
}

static bool
fail_dead(UprofWorker *worker, GError **error)
{
    if (!worker->death)
        worker->death = describe_death(worker);
    g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED,
                "%s: the process that analyzes its samples has failed: %s", worker->shown,
                worker->death);
    return false;
}

/* Sends a message on the stream, when there is room. */
static bool
send_waiting(UprofWorker *worker, uint32_t type, const UprofSlice *parts, unsigned n_parts,
             const int *fds, unsigned n_fds)
{
    while (!uprof_channel_send(worker->stream, type, parts, n_parts, fds, n_fds)) {
        struct pollfd wait = { .fd = worker->stream, .events = POLLOUT };
        const int reason = errno;
        g_mutex_lock(&worker->pool->lock);
        if (reason != EAGAIN)
            uprof_worker_give_up(worker, NULL);
        const bool ok = uprof_worker_check_time(worker);
        g_mutex_unlock(&worker->pool->lock);
        if (!ok)
            return false;
        poll(&wait, 1, WAIT_MS);
    }
    return true;
}

/* Returns: (transfer full) (nullable): the reply; %NULL if the worker is dead */
static GByteArray *
wait_for_reply(UprofWorker *worker)
{
    UprofWorkers *workers = worker->pool;

    g_mutex_lock(&workers->lock);
    while (!worker->has_reply && uprof_worker_check_time(worker))
        g_cond_wait_until(&workers->changed, &workers->lock,
                          g_get_monotonic_time() + WAIT_MS * G_TIME_SPAN_MILLISECOND);
    GByteArray *reply = worker->has_reply ? g_steal_pointer(&worker->reply) : NULL;
    g_clear_pointer(&worker->reply, g_byte_array_unref);
    worker->is_calling = worker->has_reply = false;
    /* these clocks count only the time of calls */
    uprof_own_time_pause(&worker->hurried);
    uprof_own_time_pause(&worker->called);
    if (reply)
        worker->doing = analyzing;
    g_mutex_unlock(&workers->lock);
    return reply;
}

/* Returns: the work of a worker in a call, for the message about its death */
static const char *
name_call(uint64_t call)
{
    static const char *const names[UPROF_N_OWN_CALLS] = {
        [UPROF_CALL_BEGIN] = "read the symbol files",
        [UPROF_CALL_MOVE] = analyzing,
        [UPROF_CALL_SYNC] = analyzing,
        [UPROF_CALL_END] = "looked up inlined functions and lines",
        [UPROF_CALL_SAVE] = "wrote its files",
    };

    return call < UPROF_N_OWN_CALLS ? names[call] : "made a table";
}

/* Calls a function, and waits until it has replied, or the worker is dead. */
static GByteArray *
call_and_wait(UprofWorker *worker, unsigned limit_s, uint64_t call, UprofSlice argument,
              const int *fds, unsigned n_fds)
{
    const UprofCallHead head = { call };
    const UprofSlice parts[] = { { &head, sizeof(head) }, argument };

    g_mutex_lock(&worker->pool->lock);
    worker->is_calling = true;
    worker->call_limit_s = limit_s;
    worker->reply = g_byte_array_new();
    if (!worker->is_dead)
        worker->doing = name_call(call);
    uprof_own_time_start(&worker->heard, worker->pid);
    uprof_own_time_start(&worker->called, worker->pid);
    g_mutex_unlock(&worker->pool->lock);
    send_waiting(worker, UPROF_DO_CALL, parts, G_N_ELEMENTS(parts), fds, n_fds);
    return wait_for_reply(worker);
}

/* @reply: (nullable): of call_and_wait(). Returns: false with an error if there is none */
static bool
check_reply(UprofWorker *worker, const GByteArray *reply, GError **error)
{
    uprof_worker_show_notices(worker);
    return reply || fail_dead(worker, error);
}

static GByteArray *
call_within(UprofWorker *worker, unsigned limit_s, uint64_t call, UprofSlice argument,
            const int *fds, unsigned n_fds, GError **error)
{
    GByteArray *reply = call_and_wait(worker, limit_s, call, argument, fds, n_fds);

    check_reply(worker, reply, error);
    return reply;
}

static GByteArray *
call_worker(UprofWorker *worker, uint64_t call, UprofSlice argument, const int *fds, unsigned n_fds,
            GError **error)
{
    return call_within(worker, CALL_S, call, argument, fds, n_fds, error);
}

/* Calls a function that replies with an UprofOutcome. */
static bool
call_for_outcome(UprofWorker *worker, uint64_t call, UprofSlice argument, const int *fds,
                 unsigned n_fds, bool *is_closed, GError **error)
{
    g_autoptr(GByteArray) reply = call_worker(worker, call, argument, fds, n_fds, error);
    UprofOutcome outcome;
    UprofSlice text;

    if (!reply)
        return false;
    uprof_worker_message_read_outcome((UprofSlice){ reply->data, reply->len }, &outcome, &text);
    if (is_closed)
        *is_closed = outcome.is_closed != 0;
    if (outcome.code == UPROF_ERROR_NONE)
        return true;
    g_autofree char *shown = uprof_text_quote_slice(text);
    g_set_error(error, UPROF_ERROR, outcome.code, "%s", shown);
    return false;
}

bool
uprof_worker_call_within(UprofWorker *worker, unsigned limit_s, unsigned call, UprofSlice argument,
                         GByteArray **reply, GError **error)
{
    *reply = call_within(worker, limit_s, UPROF_N_OWN_CALLS + call, argument, NULL, 0, error);
    return *reply != NULL;
}

bool
uprof_worker_call(UprofWorker *worker, unsigned call, UprofSlice argument, GByteArray **reply,
                  GError **error)
{
    return uprof_worker_call_within(worker, CALL_S, call, argument, reply, error);
}

bool
uprof_worker_call_then(UprofWorker *worker, unsigned call, UprofSlice argument,
                       void (*ended)(void *data), void *data, GByteArray **reply, GError **error)
{
    *reply = call_and_wait(worker, CALL_S, UPROF_N_OWN_CALLS + call, argument, NULL, 0);
    ended(data);
    return check_reply(worker, *reply, error);
}

/* ---- One worker ---- */

static UprofRemoteFacts
describe_guest(const UprofGuest *guest)
{
    return (UprofRemoteFacts){
        .n_vcpus = guest->n_vcpus,
        .slow_reads = guest->slow_reads,
        .translates = uprof_guest_translates(guest),
    };
}

/* Makes the first message for all processes of the domain. */
static void
pack_begin(UprofWorker *worker, const UprofWorkerJob *job)
{
    g_autoptr(GByteArray) text = g_byte_array_new();
    UprofBegin begin = {
        .shown = job->shown,
        .kernel = job->kernel,
        .kernel_hint = job->kernel_hint,
        .metadata_symbols = (GPtrArray *)job->metadata_symbols,
        .metadata_folders = (GPtrArray *)job->metadata_folders,
        .file_names = (GPtrArray *)job->file_names,
        .waits = job->waits,
    };
    g_autoptr(GArray) outputs = g_array_new(FALSE, FALSE, sizeof(UprofBeginOutput));

    uprof_capture_format_run(job->run, UPROF_RUN_AT_START, text);
    g_byte_array_append(text, (const guint8 *)"", 1);
    begin.run_text = (const char *)text->data;
    begin.outputs = outputs;
    for (guint i = 0; i < job->outputs->len; i++) {
        const UprofWorkerOutput *output = &g_array_index(job->outputs, UprofWorkerOutput, i);
        const UprofBeginOutput named = {
            .format = output->format->name,
            .shown = uprof_file_path(output->file),
            .is_stdout = uprof_file_is_stdout(output->file),
            .is_waits = output->is_waits,
        };
        g_array_append_val(outputs, named);
    }
    worker->begin = uprof_begin_pack(&begin);
}

/* Gives the outputs that are still open, and the checkpoints, to the current process. */
static bool
begin_analysis(UprofWorker *worker, GError **error)
{
    UprofBeginState state = {
        .facts = describe_guest(worker->guest),
        .mode = worker->mode,
        .checkpoint = worker->checkpoint,
        .has_kept = worker->kept >= 0 && worker->mode == UPROF_BEGIN_FIRST,
    };
    int fds[UPROF_CHANNEL_FDS_MAX];
    unsigned n_fds = 0;

    if (worker->outputs->len > OUTPUTS_MAX || worker->begin->len > UPROF_CHANNEL_BYTES_MAX / 2) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED, "%s: too many outputs or symbol files",
                    worker->shown);
        return false;
    }
    for (guint i = 0; i < worker->outputs->len; i++) {
        const UprofWorkerOutput *output = &g_array_index(worker->outputs, UprofWorkerOutput, i);
        if (!output->file)
            continue;
        state.outputs |= UINT64_C(1) << i;
        fds[n_fds++] = uprof_file_fd(output->file);
    }
    for (unsigned i = 0; i < UPROF_N_CHECKPOINTS; i++)
        fds[n_fds++] = worker->checkpoints[i];
    if (state.has_kept)
        fds[n_fds++] = worker->kept;
    uprof_begin_set_state(worker->begin, &state);
    return call_for_outcome(worker, UPROF_CALL_BEGIN,
                            (UprofSlice){ worker->begin->data, worker->begin->len }, fds, n_fds,
                            NULL, error);
}

static bool
spawn_worker(UprofWorker *worker, GError **error)
{
    int requests[2], stream[2];

    if (!uprof_channel_new(requests, error))
        return false;
    worker->requests = requests[0];
    if (!uprof_channel_new(stream, error)) {
        close(requests[1]);
        return false;
    }
    worker->stream = stream[0];
    const int theirs[] = { requests[1], stream[1] };
    worker->pid = uprof_spawner_spawn(worker->pool->spawner, theirs, G_N_ELEMENTS(theirs), error);
    for (size_t i = 0; i < G_N_ELEMENTS(theirs); i++)
        close(theirs[i]);
    if (worker->pid <= 0)
        return false;
    /* a worker that hangs must not make this process hang */
    return (fcntl(worker->requests, F_SETFL, O_NONBLOCK) == 0 &&
            fcntl(worker->stream, F_SETFL, O_NONBLOCK) == 0) ||
           uprof_error_fail_errno(error, "no channel to another process");
}

/* Starts a process for the domain, and serves it from now on. */
static bool
start_worker(UprofWorker *worker, GError **error)
{
    UprofWorkers *workers = worker->pool;

    if (!spawn_worker(worker, error))
        return false;
    g_mutex_lock(&workers->lock);
    g_ptr_array_add(workers->workers, worker);
    g_mutex_unlock(&workers->lock);
    eventfd_write(workers->wakeup, 1);
    if (!begin_analysis(worker, error))
        return false;
    g_mutex_lock(&workers->lock);
    worker->is_ready = true;
    worker->ready_ns = uprof_clock_now_ns();
    worker->is_calm = false;
    g_mutex_unlock(&workers->lock);
    return true;
}

/* Ends the process of a worker. The thread does not use the worker any more. */
static void
stop_worker(UprofWorker *worker)
{
    UprofWorkers *workers = worker->pool;

    g_mutex_lock(&workers->lock);
    workers->n_waits++;
    while (workers->served == worker)
        g_cond_wait(&workers->served_other, &workers->lock);
    workers->n_waits--;
    g_ptr_array_remove(workers->workers, worker);
    worker->is_ready = false;
    g_mutex_unlock(&workers->lock);
    if (worker->requests >= 0)
        close(worker->requests);
    if (worker->stream >= 0)
        close(worker->stream);
    worker->requests = worker->stream = -1;
    if (worker->pid > 0)
        uprof_spawner_wait(workers->spawner, worker->pid, worker->is_dead ? 0 : END_WAIT_MS);
    worker->pid = 0;
}

static bool
make_checkpoints(UprofWorker *worker, GError **error)
{
    for (unsigned i = 0; i < UPROF_N_CHECKPOINTS; i++) {
        worker->checkpoints[i] = uprof_checkpoint_new(error);
        if (worker->checkpoints[i] < 0)
            return false;
    }
    return true;
}

static void
clear_notice(gpointer data)
{
    g_free(((UprofWorkerNotice *)data)->text);
}

/* Forgets the process of a worker that has died. Its counts since the last checkpoint are lost. */
static void
forget_process(UprofWorker *worker)
{
    g_mutex_lock(&worker->pool->lock);
    worker->lost += worker->counts.samples - MIN(worker->saved, worker->counts.samples);
    worker->counts.samples = worker->saved;
    if (worker->reading) {
        g_clear_pointer(&worker->refused, g_bytes_unref);
        worker->refused = g_steal_pointer(&worker->reading);
    }
    /* the sampler may still use the old links, which exist until the worker is freed */
    g_atomic_pointer_set(&worker->links, NULL);
    uprof_chains_clear(&worker->chains);
    worker->is_dead = worker->is_full = worker->is_ready = false;
    worker->why_dead = NULL;
    worker->heard = worker->hurried = worker->called = worker->asked = (UprofOwnTime){ 0 };
    worker->is_asked = false;
    g_clear_pointer(&worker->death, g_free);
    g_mutex_unlock(&worker->pool->lock);
}

/* The rules of an earlier run may have made the process die. */
static void
forget_rules(UprofWorker *worker)
{
    if (worker->kept < 0)
        return;
    close(worker->kept);
    worker->kept = -1;
    uprof_kept_file_forget(worker->uuid);
}

/* Replaces the process of a worker that has died. @next: its next work, for a notice */
static bool
replace_process(UprofWorker *worker, UprofBeginMode mode, const char *next, GError **error)
{
    g_autoptr(GError) failure = NULL;

    fail_dead(worker, &failure);
    stop_worker(worker);
    forget_rules(worker);
    worker->mode = mode;
    forget_process(worker);
    g_autofree char *losses =
        worker->lost > 0 ? g_strdup_printf("; %" G_GUINT64_FORMAT " samples are lost", worker->lost)
                         : g_strdup("");
    uprof_notice(worker->shown_by, UPROF_NOTICE_WARNING, "%s; %s%s", failure->message, next,
                 losses);
    return start_worker(worker, error);
}

/* Empties the captures, because the first process may have written to them. */
static bool
restart_captures(const UprofWorker *worker, GError **error)
{
    for (guint i = 0; i < worker->outputs->len; i++) {
        const UprofWorkerOutput *output = &g_array_index(worker->outputs, UprofWorkerOutput, i);
        if (output->format->is_capture && !uprof_file_restart(output->file, error))
            return false;
    }
    return true;
}

UprofWorker *
uprof_worker_new(UprofWorkers *workers, const UprofWorkerJob *job, const UprofFileRules *rules,
                 GError **error)
{
    g_autoptr(UprofWorker) worker = g_new0(UprofWorker, 1);
    g_autoptr(GError) failure = NULL;

    worker->pool = workers;
    worker->shown = g_strdup(job->shown);
    worker->requests = worker->stream = worker->saving = -1;
    for (unsigned i = 0; i < UPROF_N_CHECKPOINTS; i++)
        worker->checkpoints[i] = -1;
    worker->rules = rules;
    worker->outputs = job->outputs;
    worker->shown_by = job->notices;
    worker->doing = analyzing;
    worker->checkpoint = -1;
    worker->uuid = g_strdup(job->run->uuid);
    worker->kept = uprof_kept_file_open(worker->uuid);
    worker->guest = job->guest;
    worker->n_sizes = job->guest->n_vcpus;
    g_mutex_init(&worker->guest_lock);
    worker->all_links = g_ptr_array_new_with_free_func(g_free);
    worker->notices = g_array_new(FALSE, FALSE, sizeof(UprofWorkerNotice));
    g_array_set_clear_func(worker->notices, clear_notice);
    if (!make_checkpoints(worker, error))
        return NULL;
    pack_begin(worker, job);
    if (start_worker(worker, &failure))
        return g_steal_pointer(&worker);
    /* if a file cannot be parsed, the domain is sampled without it */
    if (!uprof_worker_is_dead(worker) || uprof_worker_is_hurried(worker)) {
        g_propagate_error(error, g_steal_pointer(&failure));
        return NULL;
    }
    return restart_captures(worker, error) &&
                   replace_process(worker, UPROF_BEGIN_AGAIN, "trying again", error)
               ? g_steal_pointer(&worker)
               : NULL;
}

bool
uprof_worker_continue(UprofWorker *worker, GError **error)
{
    g_mutex_lock(&worker->pool->lock);
    const bool is_reading = worker->reading != NULL;
    g_mutex_unlock(&worker->pool->lock);

    return replace_process(worker, UPROF_BEGIN_CONTINUE,
                           is_reading ? "continuing without that file" : "continuing", error);
}

bool
uprof_worker_rescue(UprofWorker *worker, GError **error)
{
    /* without a checkpoint there is nothing to save */
    if (worker->checkpoint < 0)
        return fail_dead(worker, error);
    return replace_process(worker, UPROF_BEGIN_SAVE, "saving what was counted before", error);
}

uint64_t
uprof_worker_lost(UprofWorker *worker)
{
    g_mutex_lock(&worker->pool->lock);
    const uint64_t lost = worker->lost;
    g_mutex_unlock(&worker->pool->lock);
    return lost;
}

void
uprof_worker_free(UprofWorker *worker)
{
    if (!worker)
        return;
    stop_worker(worker);
    for (unsigned i = 0; i < UPROF_N_CHECKPOINTS; i++)
        if (worker->checkpoints[i] >= 0)
            close(worker->checkpoints[i]);
    if (worker->kept >= 0)
        close(worker->kept);
    g_clear_pointer(&worker->begin, g_byte_array_unref);
    g_clear_pointer(&worker->reading, g_bytes_unref);
    g_clear_pointer(&worker->refused, g_bytes_unref);
    g_ptr_array_unref(worker->all_links);
    g_array_unref(worker->notices);
    g_clear_pointer(&worker->reply, g_byte_array_unref);
    g_mutex_clear(&worker->guest_lock);
    g_free(worker->death);
    g_free(worker->uuid);
    g_free(worker->shown);
    g_free(worker);
}

bool
uprof_worker_take(UprofWorker *worker, const UprofSnapshot *snapshot)
{
    UprofSlice parts[2];

    g_mutex_lock(&worker->pool->lock);
    uprof_own_time_start(&worker->heard, worker->pid); /* the worker was idle before */
    g_mutex_unlock(&worker->pool->lock);
    uprof_pack_snapshot(snapshot, parts);
    return send_waiting(worker, UPROF_DO_SNAPSHOTS, parts, G_N_ELEMENTS(parts), NULL, 0);
}

bool
uprof_worker_move(UprofWorker *worker, UprofGuest *guest, GError **error)
{
    const UprofRemoteFacts facts = describe_guest(guest);

    /* messages from before the move are checked by the old number of vCPUs */
    if (!uprof_worker_sync(worker, error))
        return false;
    g_mutex_lock(&worker->guest_lock);
    worker->guest = guest;
    g_mutex_unlock(&worker->guest_lock);
    g_mutex_lock(&worker->pool->lock);
    worker->sizes = NULL;
    worker->n_sizes = guest->n_vcpus;
    g_mutex_unlock(&worker->pool->lock);
    return call_for_outcome(worker, UPROF_CALL_MOVE, (UprofSlice){ &facts, sizeof(facts) }, NULL, 0,
                            NULL, error);
}

bool
uprof_worker_sync(UprofWorker *worker, GError **error)
{
    return call_for_outcome(worker, UPROF_CALL_SYNC, (UprofSlice){ 0 }, NULL, 0, NULL, error);
}

/* ---- Files that arrive late ---- */

static bool
gives_up_files(void *data)
{
    UprofWorker *worker = data;

    return uprof_worker_is_hurried(worker) || uprof_worker_is_dead(worker);
}

/* Waits until the worker knows all files that have arrived. Returns: false if the worker is dead */
static bool
tell_all_files(UprofWorker *worker)
{
    UprofFetcher *fetcher = worker->pool->fetcher;
    const char *build_id;

    for (;;) {
        g_mutex_lock(&worker->pool->lock);
        build_id = uprof_fetcher_arrived(fetcher, worker->n_told);
        worker->n_told += build_id != NULL;
        g_mutex_unlock(&worker->pool->lock);
        if (!build_id)
            return uprof_worker_sync(worker, NULL);
        const UprofSlice part = { build_id, strlen(build_id) + 1 };
        if (!send_waiting(worker, UPROF_DO_FILE, &part, 1, NULL, 0))
            return false;
    }
}

/* Says how many files were fetched, if that has changed since the last domain. */
static void
report_files(UprofWorker *worker)
{
    UprofWorkers *workers = worker->pool;
    UprofFetchCounts counts;

    uprof_fetcher_counts(workers->fetcher, &counts);
    const unsigned n = counts.n_asked + counts.n_found + counts.n_missing + counts.n_failed;
    g_free(counts.why_failed);
    if (n != workers->n_reported)
        uprof_fetch_report(workers->fetcher, worker->shown_by);
    workers->n_reported = n;
}

/* A program that arrives may make the worker ask for its debug file. */
static void
wait_for_files(UprofWorker *worker)
{
    UprofFetcher *fetcher = worker->pool->fetcher;
    bool is_idle;

    if (uprof_fetcher_is_busy(fetcher) && uprof_fetcher_has_time(fetcher))
        uprof_notice(
            worker->shown_by, UPROF_NOTICE_HINT,
            "%s: waiting up to %d s for symbol files from debuginfod; Ctrl-C ends the wait",
            worker->shown, UPROF_FETCH_WAIT_S);
    do
        is_idle = uprof_fetcher_wait(fetcher, gives_up_files, worker);
    while (!gives_up_files(worker) && tell_all_files(worker) && is_idle &&
           uprof_fetcher_is_busy(fetcher));
}

/* A run without outputs, such as that of `top`, needs no more names at its end. */
static void
take_late_files(UprofWorker *worker)
{
    if (!worker->pool->fetcher || worker->mode == UPROF_BEGIN_SAVE || worker->outputs->len == 0)
        return;
    if (!gives_up_files(worker))
        wait_for_files(worker);
    report_files(worker);
}

bool
uprof_worker_end(UprofWorker *worker, const UprofRun *run, UprofWorkerCounts *counts,
                 GError **error)
{
    g_autoptr(GByteArray) text = g_byte_array_new();

    uprof_worker_set_walks(worker, false);
    take_late_files(worker);

    const UprofEndHead head = { uprof_worker_is_hurried(worker) };
    g_byte_array_append(text, (const guint8 *)&head, sizeof(head));
    uprof_capture_format_run(run, UPROF_RUN_AT_END, text);
    g_autoptr(GByteArray) reply =
        call_worker(worker, UPROF_CALL_END, (UprofSlice){ text->data, text->len }, NULL, 0, error);
    if (!reply || reply->len != sizeof(*counts)) {
        uprof_worker_counts(worker, counts);
        return false;
    }
    memcpy(counts, reply->data, sizeof(*counts));
    if (worker->kept >= 0)
        uprof_kept_file_save(worker->kept, worker->uuid);
    return true;
}

static void
set_saving(UprofWorker *worker, int output)
{
    g_mutex_lock(&worker->pool->lock);
    worker->saving = output;
    g_mutex_unlock(&worker->pool->lock);
}

bool
uprof_worker_save(UprofWorker *worker, unsigned i, bool *is_closed, GError **error)
{
    const uint32_t number = i;

    *is_closed = false;
    set_saving(worker, uprof_file_fd(g_array_index(worker->outputs, UprofWorkerOutput, i).file));
    const bool ok =
        call_for_outcome(worker, UPROF_CALL_SAVE, (UprofSlice){ &number, sizeof(number) }, NULL, 0,
                         is_closed, error);
    set_saving(worker, -1);
    return ok;
}

void
uprof_worker_counts(UprofWorker *worker, UprofWorkerCounts *counts)
{
    g_mutex_lock(&worker->pool->lock);
    *counts = worker->counts;
    g_mutex_unlock(&worker->pool->lock);
}

const UprofLinks **
uprof_worker_links(UprofWorker *worker)
{
    return &worker->links;
}

const UprofChains *
uprof_worker_chains(UprofWorker *worker)
{
    return &worker->chains;
}

void
uprof_worker_set_sizes(UprofWorker *worker, UprofWindowSize *sizes, unsigned n_vcpus)
{
    g_mutex_lock(&worker->pool->lock);
    worker->sizes = sizes;
    worker->n_sizes = n_vcpus;
    g_mutex_unlock(&worker->pool->lock);
}

void
uprof_worker_set_walks(UprofWorker *worker, bool walks)
{
    g_mutex_lock(&worker->pool->lock);
    worker->walks = walks;
    g_mutex_unlock(&worker->pool->lock);
}

void
uprof_worker_show_notices(UprofWorker *worker)
{
    g_autoptr(GArray) notices = g_array_new(FALSE, FALSE, sizeof(UprofWorkerNotice));

    g_array_set_clear_func(notices, clear_notice);
    g_mutex_lock(&worker->pool->lock);
    GArray *said = worker->notices;
    worker->notices = g_steal_pointer(&notices);
    g_mutex_unlock(&worker->pool->lock);
    notices = said;
    for (guint i = 0; i < notices->len; i++) {
        const UprofWorkerNotice *notice = &g_array_index(notices, UprofWorkerNotice, i);
        uprof_notice(worker->shown_by, notice->kind, "%s", notice->text);
    }
}

bool
uprof_worker_is_dead(UprofWorker *worker)
{
    g_mutex_lock(&worker->pool->lock);
    const bool is_dead = worker->is_dead;
    g_mutex_unlock(&worker->pool->lock);
    return is_dead;
}
