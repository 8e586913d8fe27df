/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A hostile file may have taken over a worker, so its messages can have any content. The program
 * copies each message and checks it (worker-message-priv.h). It gives up a worker that breaks the
 * rules.
 */
#include "uprof/worker.h"

#include "analysis-priv.h"
#include "begin-priv.h"
#include "checkpoint-priv.h"
#include "file-rules-priv.h"
#include "own-time-priv.h"
#include "protocol-priv.h"
#include "worker-message-priv.h"
#include "uprof/capture.h"
#include "uprof/clock.h"
#include "uprof/links.h"
#include "uprof/signal-mask.h"
#include "uprof/text.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    WAIT_MS = 50,          /* between two looks at signals and times */
    BATCH_MS = 20,         /* snapshots of this time go to the workers at once */
    SILENCE_S = 30,        /* of its own time; without a message, a worker then hangs */
    INTERRUPTED_MS = 1200, /* of its own time, in which a worker ends after Ctrl-C */
    SAVING_MS = 500,       /* the same for the process that takes over from a worker */
    FULL_MS = 200,         /* a worker that takes no snapshot for longer loses them */
    OUTPUTS_MAX = 60,      /* of one domain */
    END_WAIT_MS = 1000,    /* for the process of a worker, after its channels were closed */
    MESSAGES_MAX = 64,     /* of one worker in a row */
    NOTICES_MAX = 1000,    /* that were not shown yet */
    LINKS_MAX = 64,        /* that were published */
    MEMORY_FACTOR = 4,     /* all memory of a worker, by its memory for symbols */
};

typedef struct {
    UprofNoticeKind kind;
    char *text; /* owned */
} Notice;

struct _UprofWorkers {
    UprofSpawner *spawner;
    GMutex lock;        /* guards the members of all workers, unless they say otherwise */
    GCond changed;      /* a reply is complete, or a worker is dead */
    GPtrArray *workers; /* of UprofWorker, borrowed */
    GThread *thread;
    int wakeup;              /* eventfd: something is new for the thread */
    UprofRing *ring;         /* (nullable): borrowed */
    bool is_last;            /* the ring gets no more snapshots */
    gint is_hurried;         /* atomic, bool: a signal ends the run */
    bool ends;               /* the thread ends */
    UprofWorkerInput *input; /* of the thread */
    /* (nullable): the thread works for this worker without the lock */
    const UprofWorker *served;
};

struct _UprofWorker {
    UprofWorkers *pool; /* borrowed */
    char *shown;
    pid_t pid;
    int requests; /* channel: the thread alone uses it */
    int stream;   /* channel: does not block */
    const UprofFileRules *rules;
    const UprofNotices *shown_by; /* (nullable) */
    GMutex guest_lock;            /* guards @guest, which the thread reads from */
    UprofGuest *guest;
    UprofWindowSize *sizes; /* (nullable): borrowed; the sampler reads them */
    unsigned n_sizes;
    const UprofLinks *links; /* (nullable): atomic; the sampler reads it */
    GPtrArray *all_links;    /* of UprofLinks: owned */
    UprofWorkerCounts counts;
    GArray *notices;      /* of Notice */
    GBytes *reading;      /* (nullable): the request for the file that it may be parsing */
    GBytes *refused;      /* (nullable): the request for a file that it does not get again */
    UprofOwnTime heard;   /* since the last message came, or the worker got new work */
    UprofOwnTime hurried; /* since it first had to end after Ctrl-C */
    bool is_ready;        /* the analysis has begun: it may get snapshots */
    bool is_full;         /* there was no room for the last snapshot */
    bool is_calling;      /* a call waits for its reply */
    bool has_reply;
    GByteArray *reply;
    const char *doing; /* literal: "analyzed samples", or what the current call does */
    char *death;       /* (nullable): what happened, once a caller was told */
    bool is_dead;
    const char *why_dead; /* (nullable): literal */

    /* For the process that takes over */
    GByteArray *begin;     /* (nullable): the first message, for every process of the domain */
    const GArray *outputs; /* of UprofWorkerOutput: borrowed */
    UprofBeginMode mode;   /* of the current process */
    int checkpoints[UPROF_N_CHECKPOINTS];
    int checkpoint; /* the one that is complete; -1: none */
    uint64_t saved; /* samples in it */
    uint64_t lost;  /* samples that a process had counted when it died, or could not take */
};

