/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A hostile file may have taken over a worker, so its messages can have any content. The thread
 * copies and checks each message (worker-message-priv.h). A worker that breaks the rules counts as
 * dead.
 */
#include "worker-pool-priv.h"

#include "analysis-priv.h"
#include "file-rules-priv.h"
#include "uprof/clock.h"
#include "uprof/priority.h"
#include "uprof/signal-mask.h"
#include "uprof/text-limit.h"
#include "uprof/text.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    STAT_BLOCK_BYTES = 512, /* of st_blocks: stat(3type) */

    /* Limits of a worker's time are of its own time (own-time-priv.h). */
    WAIT_MS = 50,          /* between two checks of these limits */
    BATCH_MS = 20,         /* the longest time for which snapshots are gathered before sending */
    CALM_BATCH_MS = 250,   /* the same, of guests without processes: see find_batch_ms() */
    PROMPT_BATCH_MS = 100, /* the same, if the program uses results during the run */
    BEGIN_MS = 2000,       /* of a worker: then it knows the guest's kernel, if it ever will */
    SILENCE_S = 30,        /* a worker without a message for longer hangs */
    INTERRUPTED_MS = 1200, /* in which a worker must end after Ctrl-C */
    SAVING_MS = 500,       /* the same, for a process that only saves a checkpoint */
    FULL_MS = 200,         /* a worker without room for longer loses snapshots */
    WALK_MS = 50,          /* between two messages that there is time to walk tasks */
    SAVING_MS_A_MIB = 100, /* more time after Ctrl-C, for each MiB of checkpoints */
    MESSAGES_MAX = 64,     /* of one worker in a row ... */
    SERVE_MS = 5,          /* ... and for how long, apart from the last one */
    NOTICES_MAX = 1000,    /* of one worker */
    LINKS_MAX = 64,        /* published links of one worker */
    MEMORY_FACTOR = 4,     /* all memory of a worker, as a multiple of its memory for symbols */
};

/* ---- The thread that answers ---- */

void
uprof_worker_give_up(UprofWorker *worker, const char *why)
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
    /* a worker waits for two answers at most (remote.c), and the buffer has room for both */
    if (!uprof_channel_send(worker->requests, 0, parts, n_parts, fds, n_fds))
        uprof_worker_give_up(worker, errno == EPIPE ? NULL : "it broke the rules of its requests");
}

bool
uprof_worker_is_hurried(const UprofWorker *worker)
{
    return g_atomic_int_get(&worker->pool->is_hurried) || uprof_signal_end_is_pending();
}

/* Returns: MiB of memory that the checkpoints take: a large profile takes long to write */
static uint64_t
checkpoint_mib(const UprofWorker *worker)
{
    uint64_t blocks = 0;
    struct stat info;

    for (unsigned i = 0; i < UPROF_N_CHECKPOINTS; i++)
        if (worker->checkpoints[i] >= 0 && fstat(worker->checkpoints[i], &info) == 0)
            blocks += (uint64_t)info.st_blocks;
    return blocks * STAT_BLOCK_BYTES >> 20;
}

/* Returns: the milliseconds of its own time that the worker has after Ctrl-C */
static uint64_t
hurried_limit_ms(const UprofWorker *worker)
{
    return (worker->mode == UPROF_BEGIN_SAVE ? SAVING_MS : INTERRUPTED_MS) +
           checkpoint_mib(worker) * SAVING_MS_A_MIB;
}

/* Is there a message of the worker that the thread has not read yet? */
static bool
has_message(const UprofWorker *worker)
{
    struct pollfd wait = { .fd = worker->requests, .events = POLLIN };

    return poll(&wait, 1, 0) > 0 && (wait.revents & POLLIN);
}

/* Does the worker wait for the reader of the pipe, or of the terminal, to which it writes? */
static bool
waits_for_reader(const UprofWorker *worker)
{
    struct pollfd wait = { .fd = worker->saving, .events = POLLOUT };

    return worker->saving >= 0 && poll(&wait, 1, 0) == 0;
}

static const char still_at_work[] = "it was still at work when a signal ended the run";

