/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../../src/run/pause-priv.h"

#include "alloc-watch.h"
#include "memory-guest.h"
#include "uprof/clock.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { RAM_LEN = 0x10000, AT = 0x2000, SHORT_MS = 30, LONG_MS = 400, LIMIT_S = 60 };

#define WORD UINT64_C(0x1122334455667788)

/* Functions of the worker. */
enum { CALL_READ, CALL_READ_LATE, CALL_DIE };

/* The guest, its worker, and what the reads of the worker have met. */
typedef struct {
    MemoryGuest *guest;
    UprofRun *run;
    GPtrArray *no_names;
    GArray *no_outputs;
    UprofFileRules *rules;
    UprofWorkers *workers;
    UprofWorker *worker;
    UprofPauseInput input;
    gint n_held;    /* atomic: reads while the guest was held */
    gint n_running; /* atomic: other reads */
} Fixture;

/* ---- In the worker ---- */

static void
reply_word(UprofAnalysis *analysis, UprofSlice argument, GByteArray *reply)
{
    uint64_t word = 0;
    UprofSpan span = { .gpa = AT, .into = &word, .len = sizeof(word) };

    uprof_guest_read(analysis->guest, UPROF_LANE_WORKER, &span, 1);
    g_byte_array_append(reply, (const guint8 *)&word, sizeof(word));
}

static void
reply_late(UprofAnalysis *analysis, UprofSlice argument, GByteArray *reply)
{
    g_usleep(LONG_MS * 1000);
    reply_word(analysis, argument, reply);
}

static void
die(UprofAnalysis *analysis, UprofSlice argument, GByteArray *reply)
{
    _exit(1);
}

static const UprofAnalysisCall calls[] = {
    [CALL_READ] = reply_word,
    [CALL_READ_LATE] = reply_late,
    [CALL_DIE] = die,
};

/* ---- In the program ---- */

static bool
is_in_hold(void)
{
    return memory_guest_in_hold;
}

static void
count_reads(MemoryGuest *guest, MemoryCall call, gint n)
{
    Fixture *fixture = guest->hook_data;

    if (call == MEMORY_READ)
        g_atomic_int_inc(g_atomic_int_get(&guest->tally->is_held) ? &fixture->n_held
                                                                  : &fixture->n_running);
}

static void
start_worker(Fixture *fixture)
{
    const UprofWorkerPlan plan = {
        .symbols = { .files = fixture->no_names },
        .calls = calls,
        .n_calls = G_N_ELEMENTS(calls),
    };
    const UprofWorkerJob job = { .shown = "g",
                                 .guest = &fixture->guest->base,
                                 .run = fixture->run,
                                 .metadata_symbols = fixture->no_names,
                                 .metadata_folders = fixture->no_names,
                                 .outputs = fixture->no_outputs,
                                 .file_names = fixture->no_names };
    g_autoptr(GError) error = NULL;

    fixture->workers = uprof_workers_new(&plan, &error);
    g_assert_no_error(error);
    fixture->worker = uprof_worker_new(fixture->workers, &job, fixture->rules, &error);
    g_assert_no_error(error);
}

static void
set_up(Fixture *fixture, UprofGrain grain, unsigned call)
{
    const MemoryPlan plan = { .n_vcpus = 2, .grain = grain, .ram_len = RAM_LEN, .arch = "x86_64" };

    *fixture = (Fixture){ .guest = memory_guest_open(&plan),
                          .run = uprof_run_new(),
                          .no_names = g_ptr_array_new(),
                          .no_outputs = g_array_new(FALSE, FALSE, sizeof(UprofWorkerOutput)),
                          .rules = uprof_file_rules_new() };
    fixture->run->domain = g_strdup("g");
    fixture->run->arch = g_strdup("x86_64");
    fixture->run->vcpus = 2;
    memory_guest_put_u64(fixture->guest, AT, WORD);
    start_worker(fixture);
    fixture->guest->hook = count_reads;
    fixture->guest->hook_data = fixture;
    fixture->input = (UprofPauseInput){ .guest = &fixture->guest->base,
                                        .guardian = -1,
                                        .limit_ns = LIMIT_S * UPROF_NS_PER_S,
                                        .worker = fixture->worker,
                                        .call = call };
    alloc_watch_start(is_in_hold);
}