static const char analyzing[] = "analyzed samples";

/* ---- The thread that answers ---- */

static void
give_up(UprofWorker *worker, const char *why)
{
    if (worker->is_dead)
        return;
    worker->is_dead = true;
    worker->why_dead = why;
    g_cond_broadcast(&worker->pool->changed);
}

static void
send_answer(UprofWorker *worker, const UprofSlice *parts, unsigned n_parts, const int *fds,
            unsigned n_fds)
{
    /* a worker waits for each answer, so that there is always room for it */
    if (!uprof_channel_send(worker->requests, 0, parts, n_parts, fds, n_fds))
        give_up(worker, "it broke the rules of its requests");
}

/* Does a signal end the run? */
static bool
is_hurried(const UprofWorker *worker)
{
    return g_atomic_int_get(&worker->pool->is_hurried) || uprof_signal_end_is_pending();
}

/* Returns: false if the worker took too long, and was given up */
static bool
check_time(UprofWorker *worker)
{
    const uint64_t hurried_ms = worker->mode == UPROF_BEGIN_SAVE ? SAVING_MS : INTERRUPTED_MS;

    if (worker->hurried.start_ns == 0 && is_hurried(worker))
        uprof_own_time_start(&worker->hurried, worker->pid);
    if (uprof_own_time_is_over(&worker->hurried, hurried_ms * UPROF_NS_PER_MS))
        give_up(worker, "it was still at work when a signal ended the run");
    else if (uprof_own_time_is_over(&worker->heard, SILENCE_S * UPROF_NS_PER_S))
        give_up(worker, "it does not answer");
    return !worker->is_dead;
}

/* A read of a guest or of a file system may take long: the thread does it without the lock. */
static void
begin_slow_work(UprofWorker *worker)
{
    worker->pool->served = worker;
    g_mutex_unlock(&worker->pool->lock);
}

static void
end_slow_work(UprofWorker *worker)
{
    g_mutex_lock(&worker->pool->lock);
    worker->pool->served = NULL;
    g_cond_broadcast(&worker->pool->changed);
}

static bool
answer_read(UprofWorker *worker, const UprofWorkerInput *input, size_t len)
{
    static uint8_t bytes[UPROF_READ_BYTES_MAX]; /* one thread uses it */
    UprofSpan spans[UPROF_READ_SPANS_MAX];
    UprofReadAnswer answer = { 0 };
    size_t n_bytes;
    unsigned n;

    if (!uprof_worker_message_plan_reads(input, len, bytes, spans, &n, &n_bytes))
        return false;
    memset(bytes, 0, n_bytes);
    begin_slow_work(worker);
    g_mutex_lock(&worker->guest_lock);
    uprof_guest_read(worker->guest, UPROF_LANE_WORKER, spans, n);
    g_mutex_unlock(&worker->guest_lock);
    end_slow_work(worker);
    for (unsigned i = 0; i < n; i++)
        answer.missing[i] = spans[i].missing;
    const UprofSlice parts[] = { { &answer, sizeof(answer) }, { bytes, n_bytes } };
    send_answer(worker, parts, G_N_ELEMENTS(parts), NULL, 0);
    return true;
}

static bool
answer_translate(UprofWorker *worker, const UprofWorkerInput *input, size_t len)
{
    const UprofTranslateAsk *ask = &input->translate;
    UprofTranslateAnswer answer = { 0 };
    const UprofSlice part = { &answer, sizeof(answer) };

    begin_slow_work(worker);
    g_mutex_lock(&worker->guest_lock);
    const bool ok = len == sizeof(*ask) && uprof_guest_translates(worker->guest) &&
                    ask->vcpu < worker->guest->n_vcpus;
    if (ok)
        answer.is_mapped = uprof_guest_translate(worker->guest, ask->vcpu, ask->gva, &answer.gpa);
    g_mutex_unlock(&worker->guest_lock);
    end_slow_work(worker);
    if (ok)
        send_answer(worker, &part, 1, NULL, 0);
    return ok;
}

