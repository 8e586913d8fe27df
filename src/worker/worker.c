/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A hostile file may have taken over a worker, so its messages can have any content. The program
 * copies each message and checks its length and its numbers. It gives up a worker that breaks the
 * rules.
 */
#include "uprof/worker.h"

#include "analysis-priv.h"
#include "begin-priv.h"
#include "file-rules-priv.h"
#include "protocol-priv.h"
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
    WAIT_MS = 50,                  /* between two looks at signals and times */
    BATCH_MS = 20,                 /* snapshots of this time go to the workers at once */
    SILENCE_S = 120,               /* without a message, a worker that has work hangs */
    INTERRUPTED_MS = 1500,         /* the same after Ctrl-C */
    END_WAIT_MS = 1000,            /* for the process of a worker, after its channels were closed */
    MESSAGES_MAX = 64,             /* of one worker in a row */
    NOTICES_MAX = 1000,            /* that were not shown yet */
    LINKS_MAX = 64,                /* that were published */
    STACK_BYTES_MAX = 1024 * 1024, /* of a kernel stack */
    MEMORY_MAX_MIB = 2048,
};

typedef struct {
    UprofNoticeKind kind;
    char *text; /* owned */
} Notice;

/* A buffer for any message of a worker, with the alignment that each needs. */
typedef union {
    UprofReadSpan spans[UPROF_READ_SPANS_MAX];
    UprofTranslateAsk translate;
    UprofWindowTell window;
    UprofWorkerCounts counts;
    UprofLinks links;
    uint32_t number;
    uint8_t bytes[UPROF_CHANNEL_BYTES_MAX];
} Input;

struct _UprofWorkers {
    UprofSpawner *spawner;
    GMutex lock;        /* guards the members of all workers, unless they say otherwise */
    GCond changed;      /* a reply is complete, or a worker is dead */
    GPtrArray *workers; /* of UprofWorker, borrowed */
    GThread *thread;
    int wakeup;      /* eventfd: something is new for the thread */
    UprofRing *ring; /* (nullable): borrowed */
    bool is_last;    /* the ring gets no more snapshots */
    bool is_hurried; /* a signal ends the run */
    bool ends;       /* the thread ends */
    Input *input;    /* of the thread */
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
    GArray *notices;   /* of Notice */
    char *last_file;   /* (nullable): safe to print */
    uint64_t heard_ns; /* when the last message came, or the worker got new work */
    bool is_full;      /* there was no room for a snapshot */
    bool is_calling;   /* a call waits for its reply */
    bool has_reply;
    GByteArray *reply;
    char *death; /* (nullable): what happened, once a caller was told */
    bool is_dead;
    const char *why_dead; /* (nullable): literal */
};

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

/* Returns: false if the request breaks the rules; @spans and @bytes: (out) */
static bool
plan_reads(const Input *input, size_t len, uint8_t *into, UprofSpan *spans, unsigned *n,
           size_t *bytes)
{
    *bytes = 0;
    *n = (unsigned)(len / sizeof(input->spans[0]));
    if (len % sizeof(input->spans[0]) != 0 || *n > UPROF_READ_SPANS_MAX)
        return false;
    for (unsigned i = 0; i < *n; i++) {
        const UprofReadSpan *wanted = &input->spans[i];
        if (wanted->len == 0 || wanted->len > UPROF_READ_BYTES_MAX - *bytes)
            return false;
        spans[i] = (UprofSpan){ .gpa = wanted->gpa, .into = into + *bytes, .len = wanted->len };
        *bytes += wanted->len;
    }
    return true;
}

