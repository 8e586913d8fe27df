/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../../src/backend/tracer-priv.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "alloc-watch.h"
#include "uprof/clock.h"

enum {
    WAIT_MS = 10 * 1000,
    NOBODY = 65534,
    HOLDS = 2000,
    STORM_DELIVERIES = 20,
    STORM_SIGNALS_MAX = 10 * 1000 * 1000,
    THREADS = 300,
    THREAD_COUNT = 100000,
    SLEEP_MS = 200,
};

/* Enough for a running or sleeping thread to stop, even on a loaded machine. */
#define LIMIT_NS (5 * UPROF_NS_PER_S)

/* The limit for threads that do not stop. */
#define SHORT_NS (20 * UPROF_NS_PER_MS)

/* Memory that the test shares with its child. */
typedef struct {
    gint is_ready;
    gint count; /* grows while the child runs */
    gint thread;
    gint other; /* pid of a child of the child; 0: none */
    gint is_done;
    gint result;
    gint code; /* errno after the call */
    gint elapsed_ms;
    gint is_over; /* the sender stops sending */
    gint n_sent;
    gint n_signals;
    gint n_wrong;
    gint word; /* the futex */
} Shared;

/* A child process. It ends with the scope, or with the test program. */
typedef struct {
    pid_t pid;
    int feed; /* write end of the pipe that is the child's descriptor 0 */
    Shared *shared;
} Child;

static const char *why_not; /* reason for which tests cannot trace on this host; NULL: they can */
static bool forbids_allocation;
static unsigned n_stops, n_releases;

static bool
skip_without_tracing(void)
{
    if (why_not)
        g_test_skip(why_not);
    return why_not != NULL;
}

static bool
is_allocation_forbidden(void)
{
    return forbids_allocation;
}

/* Each of the three calls is checked for allocations. */
static UprofTraceAnswer
stop_thread(UprofTracer *tracer, UprofTracee *tracee, uint64_t limit_ns)
{
    const uint64_t before_ns = uprof_clock_now_ns();
    forbids_allocation = true;
    const UprofTraceAnswer answer = uprof_tracee_stop(tracer, tracee, limit_ns);
    forbids_allocation = false;
    n_stops += answer == UPROF_TRACE_STOPPED;
    if (answer == UPROF_TRACE_STOPPED) {
        g_assert_cmpuint(tracee->asked_ns, >=, before_ns);
        g_assert_cmpuint(tracee->asked_ns, <=, uprof_clock_now_ns());
        g_assert_cmpuint(tracee->released_ns, ==, 0);
    }
    g_assert_cmpint(tracee->state == UPROF_TRACEE_STOPPED, ==, answer == UPROF_TRACE_STOPPED);
    g_assert_cmpint(tracee->state == UPROF_TRACEE_LATE, ==, answer == UPROF_TRACE_LATE);
    return answer;
}

static UprofTraceAnswer
release_thread(UprofTracee *tracee)
{
    const bool is_held = tracee->state == UPROF_TRACEE_STOPPED;
    const uint64_t before_ns = uprof_clock_now_ns();
    n_releases += is_held;
    forbids_allocation = true;
    const UprofTraceAnswer answer = uprof_tracee_release(tracee);
    forbids_allocation = false;
    /* released_ns is set even if the thread was killed meanwhile */
    if (is_held) {
        g_assert_cmpuint(tracee->released_ns, >=, before_ns);
        g_assert_cmpuint(tracee->released_ns, <=, uprof_clock_now_ns());
    }
    return answer;
}

static UprofTraceAnswer
release_late(UprofTracee *tracee)
{
    forbids_allocation = true;
    const UprofTraceAnswer answer = uprof_tracee_release_late(tracee);
    forbids_allocation = false;
    return answer;
}

static UprofTraceAnswer
wait_released(UprofTracee *tracee)
{
    UprofTraceAnswer answer = release_late(tracee);

    for (unsigned i = 0; i < WAIT_MS && answer == UPROF_TRACE_LATE; i++) {
        g_usleep(1000);
        answer = release_late(tracee);
    }
    return answer;
}

/* At the end of each test no thread is left stopped, and nothing was allocated. */
static void
clear_tracer(UprofTracer *tracer)
{
    uprof_tracer_clear(tracer);
    g_assert_cmpuint(n_stops, ==, n_releases);
    g_assert_cmpint(alloc_watch_count(), ==, 0);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(UprofTracer, clear_tracer)

static UprofTracer
start_tracer(void)
{
    UprofTracer tracer;

    uprof_tracer_init(&tracer);
    alloc_watch_start(is_allocation_forbidden);
    n_stops = n_releases = 0;
    return tracer;
}

static pid_t
fork_child(void)
{
    const pid_t parent = getpid();
    const pid_t pid = fork();
    sigset_t none;

    g_assert_cmpint(pid, >=, 0);
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    /* with scope 1 of Yama, siblings may trace only with this permission */
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, NULL);
    return 0;
}

static void
clear_child(Child *child)
{
    const pid_t other = g_atomic_int_get(&child->shared->other);

    if (other > 0)
        kill(other, SIGKILL);
    kill(child->pid, SIGKILL);
    waitpid(child->pid, NULL, 0);
    close(child->feed);
    munmap(child->shared, sizeof(Shared));
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Child, clear_child)

static bool
wait_for(gint *word)
{
    for (unsigned i = 0; i < WAIT_MS && !g_atomic_int_get(word); i++)
        g_usleep(1000);
    return g_atomic_int_get(word) != 0;
}