/* Is that the file that the worker's predecessor could not parse? */
static bool
is_refused(const UprofWorker *worker, const UprofWorkerInput *input, size_t len)
{
    gsize refused_len;
    const void *refused = worker->refused ? g_bytes_get_data(worker->refused, &refused_len) : NULL;

    return refused && refused_len == len && memcmp(refused, input->bytes, len) == 0;
}

/* Remembers the file for the case that the worker dies while it parses the file. */
static void
note_reading(UprofWorker *worker, const UprofWorkerInput *input, size_t len)
{
    g_clear_pointer(&worker->reading, g_bytes_unref);
    if (input)
        worker->reading = g_bytes_new(input->bytes, len);
}

static bool
answer_file(UprofWorker *worker, const UprofWorkerInput *input, size_t len)
{
    UprofFileAnswer answer = { .reason = UPROF_FILE_REFUSED };
    const UprofSlice part = { &answer, sizeof(answer) };
    int fd = -1;

    if (!is_refused(worker, input, len)) {
        begin_slow_work(worker);
        fd = uprof_file_rules_answer(worker->rules, (UprofSlice){ input->bytes, len },
                                     &answer.reason);
        end_slow_work(worker);
    }
    send_answer(worker, &part, 1, &fd, fd >= 0);
    if (fd >= 0) {
        note_reading(worker, input, len);
        close(fd);
    }
    return true;
}

static bool
take_notice(UprofWorker *worker, const UprofWorkerInput *input, size_t len)
{
    Notice notice;
    UprofSlice text;

    if (!uprof_worker_message_find_notice(input, len, &notice.kind, &text))
        return false;
    if (worker->notices->len >= NOTICES_MAX)
        return true;
    notice.text = uprof_text_quote_slice(text);
    g_array_append_val(worker->notices, notice);
    return true;
}

static bool
take_links(UprofWorker *worker, const UprofWorkerInput *input, size_t len)
{
    if (len == 0) {
        g_atomic_pointer_set(&worker->links, NULL);
        return true;
    }
    if (!uprof_worker_message_has_links(input, len, worker->n_sizes) ||
        worker->all_links->len >= LINKS_MAX)
        return false;
    UprofLinks *links = g_memdup2(&input->links, len);
    g_ptr_array_add(worker->all_links, links);
    g_atomic_pointer_set(&worker->links, links);
    return true;
}

static bool
take_window(UprofWorker *worker, const UprofWorkerInput *input, size_t len)
{
    if (!uprof_worker_message_has_window(input, len, worker->n_sizes))
        return false;
    if (worker->sizes)
        g_atomic_int_set(&worker->sizes[input->window.vcpu].wanted, input->window.wanted);
    return true;
}

static bool
take_counts(UprofWorker *worker, const UprofWorkerInput *input, size_t len)
{
    if (len != sizeof(input->counts))
        return false;
    worker->counts = input->counts;
    note_reading(worker, NULL, 0);
    return true;
}

static bool
take_checkpoint(UprofWorker *worker, const UprofWorkerInput *input, size_t len)
{
    if (len != sizeof(input->number) || input->number >= UPROF_N_CHECKPOINTS)
        return false;
    worker->checkpoint = (int)input->number;
    worker->saved = worker->counts.samples;
    return true;
}

static bool
take_reply(UprofWorker *worker, const UprofWorkerInput *input, size_t len)
{
    const size_t head = sizeof(input->number);

    if (len < head || !worker->is_calling || worker->has_reply ||
        worker->reply->len + (len - head) > UPROF_REPLY_BYTES_MAX)
        return false;
    g_byte_array_append(worker->reply, input->bytes + head, (guint)(len - head));
    worker->has_reply = input->number == 1;
    note_reading(worker, NULL, 0);
    g_cond_broadcast(&worker->pool->changed);
    return true;
}

