/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <glib.h>
#include <glib/gstdio.h>
#include <poll.h>
#include <signal.h>
#include <string.h>

#include "../../../src/worker/worker-pool-priv.h"
#include "memory-guest.h"
#include "symbol-elf.h"
#include "uprof/clock.h"
#include "uprof/worker.h"

enum {
    N_SLOTS = 64,
    CODE = 0x1000,
    STACK = 0x8000,
    WINDOW_BYTES = 0x1000,
    RAM_LEN = 0x10000,
    APART_S = 6, /* what is remembered of memory is older in the next snapshot */
    N_WANTED = 4,
    READ_MS = 20, /* the worker waits so long for each answer */
    LIMIT_S = 60,
    N_KILLS = 10,
    N_HUNG = 3,
    N_SYMBOLS = 400 * 1000, /* the worker needs some tenths of a second to read so many */
    COUNT_MS = 20, /* between two looks at the counts, which take the lock of the workers' thread */
};

/* The guest, and all that a worker needs. */
typedef struct {
    MemoryGuest *guest;
    UprofRun *run;
    GPtrArray *no_names;
    GArray *no_outputs;
    UprofFileRules *rules;
    GPtrArray *files; /* of UprofSymbolFile */
    char *folder;
    GString *said; /* the notices of the worker, a line each */
    UprofNotices notices;
    uint64_t time_ns; /* of the last snapshot */
} Fixture;

static void
note(UprofNoticeKind kind, const char *text, void *data)
{
    g_string_append_printf(((Fixture *)data)->said, "%s\n", text);
}

static void
free_file(gpointer data)
{
    UprofSymbolFile *file = data;

    g_unlink(file->path);
    g_free(file->path);
    g_free(file);
}

static void
slow_reads(MemoryGuest *guest, MemoryCall call, gint n)
{
    if (call == MEMORY_READ)
        g_usleep(READ_MS * 1000);
}

static void
set_up(Fixture *fixture)
{
    const MemoryPlan plan = {
        .n_vcpus = 1, .grain = UPROF_GRAIN_GUEST, .ram_len = RAM_LEN, .arch = "x86_64"
    };

    *fixture = (Fixture){ .guest = memory_guest_open(&plan),
                          .run = uprof_run_new(),
                          .no_names = g_ptr_array_new(),
                          .no_outputs = g_array_new(FALSE, FALSE, sizeof(UprofWorkerOutput)),
                          .rules = uprof_file_rules_new(),
                          .files = g_ptr_array_new_with_free_func(free_file),
                          .folder = g_dir_make_tmp("uprof-test-XXXXXX", NULL),
                          .said = g_string_new(NULL),
                          .notices = { note, fixture } };
    fixture->run->domain = g_strdup("g");
    fixture->run->arch = g_strdup("x86_64");
    fixture->run->vcpus = 1;
    fixture->guest->hook = slow_reads;
    memory_guest_identity(fixture->guest, 0, CODE, STACK, 0);
}

static void
tear_down(Fixture *fixture)
{
    g_ptr_array_unref(fixture->files);
    g_rmdir(fixture->folder);
    g_free(fixture->folder);
    g_string_free(fixture->said, TRUE);
    uprof_file_rules_free(fixture->rules);
    g_array_unref(fixture->no_outputs);
    g_ptr_array_unref(fixture->no_names);
    uprof_run_free(fixture->run);
    memory_guest_close(fixture->guest);
}

static UprofWorker *
add_worker(Fixture *fixture, UprofWorkers *workers)
{
    g_autoptr(GError) error = NULL;
    const UprofWorkerJob job = { .shown = "g",
                                 .guest = &fixture->guest->base,
                                 .run = fixture->run,
                                 .metadata_symbols = fixture->no_names,
                                 .metadata_folders = fixture->no_names,
                                 .outputs = fixture->no_outputs,
                                 .file_names = fixture->no_names,
                                 .notices = &fixture->notices };
    UprofWorker *worker = uprof_worker_new(workers, &job, fixture->rules, &error);

    g_assert_no_error(error);
    return worker;
}

/* A large snapshot, for which the worker has to ask for code. */
static void
fill_slot(Fixture *fixture, UprofSnapshot *slot, UprofWorker *owner)
{
    uprof_snapshot_clear(slot);
    slot->time_ns = fixture->time_ns += APART_S * UPROF_NS_PER_S;
    slot->owner = owner;
    slot->weight = slot->count = 1;
    slot->regs = fixture->guest->regs[0];
    slot->n_windows = 1;
    slot->windows[0] = (UprofWindow){ .gva = STACK, .len = WINDOW_BYTES };
    memset(slot->bytes, 0, WINDOW_BYTES);
}