static Child
start_child(void (*run)(Shared *shared))
{
    Child child = { 0 };
    int feed[2];

    child.shared =
        mmap(NULL, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    g_assert_true(child.shared != MAP_FAILED);
    g_assert_cmpint(pipe2(feed, O_CLOEXEC), ==, 0);
    child.pid = fork_child();
    if (child.pid == 0) {
        dup2(feed[0], STDIN_FILENO);
        close(feed[0]);
        close(feed[1]);
        run(child.shared);
        g_atomic_int_set(&child.shared->is_done, 1);
        for (;;)
            pause();
    }
    close(feed[0]);
    child.feed = feed[1];
    g_assert_true(wait_for(&child.shared->is_ready));
    return child;
}

static void
run_busy(Shared *shared)
{
    g_atomic_int_set(&shared->is_ready, 1);
    for (;;)
        g_atomic_int_inc(&shared->count);
}

static bool
is_running(const Child *child)
{
    const gint before = g_atomic_int_get(&child->shared->count);

    for (unsigned i = 0; i < WAIT_MS; i++) {
        if (g_atomic_int_get(&child->shared->count) != before)
            return true;
        g_usleep(1000);
    }
    return false;
}

static void
assert_still(const Child *child, unsigned us)
{
    const gint before = g_atomic_int_get(&child->shared->count);

    g_usleep(us);
    g_assert_cmpint(g_atomic_int_get(&child->shared->count), ==, before);
}

/* Returns: the letter of the state, which /proc/TID/stat has after the last ')'; 0 if unknown */
static char
read_state(pid_t thread)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/stat", thread);
    g_autofree char *text = NULL;

    if (!g_file_get_contents(path, &text, NULL, NULL))
        return 0;
    const char *behind = strrchr(text, ')');
    return behind ? behind[2] : 0;
}

static bool
wait_for_state(pid_t thread, char state)
{
    for (unsigned i = 0; i < WAIT_MS && read_state(thread) != state; i++)
        g_usleep(1000);
    return read_state(thread) == state;
}

static pid_t
read_tracer(pid_t thread)
{
    UprofThreadStatus status;

    g_assert_true(uprof_thread_status(thread, &status));
    return status.tracer;
}

static void
assert_released(const Child *child)
{
    g_assert_cmpint(read_tracer(child->pid), ==, 0);
    g_assert_true(is_running(child));
    g_assert_cmpint(read_state(child->pid), !=, 't');
}

static void
test_busy(void)
{
    if (skip_without_tracing())
        return;
    g_auto(Child) child = start_child(run_busy);
    g_auto(UprofTracer) tracer = start_tracer();
    UprofTracee tracee = { .thread = child.pid };
    sigset_t before, after;

    pthread_sigmask(SIG_SETMASK, NULL, &before);
    for (unsigned i = 0; i < HOLDS; i++) {
        g_assert_cmpint(stop_thread(&tracer, &tracee, LIMIT_NS), ==, UPROF_TRACE_STOPPED);
        g_assert_cmpint(tracee.signal, ==, 0);
        if (i % 100 == 0) {
            g_assert_cmpint(read_tracer(child.pid), ==, gettid());
            assert_still(&child, 1000);
        }
        g_assert_cmpint(release_thread(&tracee), ==, UPROF_TRACE_RELEASED);
        if (i % 100 == 0)
            assert_released(&child);
    }
    g_assert_true(tracer.has_timer);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    for (int number = 1; number <= SIGRTMAX; number++)
        g_assert_cmpint(sigismember(&after, number), ==, sigismember(&before, number));

    /* releasing a thread that runs changes nothing */
    g_assert_cmpint(release_thread(&tracee), ==, UPROF_TRACE_RELEASED);
    g_assert_cmpint(release_late(&tracee), ==, UPROF_TRACE_RELEASED);
}

/* The timer expires before the wait starts, or before the interrupt is sent. */
static void
test_tiny_limits(void)
{
    static const uint64_t limits[] = { 0, 1, 1000, 5000, 10000, 20000, 50000 };
    unsigned n_late = 0;

    if (skip_without_tracing())
        return;
    g_auto(Child) child = start_child(run_busy);
    g_auto(UprofTracer) tracer = start_tracer();
    UprofTracee tracee = { .thread = child.pid };
    for (unsigned i = 0; i < HOLDS; i++) {
        const UprofTraceAnswer answer =
            stop_thread(&tracer, &tracee, limits[i % G_N_ELEMENTS(limits)]);
        if (answer == UPROF_TRACE_STOPPED) {
            g_assert_cmpint(release_thread(&tracee), ==, UPROF_TRACE_RELEASED);
            continue;
        }
        g_assert_cmpint(answer, ==, UPROF_TRACE_LATE);
        n_late++;
        g_assert_cmpint(wait_released(&tracee), ==, UPROF_TRACE_RELEASED);
    }
    g_assert_cmpuint(n_late, >, 0);
    assert_released(&child);
}

/* A timer that was disarmed after its wait interrupts no later system call. */
static void
test_late_timer(void)
{
    const struct timespec pause_length = { .tv_nsec = 20 * UPROF_NS_PER_MS };

    if (skip_without_tracing())
        return;
    g_auto(Child) child = start_child(run_busy);
    g_auto(UprofTracer) tracer = start_tracer();
    UprofTracee tracee = { .thread = child.pid };
    for (unsigned i = 0; i < 10; i++) {
        const UprofTraceAnswer answer = stop_thread(&tracer, &tracee, 5 * UPROF_NS_PER_MS);
        /* the timer expires in the hold */
        for (const uint64_t until_ns = uprof_clock_now_ns() + 6 * UPROF_NS_PER_MS;
             uprof_clock_now_ns() < until_ns;)
            g_assert_cmpint(read_state(child.pid), !=, 0);
        if (answer == UPROF_TRACE_STOPPED)
            g_assert_cmpint(release_thread(&tracee), ==, UPROF_TRACE_RELEASED);
        else
            g_assert_cmpint(wait_released(&tracee), ==, UPROF_TRACE_RELEASED);
        uprof_tracer_disarm(&tracer);
        g_assert_cmpint(nanosleep(&pause_length, NULL), ==, 0);
    }
}

/* Four calls that sleep; each stores its result. */
static void
sleep_in_read(Shared *shared)
{
    char byte;

    shared->result = (gint)syscall(SYS_read, STDIN_FILENO, &byte, 1);
}

static void
sleep_in_nanosleep(Shared *shared)
{
    const struct timespec length = { .tv_nsec = SLEEP_MS * UPROF_NS_PER_MS };
    struct timespec rest = { 0 };

    shared->result = (gint)syscall(SYS_nanosleep, &length, &rest);
}

static void
sleep_in_futex(Shared *shared)
{
    shared->result = (gint)syscall(SYS_futex, &shared->word, FUTEX_WAIT, 0, NULL, NULL, 0);
}

static void
sleep_in_timed_futex(Shared *shared)
{
    const struct timespec length = { .tv_nsec = SLEEP_MS * UPROF_NS_PER_MS };

    shared->result = (gint)syscall(SYS_futex, &shared->word, FUTEX_WAIT, 0, &length, NULL, 0);
}