static bool
handle_message(UprofWorker *worker, const UprofMessage *message, const UprofWorkerInput *input)
{
    switch (message->type) {
    case UPROF_ASK_READ:
        return answer_read(worker, input, message->len);
    case UPROF_ASK_TRANSLATE:
        return answer_translate(worker, input, message->len);
    case UPROF_ASK_FILE:
        return answer_file(worker, input, message->len);
    case UPROF_TELL_NOTICE:
        return take_notice(worker, input, message->len);
    case UPROF_TELL_LINKS:
        return take_links(worker, input, message->len);
    case UPROF_TELL_WINDOW:
        return take_window(worker, input, message->len);
    case UPROF_TELL_COUNTS:
        return take_counts(worker, input, message->len);
    case UPROF_TELL_CHECKPOINT:
        return take_checkpoint(worker, input, message->len);
    case UPROF_TELL_REPLY:
        return take_reply(worker, input, message->len);
    default:
        return false;
    }
}

static void
serve_worker(UprofWorker *worker)
{
    UprofWorkerInput *input = worker->pool->input;
    UprofMessage message;

    for (unsigned i = 0; i < MESSAGES_MAX && !worker->is_dead; i++) {
        if (!uprof_channel_receive(worker->requests, &message, input, sizeof(*input))) {
            if (errno != EAGAIN)
                give_up(worker, errno == EPIPE ? NULL : "it broke the rules of its requests");
            return;
        }
        if (message.n_fds > 0 || !handle_message(worker, &message, input))
            give_up(worker, "it broke the rules of its requests");
        uprof_own_time_start(&worker->heard, worker->pid);
        uprof_message_close(&message);
    }
}

/* Returns: false if the worker did not get the snapshot; it may be dead now */
static bool
send_snapshot(UprofWorker *worker, const UprofSnapshot *snapshot)
{
    const UprofSlice part = { snapshot, uprof_snapshot_bytes(snapshot) };

    if (uprof_channel_send(worker->stream, UPROF_DO_SNAPSHOT, &part, 1, NULL, 0))
        return true;
    if (errno != EAGAIN)
        give_up(worker, NULL);
    return false;
}

/*
 * Sends a snapshot to its worker. A worker that has no room for long loses the snapshot, so that the
 * workers of other domains get theirs.
 *
 * Returns: false if the worker has no room yet
 */
static bool
hand_over(UprofWorker *worker, const UprofSnapshot *snapshot)
{
    if (worker->is_ready && !worker->is_dead && send_snapshot(worker, snapshot)) {
        worker->is_full = false;
        return true;
    }
    if (!worker->is_full)
        uprof_own_time_start(&worker->heard, worker->pid);
    worker->is_full = true;
    if (worker->is_ready && check_time(worker) &&
        !uprof_own_time_is_over(&worker->heard, FULL_MS * UPROF_NS_PER_MS))
        return false;
    worker->lost += snapshot->count;
    return true;
}

/*
 * Sends snapshots until the ring is empty.
 *
 * Returns: (nullable): a worker that has no room
 */
static UprofWorker *
feed_workers(UprofWorkers *workers)
{
    const UprofSnapshot *snapshot;

    if (!workers->ring)
        return NULL;
    uprof_ring_calm(workers->ring);
    while ((snapshot = uprof_ring_peek(workers->ring))) {
        if (!hand_over(snapshot->owner, snapshot))
            return snapshot->owner;
        uprof_ring_drop(workers->ring);
    }
    return NULL;
}

/* Waits until a worker asks something, or a snapshot is there. @full: (nullable): has no room */
static void
wait_for_work(UprofWorkers *workers, const UprofWorker *full)
{
    const guint n = workers->workers->len;
    g_autofree struct pollfd *waits = g_new0(struct pollfd, n + 3);

    waits[0] = (struct pollfd){ .fd = workers->wakeup, .events = POLLIN };
    waits[1] = (struct pollfd){
        .fd = workers->ring && !full ? uprof_ring_fd(workers->ring) : -1,
        .events = POLLIN,
    };
    waits[2] = (struct pollfd){ .fd = full ? full->stream : -1, .events = POLLOUT };
    for (guint i = 0; i < n; i++) {
        const UprofWorker *worker = g_ptr_array_index(workers->workers, i);
        waits[i + 3] = (struct pollfd){
            .fd = worker->is_dead ? -1 : worker->requests,
            .events = POLLIN,
        };
    }
    g_mutex_unlock(&workers->lock);
    poll(waits, n + 3, full ? WAIT_MS : workers->ring ? BATCH_MS : -1);
    g_mutex_lock(&workers->lock);
}