static bool
answer_read(UprofWorker *worker, const Input *input, size_t len)
{
    static uint8_t bytes[UPROF_READ_BYTES_MAX]; /* one thread uses it */
    UprofSpan spans[UPROF_READ_SPANS_MAX];
    UprofReadAnswer answer = { 0 };
    size_t n_bytes;
    unsigned n;

    if (!plan_reads(input, len, bytes, spans, &n, &n_bytes))
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
answer_translate(UprofWorker *worker, const Input *input, size_t len)
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

/* Remembers the file for the message about a worker that dies while it reads the file. */
static void
note_file(UprofWorker *worker, const Input *input, size_t len)
{
    const char *folder = (const char *)input->bytes + sizeof(UprofFileAsk);
    const char *path = folder + strlen(folder) + 1;

    g_free(worker->last_file);
    worker->last_file = uprof_text_quote_slice(
        (UprofSlice){ path, strnlen(path, len - (size_t)(path - (const char *)input->bytes)) });
}

static bool
answer_file(UprofWorker *worker, const Input *input, size_t len)
{
    UprofFileAnswer answer;
    const UprofSlice part = { &answer, sizeof(answer) };

    begin_slow_work(worker);
    const int fd =
        uprof_file_rules_answer(worker->rules, (UprofSlice){ input->bytes, len }, &answer.reason);
    end_slow_work(worker);
    send_answer(worker, &part, 1, &fd, fd >= 0);
    if (fd >= 0) {
        note_file(worker, input, len);
        close(fd);
    }
    return true;
}

static bool
take_notice(UprofWorker *worker, const Input *input, size_t len)
{
    Notice notice = { .kind = (UprofNoticeKind)input->number };
    const size_t head = sizeof(input->number);

    if (len < head || len > head + UPROF_NOTICE_BYTES_MAX || input->number > UPROF_NOTICE_WARNING)
        return false;
    notice.text = uprof_text_quote_slice((UprofSlice){ input->bytes + head, len - head });
    if (worker->notices->len < NOTICES_MAX)
        g_array_append_val(worker->notices, notice);
    else
        g_free(notice.text);
    return true;
}

/* Checks that @links cannot harm the sampler. The sampler copies only memory of that guest by them. */
static bool
are_sound_links(const UprofLinks *links, unsigned n_vcpus)
{
    const uint32_t stack = links->stack_bytes;

    return links->n_vcpus == n_vcpus && stack >= UPROF_CAPTURE_PAGE_BYTES &&
           stack <= STACK_BYTES_MAX && (stack & (stack - 1)) == 0 &&
           links->irq_bytes <= STACK_BYTES_MAX && links->regs_bytes <= stack &&
           links->regs_len <= UPROF_LINKS_REGS_BYTES_MAX &&
           links->regs_cs <= UPROF_LINKS_REGS_BYTES_MAX - sizeof(uint64_t) &&
           links->regs_sp <= UPROF_LINKS_REGS_BYTES_MAX - sizeof(uint64_t) &&
           links->task_len <= UPROF_LINKS_TASK_BYTES_MAX && links->task_from <= INT32_MAX;
}

static bool
take_links(UprofWorker *worker, const Input *input, size_t len)
{
    const UprofLinks *told = &input->links;

    if (len == 0) {
        g_atomic_pointer_set(&worker->links, NULL);
        return true;
    }
    if (len < sizeof(*told) || told->n_vcpus > UPROF_VCPUS_MAX ||
        len != sizeof(*told) + told->n_vcpus * sizeof(told->vcpus[0]) ||
        !are_sound_links(told, worker->n_sizes) || worker->all_links->len >= LINKS_MAX)
        return false;
    UprofLinks *links = g_memdup2(told, len);
    g_ptr_array_add(worker->all_links, links);
    g_atomic_pointer_set(&worker->links, links);
    return true;
}

static bool
take_window(UprofWorker *worker, const Input *input, size_t len)
{
    const UprofWindowTell *tell = &input->window;

    if (len != sizeof(*tell) || tell->vcpu >= worker->n_sizes ||
        tell->wanted < UPROF_WINDOW_BYTES_MIN || tell->wanted > UPROF_SNAPSHOT_BYTES_MAX)
        return false;
    if (worker->sizes)
        g_atomic_int_set(&worker->sizes[tell->vcpu].wanted, tell->wanted);
    return true;
}

static bool
take_counts(UprofWorker *worker, const Input *input, size_t len)
{
    if (len != sizeof(input->counts))
        return false;
    worker->counts = input->counts;
    return true;
}

static bool
take_reply(UprofWorker *worker, const Input *input, size_t len)
{
    const size_t head = sizeof(input->number);

    if (len < head || !worker->is_calling || worker->has_reply ||
        worker->reply->len + (len - head) > UPROF_REPLY_BYTES_MAX)
        return false;
    g_byte_array_append(worker->reply, input->bytes + head, (guint)(len - head));
    worker->has_reply = input->number == 1;
    g_cond_broadcast(&worker->pool->changed);
    return true;
}

static bool
handle_message(UprofWorker *worker, const UprofMessage *message, const Input *input)
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
    case UPROF_TELL_REPLY:
        return take_reply(worker, input, message->len);
    default:
        return false;
    }
}

static void
serve_worker(UprofWorker *worker)
{
    Input *input = worker->pool->input;
    UprofMessage message;

    for (unsigned i = 0; i < MESSAGES_MAX && !worker->is_dead; i++) {
        if (!uprof_channel_receive(worker->requests, &message, input, sizeof(*input))) {
            if (errno != EAGAIN)
                give_up(worker, errno == EPIPE ? NULL : "it broke the rules of its requests");
            return;
        }
        worker->heard_ns = uprof_clock_now_ns();
        if (message.n_fds > 0 || !handle_message(worker, &message, input))
            give_up(worker, "it broke the rules of its requests");
        uprof_message_close(&message);
    }
}