/* clang-format off */
static const struct {
    const char *name;
    void (*sleep)(Shared *shared);
    long number;
    gint result;
    gint code;
    bool is_timed;
} calls[] = {
    { "read",        sleep_in_read,        SYS_read,      1, 0,         false },
    { "nanosleep",   sleep_in_nanosleep,   SYS_nanosleep, 0, 0,         true },
    { "futex",       sleep_in_futex,       SYS_futex,     0, 0,         false },
    { "timed-futex", sleep_in_timed_futex, SYS_futex,    -1, ETIMEDOUT, true },
};
/* clang-format on */

static size_t call_case; /* index in calls[] for the next child */

static void
run_call(Shared *shared)
{
    const uint64_t before_ns = uprof_clock_now_ns();

    g_atomic_int_set(&shared->is_ready, 1);
    errno = 0;
    calls[call_case].sleep(shared);
    shared->code = errno;
    shared->elapsed_ms = (gint)((uprof_clock_now_ns() - before_ns) / UPROF_NS_PER_MS);
}

static void
assert_call(const UprofTracee *tracee, const UprofThread *thread, long number)
{
#if defined(__x86_64__)
    UprofThreadCall call, asleep;
    int64_t result = 0;

    g_assert_true(uprof_tracee_call(tracee, &call, &result));
    g_assert_cmpuint(call.number, ==, (uint64_t)number);
    g_assert_cmpint(result, <=, -512); /* ERESTARTSYS to ERESTART_RESTARTBLOCK */
    g_assert_cmpint(result, >=, -516);
    /* /proc shows the call of a thread that sleeps in it; a stopped thread may sleep elsewhere */
    if (uprof_thread_where(thread, &asleep) == UPROF_THREAD_IN_CALL)
        g_assert_cmpmem(&call, sizeof(call), &asleep, sizeof(asleep));
#endif
}

static void
test_call(gconstpointer data)
{
    const size_t i = call_case = GPOINTER_TO_SIZE(data);
    unsigned n_holds = 0;

    if (skip_without_tracing())
        return;
    g_auto(Child) child = start_child(run_call);
    Shared *shared = child.shared;
    g_auto(UprofTracer) tracer = start_tracer();
    g_autoptr(UprofThread) thread = uprof_thread_open(child.pid, child.pid, NULL);
    UprofTracee tracee = { .thread = child.pid };

    g_assert_nonnull(thread);
    while (n_holds < 50 && !g_atomic_int_get(&shared->is_done)) {
        g_usleep(1000);
        if (uprof_thread_where(thread, NULL) != UPROF_THREAD_IN_CALL)
            continue;
        g_assert_cmpint(stop_thread(&tracer, &tracee, LIMIT_NS), ==, UPROF_TRACE_STOPPED);
        if (!g_atomic_int_get(&shared->is_done) && !calls[i].is_timed)
            assert_call(&tracee, thread, calls[i].number);
        g_assert_cmpint(release_thread(&tracee), ==, UPROF_TRACE_RELEASED);
        n_holds++;
    }
    g_assert_cmpuint(n_holds, >, calls[i].is_timed ? 0 : 49);
    if (!calls[i].is_timed)
        g_assert_false(g_atomic_int_get(&shared->is_done));
    g_assert_cmpint(write(child.feed, "!", 1), ==, 1);
    if (i == 2) {
        /* the wakeup has no effect until the child sleeps again */
        while (syscall(SYS_futex, &shared->word, FUTEX_WAKE, 1, NULL, NULL, 0) != 1)
            g_usleep(1000);
    }
    g_assert_true(wait_for(&shared->is_done));
    g_assert_cmpint(shared->result, ==, calls[i].result);
    g_assert_cmpint(shared->code, ==, calls[i].code);
    if (calls[i].is_timed)
        g_assert_cmpint(shared->elapsed_ms, >=, SLEEP_MS);
}

/* A thread outside of a system call has no call to report. */
static void
test_no_call(void)
{
    const UprofThreadCall untouched = { .number = 42 };
    UprofThreadCall call = untouched;
    int64_t result = 42;

    if (skip_without_tracing())
        return;
    g_auto(Child) child = start_child(run_busy);
    g_auto(UprofTracer) tracer = start_tracer();
    UprofTracee tracee = { .thread = child.pid };
    g_assert_cmpint(stop_thread(&tracer, &tracee, LIMIT_NS), ==, UPROF_TRACE_STOPPED);
    g_assert_false(uprof_tracee_call(&tracee, &call, &result));
    g_assert_cmpmem(&call, sizeof(call), &untouched, sizeof(untouched));
    g_assert_cmpint(result, ==, 42);
    g_assert_cmpint(release_thread(&tracee), ==, UPROF_TRACE_RELEASED);
}

/* --- signals --- */

static Shared *handled; /* where the child's signal handler counts */

/* Each signal carries its number, so a missing, repeated or reordered signal shows. */
static void
count_signal(int number, siginfo_t *info, void *context)
{
    if (info->si_code != SI_QUEUE || info->si_value.sival_int != handled->n_signals)
        handled->n_wrong++;
    g_atomic_int_inc(&handled->n_signals);
}

static int
storm_signal(void)
{
    return SIGRTMIN + 8;
}

static void
run_storm(Shared *shared)
{
    const struct sigaction action = { .sa_sigaction = count_signal,
                                      .sa_flags = SA_SIGINFO | SA_RESTART };

    handled = shared;
    sigaction(storm_signal(), &action, NULL);
    run_busy(shared);
}

/* Sends numbered signals until @n are sent or is_over is set. */
static void
send_storm(const Child *child, gint n)
{
    Shared *shared = child->shared;

    while (shared->n_sent < n && !g_atomic_int_get(&shared->is_over)) {
        siginfo_t info = { .si_code = SI_QUEUE };
        info.si_pid = getpid();
        info.si_uid = getuid();
        info.si_value.sival_int = shared->n_sent;
        if (syscall(SYS_rt_tgsigqueueinfo, child->pid, child->pid, storm_signal(), &info) == 0)
            g_atomic_int_inc(&shared->n_sent);
        else if (errno != EAGAIN)
            _exit(1);
        else
            g_usleep(100);
        if (shared->n_sent % 16 == 0)
            g_usleep(20);
    }
}