/* Keeps the ring full until the worker has analyzed @n_wanted snapshots. */
static void
fill_ring(Fixture *fixture, UprofRing *ring, UprofWorker *worker, uint64_t n_wanted)
{
    const uint64_t end_ns = uprof_clock_now_ns() + LIMIT_S * UPROF_NS_PER_S;
    UprofWorkerCounts counts = { 0 };
    UprofSnapshot *slot;

    while (counts.samples < n_wanted) {
        const uint64_t next_ns = uprof_clock_now_ns() + COUNT_MS * UPROF_NS_PER_MS;
        while (uprof_clock_now_ns() < next_ns)
            if (uprof_ring_take(ring, &slot, 1)) {
                fill_slot(fixture, slot, worker);
                uprof_ring_publish(ring, &slot, 1, false);
            }
        uprof_worker_counts(worker, &counts);
        if (uprof_clock_now_ns() >= end_ns)
            g_error("only %" G_GUINT64_FORMAT " snapshots were analyzed", counts.samples);
    }
}

/*
 * Snapshots come faster than the worker can analyze them. It waits for answers to its requests, and
 * they come though its stream is full.
 */
static void
test_full(gconstpointer data)
{
    const bool is_alone = GPOINTER_TO_INT(data) == 1;
    g_autoptr(GError) error = NULL;
    Fixture fixture, other;

    set_up(&fixture);
    set_up(&other);
    const UprofWorkerPlan plan = { .symbols = { .files = fixture.no_names } };
    g_autoptr(UprofWorkers) workers = uprof_workers_new(&plan, &error);
    g_assert_no_error(error);
    g_autoptr(UprofRing) ring = uprof_ring_new(N_SLOTS, &error);
    g_assert_no_error(error);
    UprofWorker *worker = add_worker(&fixture, workers);
    UprofWorker *second = is_alone ? NULL : add_worker(&other, workers);

    uprof_workers_feed(workers, ring, false);
    fill_ring(&fixture, ring, worker, N_WANTED);
    if (is_alone)
        g_assert_cmpuint(uprof_worker_lost(worker), ==, 0);
    uprof_workers_stop(workers);
    g_assert_false(uprof_worker_is_dead(worker));
    uprof_worker_free(worker);
    uprof_worker_free(second);
    tear_down(&other);
    tear_down(&fixture);
}

/* A sampler in a thread of its own, which fills the ring until it is told to end. */
typedef struct {
    Fixture *fixture;
    UprofRing *ring;
    UprofWorker *worker;
    gint ends; /* atomic */
} Sampler;

static gpointer
run_sampler(gpointer data)
{
    Sampler *sampler = data;
    UprofSnapshot *slot;

    while (!g_atomic_int_get(&sampler->ends))
        if (uprof_ring_take(sampler->ring, &slot, 1)) {
            fill_slot(sampler->fixture, slot, sampler->worker);
            uprof_ring_publish(sampler->ring, &slot, 1, false);
        }
    return NULL;
}

/* Kills the process of the worker, and returns when the workers' thread knows it. */
static void
kill_process(UprofWorker *worker)
{
    const uint64_t end_ns = uprof_clock_now_ns() + LIMIT_S * UPROF_NS_PER_S;

    kill(worker->pid, SIGKILL);
    while (!uprof_worker_is_dead(worker)) {
        if (uprof_clock_now_ns() >= end_ns)
            g_error("the end of the process is not seen");
        g_usleep(COUNT_MS * 1000);
    }
}