/* Returns: false if the stream of the worker is full */
static bool
send_snapshot(UprofWorker *worker, const UprofSnapshot *snapshot)
{
    const UprofSlice part = { snapshot, uprof_snapshot_bytes(snapshot) };

    if (uprof_channel_send(worker->stream, UPROF_DO_SNAPSHOT, &part, 1, NULL, 0))
        return true;
    if (errno == EAGAIN)
        return false;
    give_up(worker, NULL);
    return true;
}

/*
 * Sends snapshots until the ring is empty.
 *
 * Returns: (nullable): a worker that has no room; it is given up if it hangs
 */
static UprofWorker *
feed_workers(UprofWorkers *workers)
{
    const uint64_t silence_ns =
        workers->is_hurried ? INTERRUPTED_MS * UPROF_NS_PER_MS : SILENCE_S * UPROF_NS_PER_S;
    const UprofSnapshot *snapshot;

    if (!workers->ring)
        return NULL;
    uprof_ring_calm(workers->ring);
    while ((snapshot = uprof_ring_peek(workers->ring))) {
        UprofWorker *worker = snapshot->owner;
        if (!worker->is_dead && !send_snapshot(worker, snapshot)) {
            if (!worker->is_full)
                worker->heard_ns = uprof_clock_now_ns();
            worker->is_full = true;
            if (uprof_clock_now_ns() - worker->heard_ns < silence_ns)
                return worker;
            give_up(worker, "it does not answer");
        }
        worker->is_full = false;
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
    const UprofSpawnPlan spawn_plan = {
        .work = uprof_analysis_run,
        .data = (void *)plan,
        .limits = { .memory_max = (uint64_t)MEMORY_MAX_MIB << 20 },
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
    workers->input = g_new0(Input, 1);
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
uprof_workers_stop(UprofWorkers *workers, bool is_hurried)
{
    g_mutex_lock(&workers->lock);
    workers->is_last = true;
    workers->is_hurried = is_hurried;
    eventfd_write(workers->wakeup, 1);
    while (workers->ring)
        g_cond_wait(&workers->changed, &workers->lock);
    g_mutex_unlock(&workers->lock);
}

/* ---- Calls ---- */

/* Returns: (transfer full): what happened to a dead worker, and which file it read last */
static char *
describe_death(UprofWorker *worker)
{
    g_mutex_lock(&worker->pool->lock);
    g_autofree char *why = g_strdup(worker->why_dead);
    g_autofree char *file = g_strdup(worker->last_file);
    g_mutex_unlock(&worker->pool->lock);
    const int status =
        uprof_spawner_wait(worker->pool->spawner, worker->pid, why ? 0 : END_WAIT_MS);

    worker->pid = 0;
    if (!why)
        why = uprof_spawner_describe_end(status);
    return g_strdup_printf("%s%s%s%s", why ? why : "it has ended",
                           file ? "; the last file that it read is '" : "", file ? file : "",
                           file ? "'" : "");
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

/* Call it with the lock. Returns: false after too long a silence; the worker is then given up */
static bool
check_silence(UprofWorker *worker, uint64_t *interrupted_ns)
{
    const uint64_t now_ns = uprof_clock_now_ns();

    if (*interrupted_ns == 0 && uprof_signal_end_is_pending())
        *interrupted_ns = now_ns;
    if (*interrupted_ns > 0 && now_ns - *interrupted_ns > INTERRUPTED_MS * UPROF_NS_PER_MS)
        give_up(worker, "it was still at work when a signal ended the run");
    else if (now_ns - worker->heard_ns > SILENCE_S * UPROF_NS_PER_S)
        give_up(worker, "it does not answer");
    return !worker->is_dead;
}

/* Sends a message on the stream, when there is room. */
static bool
send_waiting(UprofWorker *worker, uint32_t type, const UprofSlice *parts, unsigned n_parts,
             const int *fds, unsigned n_fds)
{
    uint64_t interrupted_ns = 0;

    while (!uprof_channel_send(worker->stream, type, parts, n_parts, fds, n_fds)) {
        struct pollfd wait = { .fd = worker->stream, .events = POLLOUT };
        const int reason = errno;
        g_mutex_lock(&worker->pool->lock);
        if (reason != EAGAIN)
            give_up(worker, NULL);
        const bool ok = check_silence(worker, &interrupted_ns);
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
    uint64_t interrupted_ns = 0;

    g_mutex_lock(&workers->lock);
    while (!worker->has_reply && check_silence(worker, &interrupted_ns))
        g_cond_wait_until(&workers->changed, &workers->lock,
                          g_get_monotonic_time() + WAIT_MS * G_TIME_SPAN_MILLISECOND);
    GByteArray *reply = worker->has_reply ? g_steal_pointer(&worker->reply) : NULL;
    g_clear_pointer(&worker->reply, g_byte_array_unref);
    worker->is_calling = worker->has_reply = false;
    g_mutex_unlock(&workers->lock);
    return reply;
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
    worker->heard_ns = uprof_clock_now_ns();
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
    UprofOutcome outcome = { .code = UPROF_ERROR_FAILED };

    if (!reply)
        return false;
    if (reply->len >= sizeof(outcome))
        memcpy(&outcome, reply->data, sizeof(outcome));
    if (is_closed)
        *is_closed = outcome.is_closed;
    if (outcome.code == UPROF_ERROR_NONE)
        return true;
    const size_t head = MIN(reply->len, sizeof(outcome));
    g_autofree char *text =
        uprof_text_quote_slice((UprofSlice){ reply->data + head, reply->len - head });
    const bool is_known = outcome.code > 0 && outcome.code <= UPROF_ERROR_EMPTY;
    g_set_error(error, UPROF_ERROR, is_known ? outcome.code : UPROF_ERROR_FAILED, "%s", text);
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

static bool
begin_worker(UprofWorker *worker, const UprofWorkerJob *job, GError **error)
{
    g_autoptr(GByteArray) text = g_byte_array_new();
    g_autoptr(GArray) fds = g_array_new(FALSE, FALSE, sizeof(int));
    UprofBegin begin = {
        .facts = describe_guest(job->guest),
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
        const int fd = uprof_file_fd(output->file);
        g_array_append_val(outputs, named);
        g_array_append_val(fds, fd);
    }
    g_autoptr(GByteArray) message = uprof_begin_pack(&begin);
    if (fds->len > UPROF_CHANNEL_FDS_MAX || message->len > UPROF_CHANNEL_BYTES_MAX / 2) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED, "%s: too many outputs or symbol files",
                    job->shown);
        return false;
    }
    return call_for_outcome(worker, UPROF_CALL_BEGIN, (UprofSlice){ message->data, message->len },
                            (const int *)(const void *)fds->data, fds->len, NULL, error);
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

static void
clear_notice(gpointer data)
{
    g_free(((Notice *)data)->text);
}

UprofWorker *
uprof_worker_new(UprofWorkers *workers, const UprofWorkerJob *job, const UprofFileRules *rules,
                 GError **error)
{
    g_autoptr(UprofWorker) worker = g_new0(UprofWorker, 1);

    worker->pool = workers;
    worker->shown = g_strdup(job->shown);
    worker->requests = worker->stream = -1;
    worker->rules = rules;
    worker->shown_by = job->notices;
    worker->guest = job->guest;
    worker->n_sizes = job->guest->n_vcpus;
    g_mutex_init(&worker->guest_lock);
    worker->all_links = g_ptr_array_new_with_free_func(g_free);
    worker->notices = g_array_new(FALSE, FALSE, sizeof(Notice));
    g_array_set_clear_func(worker->notices, clear_notice);
    if (!spawn_worker(worker, error))
        return NULL;
    g_mutex_lock(&workers->lock);
    g_ptr_array_add(workers->workers, worker);
    g_mutex_unlock(&workers->lock);
    eventfd_write(workers->wakeup, 1);
    return begin_worker(worker, job, error) ? g_steal_pointer(&worker) : NULL;
}

void
uprof_worker_free(UprofWorker *worker)
{
    if (!worker)
        return;
    UprofWorkers *workers = worker->pool;
    g_mutex_lock(&workers->lock);
    while (workers->served == worker)
        g_cond_wait(&workers->changed, &workers->lock);
    g_ptr_array_remove(workers->workers, worker);
    const bool is_dead = worker->is_dead;
    g_mutex_unlock(&workers->lock);
    if (worker->requests >= 0)
        close(worker->requests);
    if (worker->stream >= 0)
        close(worker->stream);
    if (worker->pid > 0)
        uprof_spawner_wait(workers->spawner, worker->pid, is_dead ? 0 : END_WAIT_MS);
    g_ptr_array_unref(worker->all_links);
    g_array_unref(worker->notices);
    g_clear_pointer(&worker->reply, g_byte_array_unref);
    g_mutex_clear(&worker->guest_lock);
    g_free(worker->last_file);
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