static void
assert_all_handled(const Child *child)
{
    const gint n_sent = g_atomic_int_get(&child->shared->n_sent);

    for (unsigned i = 0; i < WAIT_MS && g_atomic_int_get(&child->shared->n_signals) < n_sent; i++)
        g_usleep(1000);
    g_assert_cmpint(child->shared->n_signals, ==, n_sent);
    g_assert_cmpint(child->shared->n_wrong, ==, 0);
}

static void
test_storm(void)
{
    unsigned n_holds = 0, n_deliveries = 0;
    int status = 0;

    if (skip_without_tracing())
        return;
    g_auto(Child) child = start_child(run_storm);
    g_auto(UprofTracer) tracer = start_tracer();
    UprofTracee tracee = { .thread = child.pid };
    const pid_t sender = fork_child();
    if (sender == 0) {
        send_storm(&child, STORM_SIGNALS_MAX);
        _exit(0);
    }
    /* how often a signal arrives before the interrupt depends on the machine */
    const uint64_t until_ns = uprof_clock_now_ns() + 2 * LIMIT_NS;
    while ((n_holds < HOLDS || n_deliveries < STORM_DELIVERIES) &&
           uprof_clock_now_ns() < until_ns) {
        g_assert_cmpint(stop_thread(&tracer, &tracee, LIMIT_NS), ==, UPROF_TRACE_STOPPED);
        g_assert_true(tracee.signal == 0 || tracee.signal == storm_signal());
        n_deliveries += tracee.signal != 0;
        n_holds++;
        g_assert_cmpint(release_thread(&tracee), ==, UPROF_TRACE_RELEASED);
        if (n_holds % 4 == 0)
            g_usleep(n_holds % 64); /* otherwise the child would hardly ever run */
    }
    g_atomic_int_set(&child.shared->is_over, 1);
    g_assert_cmpint(waitpid(sender, &status, 0), ==, sender);
    g_assert_cmpint(status, ==, 0);
    assert_all_handled(&child);
    g_test_message("%u holds, %u of them at the delivery of a signal", n_holds, n_deliveries);
    assert_released(&child);
    if (n_deliveries == 0)
        g_test_skip("this machine is too busy: no signal came before an interrupt");
}

/* A signal that is sent to a held thread waits for its release. */
static void
test_signal_in_hold(void)
{
    if (skip_without_tracing())
        return;
    g_auto(Child) child = start_child(run_storm);
    g_auto(UprofTracer) tracer = start_tracer();
    UprofTracee tracee = { .thread = child.pid };

    g_assert_cmpint(stop_thread(&tracer, &tracee, LIMIT_NS), ==, UPROF_TRACE_STOPPED);
    send_storm(&child, 100);
    g_usleep(10 * 1000);
    g_assert_cmpint(child.shared->n_signals, ==, 0);
    g_assert_cmpint(release_thread(&tracee), ==, UPROF_TRACE_RELEASED);
    assert_all_handled(&child);
}

/* --- stopped by others --- */

static void
assert_group_stop(UprofTracer *tracer, const Child *child)
{
    UprofTracee tracee = { .thread = child->pid };

    for (unsigned i = 0; i < 20; i++) {
        g_assert_cmpint(stop_thread(tracer, &tracee, LIMIT_NS), ==, UPROF_TRACE_GROUP_STOP);
        g_assert_cmpint(read_tracer(child->pid), ==, 0);
        g_assert_true(wait_for_state(child->pid, 'T'));
        assert_still(child, 1000);
    }
    kill(child->pid, SIGCONT);
    assert_released(child);
}

static void
test_group_stop(void)
{
    if (skip_without_tracing())
        return;
    g_auto(Child) child = start_child(run_busy);
    g_auto(UprofTracer) tracer = start_tracer();

    kill(child.pid, SIGSTOP);
    g_assert_true(wait_for_state(child.pid, 'T'));
    assert_group_stop(&tracer, &child);
}

/* Another process stops the held process: the release ends the hold, not that stop. */
static void
test_group_stop_in_hold(void)
{
    if (skip_without_tracing())
        return;
    g_auto(Child) child = start_child(run_busy);
    g_auto(UprofTracer) tracer = start_tracer();
    UprofTracee tracee = { .thread = child.pid };

    g_assert_cmpint(stop_thread(&tracer, &tracee, LIMIT_NS), ==, UPROF_TRACE_STOPPED);
    kill(child.pid, SIGSTOP);
    g_usleep(1000);
    g_assert_cmpint(release_thread(&tracee), ==, UPROF_TRACE_RELEASED);
    g_assert_true(wait_for_state(child.pid, 'T'));
    assert_group_stop(&tracer, &child);
}

/* SIGSTOP and the interrupt race: in either order, the process is stopped afterwards. */
static void
test_group_stop_race(void)
{
    if (skip_without_tracing())
        return;
    g_auto(Child) child = start_child(run_busy);
    g_auto(UprofTracer) tracer = start_tracer();
    UprofTracee tracee = { .thread = child.pid };

    for (unsigned i = 0; i < 200; i++) {
        const pid_t sender = fork_child();
        if (sender == 0) {
            kill(child.pid, SIGSTOP);
            _exit(0);
        }
        do {
            const UprofTraceAnswer answer = stop_thread(&tracer, &tracee, LIMIT_NS);
            if (answer == UPROF_TRACE_STOPPED)
                g_assert_cmpint(release_thread(&tracee), ==, UPROF_TRACE_RELEASED);
            else
                g_assert_cmpint(answer, ==, UPROF_TRACE_GROUP_STOP);
        } while (waitpid(sender, NULL, WNOHANG) == 0);
        g_assert_true(wait_for_state(child.pid, 'T'));
        assert_still(&child, 200);
        kill(child.pid, SIGCONT);
        g_assert_true(is_running(&child));
    }
    assert_released(&child);
}

/* Runs in a child: stops @thread, then writes a byte to @ready. */
static void
hold_and_signal_ready(pid_t thread, int ready)
{
    UprofTracer tracer;
    UprofTracee tracee = { .thread = thread };

    uprof_tracer_init(&tracer);
    if (uprof_tracee_stop(&tracer, &tracee, LIMIT_NS) != UPROF_TRACE_STOPPED ||
        write(ready, "!", 1) != 1)
        _exit(1);
}