static void
serve_workers(UprofWorkers *workers)
{
    for (guint i = 0; i < workers->workers->len; i++)
        serve_worker(g_ptr_array_index(workers->workers, i));
}

static gpointer
run_thread(gpointer data)
{
    UprofWorkers *workers = data;
    eventfd_t count;

    g_mutex_lock(&workers->lock);
    while (!workers->ends) {
        eventfd_read(workers->wakeup, &count);
        serve_workers(workers);
        const UprofWorker *full = feed_workers(workers);
        if (workers->is_last && !full) {
            workers->ring = NULL;
            workers->is_last = false;
            g_cond_broadcast(&workers->changed);
        }
        wait_for_work(workers, full);
    }
    g_mutex_unlock(&workers->lock);
    return NULL;
}

/* ---- All workers ---- */

static GThread *
start_thread(UprofWorkers *workers)
{
    sigset_t before;

    uprof_signal_mask_block(&before);
    GThread *thread = g_thread_new("workers", run_thread, workers);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return thread;
}

UprofWorkers *
uprof_workers_new(const UprofWorkerPlan *plan, GError **error)
{
    const uint64_t asked_max = plan->symbols.config.bytes_max;
    const uint64_t symbols_max =
        asked_max > 0 ? asked_max : (uint64_t)UPROF_SYM_BYTES_MAX_MIB << 20;
    const UprofSpawnPlan spawn_plan = {
        .work = uprof_analysis_run,
        .data = (void *)plan,
        .limits = { .memory_max = symbols_max * MEMORY_FACTOR },
    };
    g_autoptr(UprofSpawner) spawner = uprof_spawner_start(&spawn_plan, error);
    const int wakeup = spawner ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1;

    if (!spawner)
        return NULL;
    if (wakeup < 0) {
        uprof_error_fail_errno(error, "no descriptor for the analysis");
        return NULL;
    }
    UprofWorkers *workers = g_new0(UprofWorkers, 1);
    g_mutex_init(&workers->lock);
    g_cond_init(&workers->changed);
    workers->spawner = g_steal_pointer(&spawner);
    workers->workers = g_ptr_array_new();
    workers->wakeup = wakeup;
    workers->input = g_new0(UprofWorkerInput, 1);
    workers->thread = start_thread(workers);
    return workers;
}

void
uprof_workers_free(UprofWorkers *workers)
{
    if (!workers)
        return;
    g_mutex_lock(&workers->lock);
    g_assert(workers->workers->len == 0);
    workers->ends = true;
    g_mutex_unlock(&workers->lock);
    eventfd_write(workers->wakeup, 1);
    g_thread_join(workers->thread);
    uprof_spawner_end(workers->spawner);
    close(workers->wakeup);
    g_ptr_array_unref(workers->workers);
    g_cond_clear(&workers->changed);
    g_mutex_clear(&workers->lock);
    g_free(workers->input);
    g_free(workers);
}

const UprofConfined *
uprof_workers_confined(const UprofWorkers *workers)
{
    return uprof_spawner_confined(workers->spawner);
}

void
uprof_workers_feed(UprofWorkers *workers, UprofRing *ring)
{
    g_mutex_lock(&workers->lock);
    workers->ring = ring;
    g_mutex_unlock(&workers->lock);
    eventfd_write(workers->wakeup, 1);
}

void
uprof_workers_hurry(UprofWorkers *workers)
{
    g_atomic_int_set(&workers->is_hurried, true);
}

void
uprof_workers_stop(UprofWorkers *workers)
{
    g_mutex_lock(&workers->lock);
    workers->is_last = true;
    eventfd_write(workers->wakeup, 1);
    while (workers->ring)
        g_cond_wait(&workers->changed, &workers->lock);
    g_mutex_unlock(&workers->lock);
}

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