/* Returns: (nullable): why the worker takes too long; literal */
static const char *
find_delay(UprofWorker *worker)
{
    if (uprof_own_time_is_over(&worker->called, worker->call_limit_s * UPROF_NS_PER_S))
        return "one of its tasks took too long";
    if (uprof_own_time_is_over(&worker->hurried, hurried_limit_ms(worker) * UPROF_NS_PER_MS))
        return still_at_work;
    if (worker->pool->served == worker || has_message(worker) ||
        !uprof_own_time_is_over(&worker->heard, SILENCE_S * UPROF_NS_PER_S))
        return NULL;
    return "it does not answer";
}

bool
uprof_worker_check_time(UprofWorker *worker)
{
    if (worker->hurried.start_ns == 0 && uprof_worker_is_hurried(worker))
        uprof_own_time_resume(&worker->hurried, worker->pid);
    const char *delay = worker->is_dead ? NULL : find_delay(worker);
    if (delay && waits_for_reader(worker)) {
        uprof_own_time_start(&worker->heard, worker->pid);
        uprof_own_time_start(&worker->called, worker->pid);
        delay = NULL;
    }
    if (delay)
        uprof_worker_give_up(worker, delay);
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
    /* a broadcast is a system call, even if nobody waits */
    if (worker->pool->n_waits > 0)
        g_cond_broadcast(&worker->pool->served_other);
}

static bool
answer_read(UprofWorker *worker, const UprofWorkerInput *input, size_t len)
{
    static uint8_t bytes[UPROF_READ_BYTES_MAX]; /* one thread uses it */
    UprofSpan spans[UPROF_READ_SPANS_MAX];
    UprofReadAnswer answer = { 0 };
    size_t n_bytes;
    unsigned n;

    if (!uprof_worker_message_list_reads(input, len, bytes, spans, &n, &n_bytes))
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

/* Is this the request for the file with which an earlier process of the worker died? */
static bool
is_refused(const UprofWorker *worker, const UprofWorkerInput *input, size_t len)
{
    gsize refused_len;
    const void *refused = worker->refused ? g_bytes_get_data(worker->refused, &refused_len) : NULL;

    return refused && refused_len == len && memcmp(refused, input->bytes, len) == 0;
}

void
uprof_worker_note_reading(UprofWorker *worker, const UprofWorkerInput *input, size_t len)
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
        fd = uprof_file_rules_answer(worker->rules, worker->pool->fetcher,
                                     (UprofSlice){ input->bytes, len }, &answer.reason);
        end_slow_work(worker);
    }
    send_answer(worker, &part, 1, &fd, fd >= 0);
    if (fd >= 0) {
        uprof_worker_note_reading(worker, input, len);
        close(fd);
    }
    return true;
}

static bool
take_notice(UprofWorker *worker, const UprofWorkerInput *input, size_t len)
{
    UprofWorkerNotice notice;
    UprofSlice text;

    if (!uprof_worker_message_find_notice(input, len, &notice.kind, &text))
        return false;
    if (worker->n_notices >= NOTICES_MAX)
        return true;
    worker->n_notices++;
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
    if (!uprof_worker_message_has_links(input, len, worker->n_sizes))
        return false;
    /* after too many changes of its data, a guest is sampled without links */
    if (worker->all_links->len >= LINKS_MAX) {
        g_atomic_pointer_set(&worker->links, NULL);
        return true;
    }
    UprofLinks *links = g_memdup2(&input->links, len);
    g_ptr_array_add(worker->all_links, links);
    g_atomic_pointer_set(&worker->links, links);
    return true;
}

static bool
take_chain(UprofWorker *worker, const UprofWorkerInput *input, size_t len)
{
    if (!uprof_worker_message_has_chain(input, len))
        return false;
    uprof_chains_set(&worker->chains, input->chain.slot, &input->chain.chain);
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
    uprof_worker_note_reading(worker, NULL, 0);
    return true;
}