static void
test_other_tracer(void)
{
    if (skip_without_tracing())
        return;
    g_auto(Child) child = start_child(run_busy);
    g_auto(UprofTracer) tracer = start_tracer();
    UprofTracee tracee = { .thread = child.pid };
    int ready[2];
    char byte = 0;

    g_assert_cmpint(pipe(ready), ==, 0);
    const pid_t other = fork_child();
    if (other == 0) {
        hold_and_signal_ready(child.pid, ready[1]);
        for (;;)
            pause();
    }
    close(ready[1]);
    g_assert_cmpint(read(ready[0], &byte, 1), ==, 1);
    close(ready[0]);
    for (unsigned i = 0; i < 20; i++) {
        g_assert_cmpint(stop_thread(&tracer, &tracee, LIMIT_NS), ==, UPROF_TRACE_OTHER_TRACER);
        g_assert_cmpint(tracee.other_tracer, ==, other);
    }
    g_assert_cmpint(read_tracer(child.pid), ==, other);

    /* when the other tracer is killed, the kernel releases the thread, which can be held again */
    kill(other, SIGKILL);
    g_assert_cmpint(waitpid(other, NULL, 0), ==, other);
    assert_released(&child);
    g_assert_cmpint(stop_thread(&tracer, &tracee, LIMIT_NS), ==, UPROF_TRACE_STOPPED);
    g_assert_cmpint(tracee.other_tracer, ==, 0);
    g_assert_cmpint(release_thread(&tracee), ==, UPROF_TRACE_RELEASED);
    assert_released(&child);
}

static void
test_denied(void)
{
    int status = 0;

    if (skip_without_tracing())
        return;
    if (geteuid() != 0) {
        g_test_skip("needs root, to run as another user");
        return;
    }
    g_auto(Child) child = start_child(run_busy);
    g_auto(UprofTracer) tracer = start_tracer();
    const pid_t somebody = fork_child();
    if (somebody == 0) {
        UprofTracee tracee = { .thread = child.pid };
        if (setresuid(NOBODY, NOBODY, NOBODY) < 0)
            _exit(1);
        g_assert_cmpint(stop_thread(&tracer, &tracee, LIMIT_NS), ==, UPROF_TRACE_DENIED);
        g_assert_cmpint(tracee.other_tracer, ==, 0);
        _exit(0);
    }
    g_assert_cmpint(waitpid(somebody, &status, 0), ==, somebody);
    g_assert_cmpint(status, ==, 0);
    assert_released(&child);
}

/* --- ends --- */

static void
test_gone_before(void)
{
    if (skip_without_tracing())
        return;
    g_auto(Child) child = start_child(run_busy);
    g_auto(UprofTracer) tracer = start_tracer();
    UprofTracee tracee = { .thread = child.pid };

    /* the tracer does not reap a zombie; its parent still can */
    kill(child.pid, SIGKILL);
    g_assert_true(wait_for_state(child.pid, 'Z'));
    g_assert_cmpint(stop_thread(&tracer, &tracee, LIMIT_NS), ==, UPROF_TRACE_GONE);
    g_assert_cmpint(waitpid(child.pid, NULL, 0), ==, child.pid);
    g_assert_cmpint(stop_thread(&tracer, &tracee, LIMIT_NS), ==, UPROF_TRACE_GONE);
}

static void *
run_second_thread(void *data)
{
    Shared *shared = data;

    g_atomic_int_set(&shared->thread, gettid());
    run_busy(shared);
    return NULL;
}

static void
run_second_busy(Shared *shared)
{
    pthread_t second;

    pthread_create(&second, NULL, run_second_thread, shared);
    for (;;)
        pause();
}

/* The process of a held thread is killed: the tracer must reap the thread, so that both end. */
static void
test_killed_in_hold(void)
{
    if (skip_without_tracing())
        return;
    for (unsigned i = 0; i < 20; i++) {
        g_auto(Child) child = start_child(run_second_busy);
        g_auto(UprofTracer) tracer = start_tracer();
        UprofTracee tracee = { .thread = g_atomic_int_get(&child.shared->thread) };
        int status = 0;

        g_assert_cmpint(stop_thread(&tracer, &tracee, LIMIT_NS), ==, UPROF_TRACE_STOPPED);
        kill(child.pid, SIGKILL);
        if (i % 2)
            g_usleep(5000);
        UprofTraceAnswer answer = release_thread(&tracee);
        if (answer == UPROF_TRACE_LATE)
            answer = wait_released(&tracee);
        g_assert_cmpint(answer, ==, UPROF_TRACE_GONE);
        g_assert_cmpint(tracee.state, ==, UPROF_TRACEE_DETACHED);
        g_assert_cmpint(waitpid(child.pid, &status, 0), ==, child.pid);
        g_assert_true(WIFSIGNALED(status));
        g_assert_cmpint(stop_thread(&tracer, &tracee, LIMIT_NS), ==, UPROF_TRACE_GONE);
    }
}

/* A thread that publishes its id, counts for a short time and ends. */
static void *
run_short_thread(void *data)
{
    Shared *shared = data;

    g_atomic_int_set(&shared->thread, gettid());
    for (unsigned i = 0; i < THREAD_COUNT; i++)
        g_atomic_int_inc(&shared->count);
    return NULL;
}

static void
run_short_threads(Shared *shared)
{
    g_atomic_int_set(&shared->is_ready, 1);
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, run_short_thread, shared);
        pthread_join(thread, NULL);
    }
}

/* Spins, because the wait is shorter than the shortest sleep. */
static void
spin_us(unsigned us)
{
    const uint64_t until_ns = uprof_clock_now_ns() + us * UPROF_NS_PER_US;

    while (uprof_clock_now_ns() < until_ns)
        ;
}

static unsigned
count_threads(pid_t process)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/task", process);
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    unsigned n = 0;

    while (dir && g_dir_read_name(dir))
        n++;
    return n;
}