/* Returns: (transfer full): what happened to a dead worker, and what it did then */
static char *
describe_death(UprofWorker *worker)
{
    g_mutex_lock(&worker->pool->lock);
    g_autofree char *why = g_strdup(worker->why_dead);
    g_autofree char *file = worker->reading ? show_file(worker->reading) : NULL;
    g_mutex_unlock(&worker->pool->lock);
    const int status =
        uprof_spawner_wait(worker->pool->spawner, worker->pid, why ? 0 : END_WAIT_MS);

    worker->pid = 0;
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
            give_up(worker, NULL);
        const bool ok = check_time(worker);
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
    while (!worker->has_reply && check_time(worker))
        g_cond_wait_until(&workers->changed, &workers->lock,
                          g_get_monotonic_time() + WAIT_MS * G_TIME_SPAN_MILLISECOND);
    GByteArray *reply = worker->has_reply ? g_steal_pointer(&worker->reply) : NULL;
    g_clear_pointer(&worker->reply, g_byte_array_unref);
    worker->is_calling = worker->has_reply = false;
    if (reply)
        worker->doing = analyzing;
    g_mutex_unlock(&workers->lock);
    return reply;
}

/* What a worker does in a call, for the message about its death. */
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

static GByteArray *
call_worker(UprofWorker *worker, uint64_t call, UprofSlice argument, const int *fds, unsigned n_fds,
            GError **error)
{
    const UprofCallHead head = { call };
    const UprofSlice parts[] = { { &head, sizeof(head) }, argument };

    g_mutex_lock(&worker->pool->lock);
    worker->is_calling = true;
    worker->reply = g_byte_array_new();
    if (!worker->is_dead)
        worker->doing = name_call(call);
    uprof_own_time_start(&worker->heard, worker->pid);
    g_mutex_unlock(&worker->pool->lock);
    send_waiting(worker, UPROF_DO_CALL, parts, G_N_ELEMENTS(parts), fds, n_fds);
    GByteArray *reply = wait_for_reply(worker);
    uprof_worker_show_notices(worker);
    if (!reply)
        fail_dead(worker, error);
    return reply;
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
uprof_worker_call(UprofWorker *worker, unsigned call, UprofSlice argument, GByteArray **reply,
                  GError **error)
{
    *reply = call_worker(worker, UPROF_N_OWN_CALLS + call, argument, NULL, 0, error);
    return *reply != NULL;
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
    fcntl(worker->requests, F_SETFL, O_NONBLOCK);
    fcntl(worker->stream, F_SETFL, O_NONBLOCK);
    return worker->pid > 0;
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
    g_mutex_unlock(&workers->lock);
    return true;
}

/* Ends the process of a worker. The thread does not use the worker any more. */
static void
stop_worker(UprofWorker *worker)
{
    UprofWorkers *workers = worker->pool;

    g_mutex_lock(&workers->lock);
    while (workers->served == worker)
        g_cond_wait(&workers->changed, &workers->lock);
    g_ptr_array_remove(workers->workers, worker);
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
    g_free(((Notice *)data)->text);
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
    /* the sampler may still use what this points to, which exists until the worker is freed */
    g_atomic_pointer_set(&worker->links, NULL);
    worker->is_dead = worker->is_full = worker->is_ready = false;
    worker->why_dead = NULL;
    worker->heard = worker->hurried = (UprofOwnTime){ 0 };
    g_clear_pointer(&worker->death, g_free);
    g_mutex_unlock(&worker->pool->lock);
}

/* Replaces the process of a worker that has died. @plan: what the new process does, for a notice */
static bool
replace_process(UprofWorker *worker, UprofBeginMode mode, const char *plan, GError **error)
{
    g_autoptr(GError) failure = NULL;

    fail_dead(worker, &failure);
    stop_worker(worker);
    worker->mode = mode;
    forget_process(worker);
    g_autofree char *losses =
        worker->lost > 0 ? g_strdup_printf("; %" G_GUINT64_FORMAT " samples are lost", worker->lost)
                         : g_strdup("");
    uprof_notice(worker->shown_by, UPROF_NOTICE_WARNING, "%s; %s%s", failure->message, plan,
                 losses);
    return start_worker(worker, error);
}

/* The first process may have written to the captures. */
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
    worker->requests = worker->stream = -1;
    for (unsigned i = 0; i < UPROF_N_CHECKPOINTS; i++)
        worker->checkpoints[i] = -1;
    worker->rules = rules;
    worker->outputs = job->outputs;
    worker->shown_by = job->notices;
    worker->doing = analyzing;
    worker->checkpoint = -1;
    worker->guest = job->guest;
    worker->n_sizes = job->guest->n_vcpus;
    g_mutex_init(&worker->guest_lock);
    worker->all_links = g_ptr_array_new_with_free_func(g_free);
    worker->notices = g_array_new(FALSE, FALSE, sizeof(Notice));
    g_array_set_clear_func(worker->notices, clear_notice);
    if (!make_checkpoints(worker, error))
        return NULL;
    pack_begin(worker, job);
    if (start_worker(worker, &failure))
        return g_steal_pointer(&worker);
    /* a file that cannot be parsed does not keep the domain from being sampled */
    if (!uprof_worker_is_dead(worker) || is_hurried(worker)) {
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
    return replace_process(worker, UPROF_BEGIN_CONTINUE,
                           worker->reading ? "continuing without that file" : "continuing", error);
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
    g_clear_pointer(&worker->begin, g_byte_array_unref);
    g_clear_pointer(&worker->reading, g_bytes_unref);
    g_clear_pointer(&worker->refused, g_bytes_unref);
    g_ptr_array_unref(worker->all_links);
    g_array_unref(worker->notices);
    g_clear_pointer(&worker->reply, g_byte_array_unref);
    g_mutex_clear(&worker->guest_lock);
    g_free(worker->death);
    g_free(worker->shown);
    g_free(worker);
}

bool
uprof_worker_take(UprofWorker *worker, const UprofSnapshot *snapshot)
{
    const UprofSlice part = { snapshot, uprof_snapshot_bytes(snapshot) };

    return send_waiting(worker, UPROF_DO_SNAPSHOT, &part, 1, NULL, 0);
}

bool
uprof_worker_move(UprofWorker *worker, UprofGuest *guest, GError **error)
{
    const UprofRemoteFacts facts = describe_guest(guest);

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

bool
uprof_worker_end(UprofWorker *worker, const UprofRun *run, UprofWorkerCounts *counts,
                 GError **error)
{
    g_autoptr(GByteArray) text = g_byte_array_new();

    const UprofEndHead head = { is_hurried(worker) };
    g_byte_array_append(text, (const guint8 *)&head, sizeof(head));
    uprof_capture_format_run(run, UPROF_RUN_AT_END, text);
    g_autoptr(GByteArray) reply =
        call_worker(worker, UPROF_CALL_END, (UprofSlice){ text->data, text->len }, NULL, 0, error);
    if (!reply || reply->len != sizeof(*counts)) {
        uprof_worker_counts(worker, counts);
        return false;
    }
    memcpy(counts, reply->data, sizeof(*counts));
    return true;
}

bool
uprof_worker_save(UprofWorker *worker, unsigned i, bool *is_closed, GError **error)
{
    const uint32_t number = i;

    *is_closed = false;
    return call_for_outcome(worker, UPROF_CALL_SAVE, (UprofSlice){ &number, sizeof(number) }, NULL,
                            0, is_closed, error);
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

void
uprof_worker_set_sizes(UprofWorker *worker, UprofWindowSize *sizes, unsigned n_vcpus)
{
    g_mutex_lock(&worker->pool->lock);
    worker->sizes = sizes;
    worker->n_sizes = n_vcpus;
    g_mutex_unlock(&worker->pool->lock);
}

void
uprof_worker_show_notices(UprofWorker *worker)
{
    g_autoptr(GArray) notices = g_array_new(FALSE, FALSE, sizeof(Notice));

    g_array_set_clear_func(notices, clear_notice);
    g_mutex_lock(&worker->pool->lock);
    GArray *said = worker->notices;
    worker->notices = g_steal_pointer(&notices);
    g_mutex_unlock(&worker->pool->lock);
    notices = said;
    for (guint i = 0; i < notices->len; i++) {
        const Notice *notice = &g_array_index(notices, Notice, i);
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