static bool
take_answer(UprofWorker *worker)
{
    uprof_own_time_pause(&worker->asked);
    return worker->is_asked;
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

/* A long text and the item with which it has become too long fit into a reply. */
G_STATIC_ASSERT(UPROF_TEXT_LONG_MAX + 16 * 1024 * 1024 <= UPROF_REPLY_BYTES_MAX);

static bool
take_reply(UprofWorker *worker, const UprofWorkerInput *input, size_t len)
{
    const size_t head = sizeof(input->number);

    if (len < head || !worker->is_calling || worker->has_reply ||
        worker->reply->len + (len - head) > UPROF_REPLY_BYTES_MAX)
        return false;
    g_byte_array_append(worker->reply, input->bytes + head, (guint)(len - head));
    worker->has_reply = input->number == 1;
    uprof_worker_note_reading(worker, NULL, 0);
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
    case UPROF_TELL_CHAIN:
        return take_chain(worker, input, message->len);
    case UPROF_TELL_WINDOW:
        return take_window(worker, input, message->len);
    case UPROF_TELL_COUNTS:
        return take_counts(worker, input, message->len);
    case UPROF_TELL_ANSWER:
        return take_answer(worker);
    case UPROF_TELL_CHECKPOINT:
        return take_checkpoint(worker, input, message->len);
    case UPROF_TELL_REPLY:
        return take_reply(worker, input, message->len);
    default:
        return false;
    }
}

/*
 * Serves the messages that are there. A worker that reads much has always one more request, so the
 * time is limited: other workers and the ring wait.
 */
static void
serve_worker(UprofWorker *worker)
{
    const uint64_t end_ns = uprof_clock_now_ns() + SERVE_MS * UPROF_NS_PER_MS;
    UprofWorkerInput *input = worker->pool->input;
    UprofMessage message;

    for (unsigned i = 0; i < MESSAGES_MAX && !worker->is_dead; i++) {
        if (i > 0 && uprof_clock_now_ns() >= end_ns)
            return;
        if (!uprof_channel_receive(worker->requests, &message, input, sizeof(*input))) {
            if (errno != EAGAIN)
                uprof_worker_give_up(worker,
                                     errno == EPIPE ? NULL : "it broke the rules of its requests");
            return;
        }
        if (message.n_fds > 0 || !handle_message(worker, &message, input))
            uprof_worker_give_up(worker, "it broke the rules of its requests");
        uprof_own_time_start(&worker->heard, worker->pid);
        uprof_message_close(&message);
    }
}

static void
serve_workers(UprofWorkers *workers)
{
    for (guint i = 0; i < workers->workers->len; i++)
        serve_worker(g_ptr_array_index(workers->workers, i));
}

/* Tells the workers which files have arrived. A worker without room hears of them later. */
static void
tell_files(UprofWorkers *workers)
{
    for (guint i = 0; workers->fetcher && i < workers->workers->len; i++) {
        UprofWorker *worker = g_ptr_array_index(workers->workers, i);
        const char *build_id;
        while (worker->is_ready && !worker->is_dead &&
               (build_id = uprof_fetcher_arrived(workers->fetcher, worker->n_told))) {
            const UprofSlice part = { build_id, strlen(build_id) + 1 };
            if (!uprof_channel_send(worker->stream, UPROF_DO_FILE, &part, 1, NULL, 0))
                break;
            worker->n_told++;
        }
    }
}

/* Asks a worker for an answer, once. A worker without room is asked again later. */
static void
ask_worker(UprofWorker *worker)
{
    if (worker->is_asked || !worker->is_ready || worker->is_dead)
        return;
    if (worker->asked.start_ns == 0)
        uprof_own_time_start(&worker->asked, worker->pid);
    worker->is_asked = uprof_channel_send(worker->stream, UPROF_DO_ANSWER, NULL, 0, NULL, 0);
    if (!worker->is_asked && errno != EAGAIN)
        uprof_worker_give_up(worker, NULL);
}

/*
 * After Ctrl-C a worker that hangs is given up when its time is over. The times of all workers run
 * side by side, so that a run of many domains does not end later than a run of one.
 */
static void
find_hung_workers(UprofWorkers *workers)
{
    for (guint i = 0; i < workers->workers->len; i++) {
        UprofWorker *worker = g_ptr_array_index(workers->workers, i);
        if (!uprof_worker_is_hurried(worker))
            return;
        ask_worker(worker);
        if (uprof_own_time_is_over(&worker->asked, hurried_limit_ms(worker) * UPROF_NS_PER_MS) &&
            !waits_for_reader(worker))
            uprof_worker_give_up(worker, still_at_work);
    }
}