/* Threads end before, during and after a stop. None stays stopped, and all finish their work. */
static void
test_short_threads(void)
{
    unsigned n[UPROF_TRACE_GONE + 1] = { 0 };
    unsigned n_tries = 0;

    if (skip_without_tracing())
        return;
    g_auto(Child) child = start_child(run_short_threads);
    g_auto(UprofTracer) tracer = start_tracer();
    while (!g_atomic_int_get(&child.shared->is_done)) {
        UprofTracee tracee = { .thread = g_atomic_int_get(&child.shared->thread) };
        if (tracee.thread == 0)
            continue;
        spin_us(++n_tries * 37 % 301);
        const UprofTraceAnswer answer = stop_thread(&tracer, &tracee, LIMIT_NS);
        n[answer]++;
        if (answer == UPROF_TRACE_STOPPED)
            g_assert_cmpint(release_thread(&tracee), ==, UPROF_TRACE_RELEASED);
        else
            g_assert_cmpint(answer, ==, UPROF_TRACE_GONE);
    }
    g_test_message("%u stopped, %u gone", n[UPROF_TRACE_STOPPED], n[UPROF_TRACE_GONE]);
    g_assert_cmpuint(n[UPROF_TRACE_STOPPED], >, 0);
    g_assert_cmpuint(n[UPROF_TRACE_GONE], >, 0);
    g_assert_cmpint(child.shared->count, ==, THREADS * THREAD_COUNT);
    unsigned n_threads = 0; /* the kernel may still list a joined thread */
    for (unsigned i = 0; i < WAIT_MS && n_threads != 1; i++) {
        n_threads = count_threads(child.pid);
        g_usleep(1000);
    }
    g_assert_cmpuint(n_threads, ==, 1);
}

/* --- uninterruptible sleep --- */

/*
 * A parent in vfork() cannot be stopped before its child has ended. The child
 * shares the parent's memory, so the child makes only system calls.
 */
static void
run_vfork(Shared *shared)
{
    g_atomic_int_set(&shared->is_ready, 1);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    const pid_t pid = vfork();
#pragma GCC diagnostic pop
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        g_atomic_int_set(&shared->other, (gint)getpid());
        for (;;)
            pause();
    }
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    g_atomic_int_set(&shared->other, 0);
    for (;;)
        g_atomic_int_inc(&shared->count);
}

static Child
start_vfork_parent(void)
{
    Child child = start_child(run_vfork);

    g_assert_true(wait_for(&child.shared->other));
    g_assert_true(wait_for_state(child.pid, 'D'));
    return child;
}

static void
end_vfork_child(const Child *child)
{
    kill(g_atomic_int_get(&child->shared->other), SIGKILL);
}

static void
assert_late(UprofTracer *tracer, UprofTracee *tracee)
{
    const uint64_t before_ns = uprof_clock_now_ns();

    g_assert_cmpint(stop_thread(tracer, tracee, SHORT_NS), ==, UPROF_TRACE_LATE);
    const uint64_t after_ns = uprof_clock_now_ns();
    g_assert_cmpuint(after_ns - before_ns, >=, SHORT_NS);
    /* a busy machine may delay the return, but not for nearly as long as LIMIT_NS */
    g_assert_cmpuint(after_ns - before_ns, <, LIMIT_NS / 2);
}

static void
check_late_then_released(void)
{
    g_auto(Child) child = start_vfork_parent();
    g_auto(UprofTracer) tracer = start_tracer();
    UprofTracee tracee = { .thread = child.pid };

    assert_late(&tracer, &tracee);
    for (unsigned i = 0; i < 20; i++) {
        g_assert_cmpint(release_late(&tracee), ==, UPROF_TRACE_LATE);
        g_assert_cmpint(stop_thread(&tracer, &tracee, SHORT_NS), ==,
                        UPROF_TRACE_LATE); /* at once */
    }
    g_assert_cmpint(read_tracer(child.pid), ==, gettid());
    g_assert_cmpuint(tracee.lost_ns, ==, 0);
    const uint64_t checked_ns = tracee.checked_ns;
    end_vfork_child(&child);
    g_assert_cmpint(wait_released(&tracee), ==, UPROF_TRACE_RELEASED);
    g_assert_cmpuint(tracee.lost_ns, >, 0);
    g_assert_cmpuint(tracee.lost_ns, <=, tracee.released_ns - checked_ns);
    assert_released(&child);

    /* later holds of this thread are normal */
    g_assert_cmpint(stop_thread(&tracer, &tracee, LIMIT_NS), ==, UPROF_TRACE_STOPPED);
    assert_still(&child, 1000);
    g_assert_cmpint(release_thread(&tracee), ==, UPROF_TRACE_RELEASED);
    assert_released(&child);
}

static void
test_late(void)
{
    if (skip_without_tracing())
        return;
    check_late_then_released();
}

/* A second stop finishes the late stop first. */
static void
test_late_then_stop(void)
{
    if (skip_without_tracing())
        return;
    g_auto(Child) child = start_vfork_parent();
    g_auto(UprofTracer) tracer = start_tracer();
    UprofTracee tracee = { .thread = child.pid };

    assert_late(&tracer, &tracee);
    end_vfork_child(&child);
    g_assert_true(wait_for_state(child.pid, 't'));
    g_usleep(5000);
    g_assert_cmpint(stop_thread(&tracer, &tracee, LIMIT_NS), ==, UPROF_TRACE_STOPPED);
    g_assert_cmpuint(tracee.lost_ns, >=, 5 * UPROF_NS_PER_MS);
    const uint64_t lost_ns = tracee.lost_ns;
    g_assert_cmpint(release_thread(&tracee), ==, UPROF_TRACE_RELEASED);
    g_assert_cmpuint(tracee.lost_ns, ==, lost_ns); /* the second stop was in time */
    assert_released(&child);
}

/* The timer expires before the wait starts, and no other event ends that wait. */
static void
test_late_at_once(void)
{
    if (skip_without_tracing())
        return;
    g_auto(UprofTracer) tracer = start_tracer();
    for (unsigned i = 0; i < 20; i++) {
        g_auto(Child) child = start_vfork_parent();
        UprofTracee tracee = { .thread = child.pid };
        g_assert_cmpint(stop_thread(&tracer, &tracee, i), ==, UPROF_TRACE_LATE);
        end_vfork_child(&child);
        g_assert_cmpint(wait_released(&tracee), ==, UPROF_TRACE_RELEASED);
        assert_released(&child);
    }
}