static void
tear_down(Fixture *fixture)
{
    uprof_worker_free(fixture->worker);
    uprof_workers_free(fixture->workers);
    uprof_file_rules_free(fixture->rules);
    g_array_unref(fixture->no_outputs);
    g_ptr_array_unref(fixture->no_names);
    uprof_run_free(fixture->run);
    memory_guest_close(fixture->guest);
}

/* Asserts that the guest was held @n times, runs now, and that no hold has allocated. */
static void
assert_holds(const Fixture *fixture, int n)
{
    const MemoryTally *tally = fixture->guest->tally;

    g_assert_cmpint(tally->holds, ==, n);
    g_assert_cmpint(tally->releases, ==, n);
    g_assert_cmpint(tally->is_held, ==, 0);
    g_assert_false(fixture->guest->base.worker_reads);
    g_assert_cmpint(alloc_watch_count(), ==, 0);
}

static void
assert_word(const UprofPauseResult *result)
{
    const uint64_t word = WORD;

    g_assert_cmpuint(result->reply->len, ==, sizeof(word));
    g_assert_cmpmem(result->reply->data, result->reply->len, &word, sizeof(word));
}

/* Calls the worker, and asserts that the call was made, with its reads in the hold or behind it. */
static void
call_well(Fixture *fixture, UprofPauseEnd end)
{
    const bool is_held = end == UPROF_PAUSE_DONE;
    g_auto(UprofPauseResult) result;
    g_autoptr(GError) error = NULL;

    g_assert_cmpint(uprof_pause_call(&fixture->input, &result, &error), ==, UPROF_OK);
    g_assert_no_error(error);
    g_assert_cmpint(result.end, ==, end);
    assert_word(&result);
    g_assert_cmpint(fixture->n_held, ==, is_held ? 1 : 0);
    g_assert_cmpint(fixture->n_running, ==, is_held ? 0 : 1);
    g_assert_cmpuint(result.held_ns, >, 0);
    assert_holds(fixture, 1);
}

/* The guest is held once, and runs again before uprof_pause_call() returns. */
static void
test_done(void)
{
    Fixture fixture;

    set_up(&fixture, UPROF_GRAIN_GUEST, CALL_READ);
    /* an idle guest is held, too */
    memory_guest_rule(fixture.guest, MEMORY_VET, 1, 1, UPROF_IDLE);
    call_well(&fixture, UPROF_PAUSE_DONE);
    tear_down(&fixture);
}

/* The guest is released when the time is up, although the call goes on. */
static void
test_too_long(void)
{
    Fixture fixture;

    set_up(&fixture, UPROF_GRAIN_GUEST, CALL_READ_LATE);
    fixture.input.limit_ns = SHORT_MS * UPROF_NS_PER_MS;
    call_well(&fixture, UPROF_PAUSE_TOO_LONG);
    tear_down(&fixture);
}

static void
test_signal(void)
{
    Fixture fixture;
    sigset_t one, before;
    int number;

    set_up(&fixture, UPROF_GRAIN_GUEST, CALL_READ_LATE);
    sigemptyset(&one);
    sigaddset(&one, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &one, &before);
    kill(getpid(), SIGTERM);
    call_well(&fixture, UPROF_PAUSE_INTERRUPTED);
    g_assert_cmpint(sigwait(&one, &number), ==, 0);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    tear_down(&fixture);
}

/* Nobody would resume the guest any more if the program died. */
static void
test_no_guardian(void)
{
    Fixture fixture;
    int pair[2];

    g_assert_cmpint(pipe(pair), ==, 0);
    close(pair[1]);
    set_up(&fixture, UPROF_GRAIN_GUEST, CALL_READ_LATE);
    fixture.input.guardian = pair[0];
    call_well(&fixture, UPROF_PAUSE_INTERRUPTED);
    close(pair[0]);
    tear_down(&fixture);
}