/* While somebody else has stopped the guest, the time must not count as a wait of its tasks. */
static void
tell_walk(UprofWorker *worker, uint64_t now_ns)
{
    const UprofWalkDo walk = { now_ns, worker->n_pauses };
    const UprofSlice part = { &walk, sizeof(walk) };

    worker->walk_ns = now_ns;
    g_mutex_lock(&worker->guest_lock);
    const gint hindrance = g_atomic_int_get(&worker->guest->hindrance);
    g_mutex_unlock(&worker->guest_lock);
    if (hindrance != UPROF_HINDRANCE_NONE)
        worker->n_pauses++;
    else if (!uprof_channel_send(worker->stream, UPROF_DO_WALK, &part, 1, NULL, 0) &&
             errno != EAGAIN)
        uprof_worker_give_up(worker, NULL);
}

/* Tells the workers that there is time to walk tasks. Call it when the ring is empty. */
static void
tell_walks(UprofWorkers *workers)
{
    for (guint i = 0; i < workers->workers->len; i++) {
        UprofWorker *worker = g_ptr_array_index(workers->workers, i);
        if (!worker->walks || !worker->is_ready || worker->is_dead)
            continue;
        const uint64_t now_ns = uprof_clock_now_ns();
        if (now_ns - worker->walk_ns >= WALK_MS * UPROF_NS_PER_MS)
            tell_walk(worker, now_ns);
    }
}

/*
 * The snapshots at the head of the ring that go to one worker in one message: each message costs as
 * much as the analysis of a snapshot.
 */
typedef struct {
    const UprofSnapshot *snapshots[UPROF_SNAPSHOTS_MAX]; /* borrowed */
    unsigned n;
} Batch;

/* Returns: false if the ring is empty */
static bool
find_batch(UprofRing *ring, Batch *batch)
{
    const size_t n = uprof_ring_peek(ring, batch->snapshots, UPROF_SNAPSHOTS_MAX);
    size_t len = 0;

    for (batch->n = 0; batch->n < n; batch->n++) {
        len += uprof_packed_bytes(batch->snapshots[batch->n]);
        if (batch->n > 0 && len > UPROF_BATCH_BYTES_MAX)
            break;
    }
    return batch->n > 0;
}

/* Returns: false if the worker did not get the snapshots; it may be dead now */
static bool
send_batch(UprofWorker *worker, const Batch *batch)
{
    UprofSlice parts[2 * UPROF_SNAPSHOTS_MAX];

    for (unsigned i = 0; i < batch->n; i++)
        uprof_pack_snapshot(batch->snapshots[i], parts + 2 * (size_t)i);
    if (uprof_channel_send(worker->stream, UPROF_DO_SNAPSHOTS, parts, 2 * batch->n, NULL, 0))
        return true;
    if (errno != EAGAIN)
        uprof_worker_give_up(worker, NULL);
    return false;
}

/*
 * May a worker without room lose snapshots? Other workers wait for theirs, and so does the end of
 * the run. A worker that is alone loses none: they stay in the ring, so that the sampler finds no
 * free slot and does not hold the guest.
 */
static bool
may_lose_snapshots(const UprofWorkers *workers)
{
    unsigned n = 0;

    for (guint i = 0; i < workers->workers->len; i++)
        n += !((const UprofWorker *)g_ptr_array_index(workers->workers, i))->is_dead;
    return workers->is_last || n > 1;
}

/*
 * Sends snapshots to their worker. If the worker has no room for long, the snapshots are lost, so
 * that the workers of other domains need not wait.
 *
 * Returns: false if the worker has no room yet
 */
static bool
hand_over(UprofWorker *worker, const Batch *batch)
{
    if (worker->is_ready && !worker->is_dead && send_batch(worker, batch)) {
        worker->is_full = false;
        return true;
    }
    if (!worker->is_full)
        uprof_own_time_start(&worker->full, worker->pid);
    worker->is_full = true;
    if (worker->is_ready && uprof_worker_check_time(worker) &&
        (!may_lose_snapshots(worker->pool) ||
         !uprof_own_time_is_over(&worker->full, FULL_MS * UPROF_NS_PER_MS)))
        return false;
    for (unsigned i = 0; i < batch->n; i++)
        worker->lost += batch->snapshots[i]->count;
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
    Batch batch;

    if (!workers->ring)
        return NULL;
    uprof_ring_calm(workers->ring);
    while (find_batch(workers->ring, &batch)) {
        UprofWorker *worker = batch.snapshots[0]->owner;
        if (!hand_over(worker, &batch))
            return worker;
        for (unsigned i = 0; i < batch.n; i++)
            uprof_ring_drop(workers->ring);
        /* The worker gets room only if its requests are answered. On a busy host the sampler may
         * fill the ring as fast as this loop empties it, so the requests cannot wait for the end of
         * the loop. Only workers of the list are served, because the process of @worker may just be
         * replaced. */
        if (worker->is_full)
            serve_workers(workers);
    }
    return NULL;
}