static void
test_late_then_killed(void)
{
    if (skip_without_tracing())
        return;
    g_auto(Child) child = start_vfork_parent();
    g_auto(UprofTracer) tracer = start_tracer();
    UprofTracee tracee = { .thread = child.pid };

    assert_late(&tracer, &tracee);
    kill(child.pid, SIGKILL);
    g_assert_cmpint(wait_released(&tracee), ==, UPROF_TRACE_GONE);
    g_assert_cmpint(tracee.state, ==, UPROF_TRACEE_DETACHED);
}

static void
test_late_then_group_stop(void)
{
    if (skip_without_tracing())
        return;
    g_auto(Child) child = start_vfork_parent();
    g_auto(UprofTracer) tracer = start_tracer();
    UprofTracee tracee = { .thread = child.pid };

    assert_late(&tracer, &tracee);
    kill(child.pid, SIGSTOP);
    end_vfork_child(&child);
    const UprofTraceAnswer answer = wait_released(&tracee);
    g_assert_true(answer == UPROF_TRACE_GROUP_STOP || answer == UPROF_TRACE_RELEASED);
    g_assert_true(wait_for_state(child.pid, 'T'));
    g_assert_cmpint(read_tracer(child.pid), ==, 0);
    kill(child.pid, SIGCONT);
    assert_released(&child);
}

typedef struct {
    UprofTracer *tracer;
    UprofTracee *tracee;
} Work;

static void *
run_late_stop(void *data)
{
    const Work *work = data;

    assert_late(work->tracer, work->tracee);
    g_assert_cmpint(read_tracer(work->tracee->thread), ==, gettid());
    return NULL;
}

/* If the tracing thread ends, the kernel also releases a traced thread that has not stopped yet. */
static void
test_late_then_thread_ends(void)
{
    if (skip_without_tracing())
        return;
    g_auto(Child) busy = start_child(run_busy);
    g_auto(Child) child = start_vfork_parent();
    g_auto(UprofTracer) tracer = start_tracer();
    UprofTracee other = { .thread = busy.pid };
    UprofTracee tracee = { .thread = child.pid };
    const Work work = { &tracer, &tracee };
    pthread_t thread;

    /* the timer belongs to this thread, then to the new one, then to this one again */
    g_assert_cmpint(stop_thread(&tracer, &other, LIMIT_NS), ==, UPROF_TRACE_STOPPED);
    g_assert_cmpint(release_thread(&other), ==, UPROF_TRACE_RELEASED);
    g_assert_cmpint(tracer.thread, ==, gettid());
    g_assert_cmpint(pthread_create(&thread, NULL, run_late_stop, (void *)&work), ==, 0);
    g_assert_cmpint(pthread_join(thread, NULL), ==, 0);
    g_assert_cmpint(tracer.thread, !=, gettid());
    for (unsigned i = 0; i < WAIT_MS && read_tracer(child.pid) != 0; i++)
        g_usleep(1000); /* a joined thread may still be ending */
    g_assert_cmpint(read_tracer(child.pid), ==, 0);

    tracee = (UprofTracee){ .thread = child.pid };
    assert_late(&tracer, &tracee);
    g_assert_cmpint(tracer.thread, ==, gettid());
    end_vfork_child(&child);
    g_assert_cmpint(wait_released(&tracee), ==, UPROF_TRACE_RELEASED);
    assert_released(&child);
}

/* The end of the tracing thread cancels its interrupt: the child runs on without a release. */
static void
test_late_then_thread_ends_unseen(void)
{
    if (skip_without_tracing())
        return;
    g_auto(Child) child = start_vfork_parent();
    g_auto(UprofTracer) tracer = start_tracer();
    UprofTracee tracee = { .thread = child.pid };
    const Work work = { &tracer, &tracee };
    pthread_t thread;

    g_assert_cmpint(pthread_create(&thread, NULL, run_late_stop, (void *)&work), ==, 0);
    g_assert_cmpint(pthread_join(thread, NULL), ==, 0);
    for (unsigned i = 0; i < WAIT_MS && read_tracer(child.pid) != 0; i++)
        g_usleep(1000);
    end_vfork_child(&child);
    assert_released(&child);
}

/* Without a timer the waits poll, with the same results. */
static void
test_no_timer(void)
{
    struct rlimit before, none;

    if (skip_without_tracing())
        return;
    g_assert_cmpint(getrlimit(RLIMIT_SIGPENDING, &before), ==, 0);
    none = (struct rlimit){ .rlim_cur = 0, .rlim_max = before.rlim_max };
    g_assert_cmpint(setrlimit(RLIMIT_SIGPENDING, &none), ==, 0);
    {
        g_auto(Child) child = start_child(run_busy);
        g_auto(UprofTracer) tracer = start_tracer();
        UprofTracee tracee = { .thread = child.pid };
        for (unsigned i = 0; i < 100; i++) {
            g_assert_cmpint(stop_thread(&tracer, &tracee, LIMIT_NS), ==, UPROF_TRACE_STOPPED);
            g_assert_false(tracer.has_timer);
            g_assert_cmpint(release_thread(&tracee), ==, UPROF_TRACE_RELEASED);
        }
        assert_released(&child);
    }
    check_late_then_released();
    g_assert_cmpint(setrlimit(RLIMIT_SIGPENDING, &before), ==, 0);
}

/* --- ends of the tracer --- */

/* clang-format off */
static const struct {
    const char *name;
    int signal; /* 0: the holder exits */
} ends[] = {
    { "killed",     SIGKILL },
    { "crashed",    SIGSEGV },
    { "terminated", SIGTERM },
    { "exited",     0 },
};
/* clang-format on */

static void
test_end_in_hold(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    int ready[2];
    char byte = 0;

    if (skip_without_tracing())
        return;
    g_auto(Child) child = start_child(run_busy);
    g_assert_cmpint(pipe(ready), ==, 0);
    const pid_t holder = fork_child();
    if (holder == 0) {
        const struct rlimit no_core = { 0 };
        const struct sigaction usual = { .sa_handler = SIG_DFL };
        setrlimit(RLIMIT_CORE, &no_core);
        sigaction(SIGSEGV, &usual, NULL); /* the handler of a sanitizer would print a report */
        hold_and_signal_ready(child.pid, ready[1]);
        while (ends[i].signal != 0)
            pause();
        _exit(0);
    }
    close(ready[1]);
    g_assert_cmpint(read(ready[0], &byte, 1), ==, 1);
    close(ready[0]);
    if (ends[i].signal != 0) {
        g_assert_cmpint(read_tracer(child.pid), ==, holder);
        assert_still(&child, 1000);
        kill(holder, ends[i].signal);
    }
    g_assert_cmpint(waitpid(holder, NULL, 0), ==, holder);
    assert_released(&child);
}