/* Snapshots keep coming while a worker gets a new process. */
static void
test_replaced(void)
{
    g_autoptr(GError) error = NULL;
    Fixture fixture;

    set_up(&fixture);
    fixture.guest->hook = NULL;
    const UprofWorkerPlan plan = { .symbols = { .files = fixture.no_names } };
    g_autoptr(UprofWorkers) workers = uprof_workers_new(&plan, &error);
    g_assert_no_error(error);
    g_autoptr(UprofRing) ring = uprof_ring_new(N_SLOTS, &error);
    g_assert_no_error(error);
    UprofWorker *worker = add_worker(&fixture, workers);
    Sampler sampler = { .fixture = &fixture, .ring = ring, .worker = worker };

    uprof_workers_feed(workers, ring, false);
    GThread *thread = g_thread_new("sampler", run_sampler, &sampler);
    for (unsigned i = 0; i < N_KILLS; i++) {
        kill_process(worker);
        uprof_worker_continue(worker, &error);
        g_assert_no_error(error);
    }
    g_atomic_int_set(&sampler.ends, 1);
    g_thread_join(thread);
    uprof_workers_stop(workers);
    g_assert_false(uprof_worker_is_dead(worker));
    uprof_worker_free(worker);
    tear_down(&fixture);
}

/* The worker whose process kill_reader() kills. */
static UprofWorker *reader;

/* Kills the process that has asked for the read, and returns when nobody can receive the answer. */
static void
kill_reader(MemoryGuest *guest, MemoryCall call, gint n)
{
    struct pollfd wait = { .fd = reader->requests };

    if (call != MEMORY_READ)
        return;
    kill(reader->pid, SIGKILL);
    if (poll(&wait, 1, LIMIT_S * 1000) != 1 || !(wait.revents & POLLHUP))
        g_error("the process of the worker does not end");
}

/* A worker that dies before it has its answer has broken no rule. */
static void
test_dies_before_answer(void)
{
    g_autoptr(GError) error = NULL;
    const uint64_t end_ns = uprof_clock_now_ns() + LIMIT_S * UPROF_NS_PER_S;
    Fixture fixture;
    UprofSnapshot *slot;

    set_up(&fixture);
    const UprofWorkerPlan plan = { .symbols = { .files = fixture.no_names } };
    g_autoptr(UprofWorkers) workers = uprof_workers_new(&plan, &error);
    g_assert_no_error(error);
    g_autoptr(UprofRing) ring = uprof_ring_new(N_SLOTS, &error);
    g_assert_no_error(error);
    reader = add_worker(&fixture, workers);
    fixture.guest->hook = kill_reader;
    uprof_workers_feed(workers, ring, false);
    while (!uprof_worker_is_dead(reader)) {
        if (uprof_ring_take(ring, &slot, 1)) {
            fill_slot(&fixture, slot, reader);
            uprof_ring_publish(ring, &slot, 1, false);
        }
        if (uprof_clock_now_ns() >= end_ns)
            g_error("the worker reads nothing");
    }
    uprof_workers_stop(workers);
    g_assert_cmpstr(reader->why_dead, ==, NULL);
    uprof_worker_free(reader);
    tear_down(&fixture);
}

/* Makes a symbol file that the worker may read. */
static void
add_symbol_file(Fixture *fixture)
{
    static const uint8_t code[64] = { 0xc3 };
    g_autofree ElfSymbol *symbols = g_new0(ElfSymbol, N_SYMBOLS);
    g_autoptr(GStringChunk) names = g_string_chunk_new(1 << 20);
    UprofSymbolFile *file = g_new0(UprofSymbolFile, 1);

    for (size_t i = 0; i < N_SYMBOLS; i++) {
        g_autofree char *name = g_strdup_printf("function_%zu", i);
        symbols[i] = (ElfSymbol){ .name = g_string_chunk_insert(names, name),
                                  .start = 0x100000 + i % sizeof(code),
                                  .size = 1 };
    }
    const ElfPlan plan = { .text_gva = 0x100000,
                           .text = code,
                           .text_len = sizeof(code),
                           .symbols = symbols,
                           .n_symbols = N_SYMBOLS };
    file->path = g_build_filename(fixture->folder, "symbols", NULL);
    symbol_elf_write(&plan, file->path);
    g_ptr_array_add(fixture->files, file);
    uprof_file_rules_add_symbols(fixture->rules, file->path);
}

/* Returns: a process that reads a file; 0 if there is none */
static pid_t
find_reader(UprofWorkers *workers)
{
    pid_t process = 0;

    g_mutex_lock(&workers->lock);
    for (guint i = 0; i < workers->workers->len; i++) {
        const UprofWorker *worker = g_ptr_array_index(workers->workers, i);
        if (worker->reading && !worker->is_dead)
            process = worker->pid;
    }
    g_mutex_unlock(&workers->lock);
    return process;
}