/*
 * Each wake-up of this thread and of a worker costs as much as a sample at 99 Hz. But processes
 * end: the sooner a worker looks for their names and files, the more it finds.
 *
 * Returns: the longest time for which snapshots are gathered, in milliseconds
 */
static int
find_batch_ms(UprofWorkers *workers)
{
    for (guint i = 0; i < workers->workers->len; i++) {
        UprofWorker *worker = g_ptr_array_index(workers->workers, i);
        worker->is_calm = worker->is_calm ||
                          uprof_clock_now_ns() - worker->ready_ns >= BEGIN_MS * UPROF_NS_PER_MS;
        if (!worker->is_dead && (worker->walks || worker->links || !worker->is_calm))
            return BATCH_MS;
    }
    return workers->is_prompt ? PROMPT_BATCH_MS : CALM_BATCH_MS;
}

/* Waits for a message of a worker, or for a snapshot. @full: (nullable): a worker without room */
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
    const int most_ms = full || g_atomic_int_get(&workers->is_hurried) ? WAIT_MS
                        : workers->ring                                ? find_batch_ms(workers)
                                                                       : -1;
    g_mutex_unlock(&workers->lock);
    poll(waits, n + 3, most_ms);
    g_mutex_lock(&workers->lock);
}

static gpointer
run_thread(gpointer data)
{
    UprofWorkers *workers = data;
    eventfd_t count;

    uprof_priority_lower();
    g_mutex_lock(&workers->lock);
    while (!workers->ends) {
        eventfd_read(workers->wakeup, &count);
        serve_workers(workers);
        find_hung_workers(workers);
        tell_files(workers);
        const UprofWorker *full = feed_workers(workers);
        if (workers->ring && !full)
            tell_walks(workers);
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
start_thread(UprofWorkers *workers, GError **error)
{
    sigset_t before;

    uprof_signal_mask_block(&before);
    GThread *thread = g_thread_try_new("workers", run_thread, workers, error);
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
        .is_background = true,
        .limits = { .memory_max = symbols_max * MEMORY_FACTOR, .cpu_s = plan->cpu_s },
    };
    g_autoptr(UprofSpawner) spawner = uprof_spawner_start(&spawn_plan, error);
    const int wakeup = spawner ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1;

    if (!spawner)
        return NULL;
    if (wakeup < 0) {
        uprof_error_fail_errno(error, "no descriptor for the analysis");
        return NULL;
    }
    g_autoptr(UprofWorkers) workers = g_new0(UprofWorkers, 1);
    g_mutex_init(&workers->lock);
    g_cond_init(&workers->changed);
    g_cond_init(&workers->served_other);
    workers->spawner = g_steal_pointer(&spawner);
    workers->workers = g_ptr_array_new();
    workers->wakeup = wakeup;
    workers->input = g_new0(UprofWorkerInput, 1);
    workers->fetcher = uprof_fetcher_new(UPROF_FETCH_BACKGROUND);
    workers->thread = start_thread(workers, error);
    return workers->thread ? g_steal_pointer(&workers) : NULL;
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
    if (workers->thread)
        g_thread_join(workers->thread);
    uprof_fetcher_free(workers->fetcher);
    uprof_spawner_end(workers->spawner);
    close(workers->wakeup);
    g_ptr_array_unref(workers->workers);
    g_cond_clear(&workers->changed);
    g_cond_clear(&workers->served_other);
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
uprof_workers_feed(UprofWorkers *workers, UprofRing *ring, bool is_prompt)
{
    g_mutex_lock(&workers->lock);
    workers->is_prompt = is_prompt;
    workers->ring = ring;
    g_mutex_unlock(&workers->lock);
    eventfd_write(workers->wakeup, 1);
}

void
uprof_workers_hurry(UprofWorkers *workers)
{
    g_atomic_int_set(&workers->is_hurried, true);
    eventfd_write(workers->wakeup, 1);
    if (workers->fetcher)
        uprof_fetcher_hurry(workers->fetcher);
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