static void *
stop_and_end(void *data)
{
    const Work *work = data;

    g_assert_cmpint(uprof_tracee_stop(work->tracer, work->tracee, LIMIT_NS), ==,
                    UPROF_TRACE_STOPPED);
    return NULL;
}

static void
test_thread_ends_in_hold(void)
{
    if (skip_without_tracing())
        return;
    g_auto(Child) child = start_child(run_busy);
    g_auto(UprofTracer) tracer = start_tracer();
    UprofTracee tracee = { .thread = child.pid };
    const Work work = { &tracer, &tracee };
    pthread_t thread;

    g_assert_cmpint(pthread_create(&thread, NULL, stop_and_end, (void *)&work), ==, 0);
    g_assert_cmpint(pthread_join(thread, NULL), ==, 0);
    g_assert_true(is_running(&child));
    assert_released(&child);
}

/* A process made by fork() inherits the tracer, but not its timer. */
static void
test_fork(void)
{
    int status = 0;

    if (skip_without_tracing())
        return;
    g_auto(Child) child = start_child(run_busy);
    g_auto(UprofTracer) tracer = start_tracer();
    UprofTracee tracee = { .thread = child.pid };

    g_assert_cmpint(stop_thread(&tracer, &tracee, LIMIT_NS), ==, UPROF_TRACE_STOPPED);
    g_assert_cmpint(release_thread(&tracee), ==, UPROF_TRACE_RELEASED);
    const pid_t copy = fork_child();
    if (copy == 0) {
        /* timer numbers start anew in a child: one of these is the number of the parent's timer */
        struct sigevent quiet = { .sigev_notify = SIGEV_NONE };
        struct itimerspec when;
        timer_t own[64];
        for (size_t i = 0; i < G_N_ELEMENTS(own); i++)
            g_assert_cmpint(timer_create(CLOCK_MONOTONIC, &quiet, &own[i]), ==, 0);
        g_assert_cmpint(stop_thread(&tracer, &tracee, LIMIT_NS), ==, UPROF_TRACE_STOPPED);
        g_assert_cmpint(release_thread(&tracee), ==, UPROF_TRACE_RELEASED);
        for (size_t i = 0; i < G_N_ELEMENTS(own); i++)
            g_assert_cmpint(timer_gettime(own[i], &when), ==, 0);
        _exit(0);
    }
    g_assert_cmpint(waitpid(copy, &status, 0), ==, copy);
    g_assert_cmpint(status, ==, 0);
    g_assert_cmpint(stop_thread(&tracer, &tracee, LIMIT_NS), ==, UPROF_TRACE_STOPPED);
    g_assert_cmpint(release_thread(&tracee), ==, UPROF_TRACE_RELEASED);
}

/* Some hosts and containers forbid all tracing. */
static const char *
find_why_not(void)
{
    g_auto(Child) child = start_child(run_busy);
    UprofTracer tracer;
    UprofTracee tracee = { .thread = child.pid };

    uprof_tracer_init(&tracer);
    const UprofTraceAnswer answer = uprof_tracee_stop(&tracer, &tracee, LIMIT_NS);
    if (answer == UPROF_TRACE_STOPPED)
        uprof_tracee_release(&tracee);
    uprof_tracer_clear(&tracer);
    if (answer == UPROF_TRACE_OTHER_TRACER)
        return "another program traces the children of this one";
    return answer == UPROF_TRACE_DENIED ? "this host forbids tracing a child (Yama or seccomp)"
                                        : NULL;
}

int
main(int argc, char **argv)
{
    sigset_t all;

    g_test_init(&argc, &argv, NULL);
    /* virt-uprof blocks all signals, too; SIGABRT is left for failed assertions */
    sigfillset(&all);
    sigdelset(&all, SIGABRT);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    why_not = find_why_not();

    g_test_add_func("/tracer/busy", test_busy);
    g_test_add_func("/tracer/tiny-limits", test_tiny_limits);
    g_test_add_func("/tracer/late-timer", test_late_timer);
    for (size_t i = 0; i < G_N_ELEMENTS(calls); i++) {
        g_autofree char *path = g_strdup_printf("/tracer/call/%s", calls[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_call);
    }
    g_test_add_func("/tracer/no-call", test_no_call);
    g_test_add_func("/tracer/storm", test_storm);
    g_test_add_func("/tracer/signal-in-hold", test_signal_in_hold);
    g_test_add_func("/tracer/group-stop/before", test_group_stop);
    g_test_add_func("/tracer/group-stop/in-hold", test_group_stop_in_hold);
    g_test_add_func("/tracer/group-stop/race", test_group_stop_race);
    g_test_add_func("/tracer/other-tracer", test_other_tracer);
    g_test_add_func("/tracer/denied", test_denied);
    g_test_add_func("/tracer/gone/before", test_gone_before);
    g_test_add_func("/tracer/gone/in-hold", test_killed_in_hold);
    g_test_add_func("/tracer/gone/any-time", test_short_threads);
    g_test_add_func("/tracer/late/released", test_late);
    g_test_add_func("/tracer/late/at-once", test_late_at_once);
    g_test_add_func("/tracer/late/stopped-again", test_late_then_stop);
    g_test_add_func("/tracer/late/killed", test_late_then_killed);
    g_test_add_func("/tracer/late/group-stop", test_late_then_group_stop);
    g_test_add_func("/tracer/late/thread-ends", test_late_then_thread_ends);
    g_test_add_func("/tracer/late/thread-ends-unseen", test_late_then_thread_ends_unseen);
    g_test_add_func("/tracer/no-timer", test_no_timer);
    for (size_t i = 0; i < G_N_ELEMENTS(ends); i++) {
        g_autofree char *path = g_strdup_printf("/tracer/end/%s", ends[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_end_in_hold);
    }
    g_test_add_func("/tracer/end/thread", test_thread_ends_in_hold);
    g_test_add_func("/tracer/fork", test_fork);
    return g_test_run();
}