/* Kills the first process that reads a file. */
static gpointer
kill_first_reader(gpointer data)
{
    const uint64_t end_ns = uprof_clock_now_ns() + LIMIT_S * UPROF_NS_PER_S;
    pid_t process;

    while ((process = find_reader(data)) == 0)
        if (uprof_clock_now_ns() >= end_ns)
            g_error("no process reads a file");
    kill(process, SIGKILL);
    return NULL;
}

static void
assert_said(const Fixture *fixture, const char *text)
{
    if (!strstr(fixture->said->str, text))
        g_error("no '%s' in: %s", text, fixture->said->str);
}

/* A process that dies while it reads a file is replaced by one that does not get the file. */
static void
test_refused(void)
{
    g_autoptr(GError) error = NULL;
    Fixture fixture;

    set_up(&fixture);
    add_symbol_file(&fixture);
    const UprofWorkerPlan plan = { .symbols = { .files = fixture.files } };
    g_autoptr(UprofWorkers) workers = uprof_workers_new(&plan, &error);
    g_assert_no_error(error);
    GThread *thread = g_thread_new("killer", kill_first_reader, workers);
    UprofWorker *worker = add_worker(&fixture, workers);
    g_thread_join(thread);
    uprof_worker_show_notices(worker);
    assert_said(&fixture, "while it read '");
    assert_said(&fixture, "; trying again\n");
    assert_said(&fixture, "; continuing without it\n");
    g_assert_nonnull(worker->refused);

    /* the same during the run */
    g_string_truncate(fixture.said, 0);
    UprofWorker *later = add_worker(&fixture, workers);
    gsize len;
    const void *request = g_bytes_get_data(worker->refused, &len);
    g_mutex_lock(&workers->lock);
    g_assert_null(later->refused);
    uprof_worker_note_reading(later, request, len);
    g_mutex_unlock(&workers->lock);
    kill_process(later);
    g_assert_true(uprof_worker_continue(later, &error));
    g_assert_no_error(error);
    uprof_worker_show_notices(later);
    assert_said(&fixture, "; continuing without that file\n");
    assert_said(&fixture, "; continuing without it\n");
    uprof_worker_free(later);
    uprof_worker_free(worker);
    tear_down(&fixture);
}

/*
 * After Ctrl-C, processes that hang are given up together: when the end of the run has waited for
 * one of them, the others are not waited for again.
 */
static void
test_hung(void)
{
    g_autoptr(GError) error = NULL;
    const uint64_t end_ns = uprof_clock_now_ns() + LIMIT_S * UPROF_NS_PER_S;
    UprofWorker *hung[N_HUNG];
    UprofWorkerCounts counts;
    Fixture fixture;

    set_up(&fixture);
    const UprofWorkerPlan plan = { .symbols = { .files = fixture.no_names } };
    g_autoptr(UprofWorkers) workers = uprof_workers_new(&plan, &error);
    g_assert_no_error(error);
    UprofWorker *well = add_worker(&fixture, workers);
    for (unsigned i = 0; i < N_HUNG; i++) {
        hung[i] = add_worker(&fixture, workers);
        kill(hung[i]->pid, SIGSTOP);
    }
    uprof_workers_hurry(workers);
    for (unsigned i = 0; i < N_HUNG; i++)
        while (!uprof_worker_is_dead(hung[i])) {
            if (uprof_clock_now_ns() >= end_ns)
                g_error("worker %u is not given up", i);
            g_usleep(COUNT_MS * 1000);
        }
    for (unsigned i = 0; i < N_HUNG; i++) {
        g_assert_false(uprof_worker_end(hung[i], fixture.run, &counts, &error));
        g_assert_nonnull(strstr(error->message, "when a signal ended the run"));
        g_clear_error(&error);
        uprof_worker_free(hung[i]);
    }
    g_assert_true(uprof_worker_end(well, fixture.run, &counts, &error));
    g_assert_no_error(error);
    uprof_worker_free(well);
    tear_down(&fixture);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_data_func("/worker-pool/full/alone", GINT_TO_POINTER(1), test_full);
    g_test_add_data_func("/worker-pool/full/of-two", GINT_TO_POINTER(2), test_full);
    g_test_add_func("/worker-pool/replaced", test_replaced);
    g_test_add_func("/worker-pool/dies-before-answer", test_dies_before_answer);
    g_test_add_func("/worker-pool/refused", test_refused);
    g_test_add_func("/worker-pool/hung", test_hung);
    return g_test_run();
}