static void
assert_fails(Fixture *fixture, UprofErrorCode code, const char *pattern)
{
    g_auto(UprofPauseResult) result;
    g_autoptr(GError) error = NULL;

    g_assert_cmpint(uprof_pause_call(&fixture->input, &result, &error), ==, UPROF_FAILED);
    g_assert_error(error, UPROF_ERROR, (gint)code);
    if (!g_pattern_match_simple(pattern, error->message))
        g_error("'%s' is not '%s'", error->message, pattern);
}

static void
test_worker_dies(void)
{
    Fixture fixture;

    set_up(&fixture, UPROF_GRAIN_GUEST, CALL_DIE);
    assert_fails(&fixture, UPROF_ERROR_FAILED,
                 "g: the process that analyzes its samples has failed*");
    assert_holds(&fixture, 1);
    tear_down(&fixture);
}

static void
test_release_fails(void)
{
    Fixture fixture;

    set_up(&fixture, UPROF_GRAIN_GUEST, CALL_DIE);
    memory_guest_rule(fixture.guest, MEMORY_RELEASE, 1, 1, UPROF_FAILED);
    assert_fails(&fixture, UPROF_ERROR_FAILED, "scripted failure of release");
    g_assert_true(fixture.guest->base.left_held);
    tear_down(&fixture);
}

static void
test_hold_fails(void)
{
    Fixture fixture;

    set_up(&fixture, UPROF_GRAIN_GUEST, CALL_READ);
    memory_guest_rule(fixture.guest, MEMORY_HOLD, 1, 1, UPROF_FAILED);
    assert_fails(&fixture, UPROF_ERROR_FAILED, "scripted failure of hold");
    g_assert_cmpint(fixture.n_held + fixture.n_running, ==, 0);
    assert_holds(&fixture, 0);
    tear_down(&fixture);
}

/* Without a hold the worker is not called: somebody else has paused the guest, or it has ended. */
static void
test_not_held(void)
{
    static const struct {
        MemoryCall call;
        UprofAnswer answer;
    } cases[] = {
        { MEMORY_VET, UPROF_BUSY },
        { MEMORY_VET, UPROF_GONE },
        { MEMORY_HOLD, UPROF_BUSY },
        { MEMORY_HOLD, UPROF_GONE },
    };
    Fixture fixture;

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_auto(UprofPauseResult) result;
        g_autoptr(GError) error = NULL;
        set_up(&fixture, UPROF_GRAIN_GUEST, CALL_READ);
        memory_guest_rule(fixture.guest, cases[i].call, 1, 1, cases[i].answer);
        g_assert_cmpint(uprof_pause_call(&fixture.input, &result, &error), ==, cases[i].answer);
        g_assert_no_error(error);
        g_assert_null(result.reply);
        g_assert_cmpint(fixture.n_held + fixture.n_running, ==, 0);
        assert_holds(&fixture, 0);
        tear_down(&fixture);
    }
}

/* An access method that does not hold the whole guest holds nothing. */
static void
test_other_grain(void)
{
    static const UprofGrain grains[] = { UPROF_GRAIN_VCPU, UPROF_GRAIN_NONE };
    Fixture fixture;

    for (size_t i = 0; i < G_N_ELEMENTS(grains); i++) {
        set_up(&fixture, grains[i], CALL_READ);
        assert_fails(&fixture, UPROF_ERROR_UNSUPPORTED,
                     "access 'memory' cannot hold the whole guest, as --pause asks for");
        g_assert_cmpint(fixture.guest->tally->calls[MEMORY_HOLD], ==, 0);
        assert_holds(&fixture, 0);
        tear_down(&fixture);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/pause/done", test_done);
    g_test_add_func("/pause/too-long", test_too_long);
    g_test_add_func("/pause/signal", test_signal);
    g_test_add_func("/pause/no-guardian", test_no_guardian);
    g_test_add_func("/pause/worker-dies", test_worker_dies);
    g_test_add_func("/pause/release-fails", test_release_fails);
    g_test_add_func("/pause/hold-fails", test_hold_fails);
    g_test_add_func("/pause/not-held", test_not_held);
    g_test_add_func("/pause/other-grain", test_other_grain);
    return g_test_run();
}
