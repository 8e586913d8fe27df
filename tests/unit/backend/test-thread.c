/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../../src/backend/thread-priv.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "uprof/clock.h"
#include "uprof/error.h"
#include "uprof/process-stat.h"

enum { WAIT_MS = 10 * 1000, NOBODY = 65534 };

/* Memory that the test shares with its child. */
typedef struct {
    gint thread; /* tid of the second thread */
    gint is_ready;
} Shared;

/* A child process. It ends with the scope, or with the test program. */
typedef struct {
    pid_t pid;
    int feed; /* write end of the pipe that is the child's descriptor 0 */
    Shared *shared;
} Child;

static void
clear_child(Child *child)
{
    kill(child->pid, SIGKILL);
    waitpid(child->pid, NULL, 0);
    close(child->feed);
    munmap(child->shared, sizeof(Shared));
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Child, clear_child)

static void
run_busy(Shared *shared)
{
    volatile unsigned work = 0;

    g_atomic_int_set(&shared->is_ready, 1);
    for (;;)
        work++;
}

static void
run_read(Shared *shared)
{
    char byte;

    g_atomic_int_set(&shared->is_ready, 1);
    while (read(STDIN_FILENO, &byte, 1) == 1)
        ;
}

static void *
run_second_thread(void *data)
{
    Shared *shared = data;

    prctl(PR_SET_NAME, "a) S 1 2 (b c");
    g_atomic_int_set(&shared->thread, gettid());
    run_read(shared);
    return NULL;
}

/* The second thread ends at the end of its input; the first never ends. */
static void
run_two_threads(Shared *shared)
{
    pthread_t second;

    pthread_create(&second, NULL, run_second_thread, shared);
    for (;;)
        pause();
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
    child.pid = fork();
    g_assert_cmpint(child.pid, >=, 0);
    if (child.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(feed[0], STDIN_FILENO);
        close(feed[0]);
        close(feed[1]);
        run(child.shared);
        _exit(0);
    }
    close(feed[0]);
    child.feed = feed[1];
    while (!g_atomic_int_get(&child.shared->is_ready))
        g_usleep(1000);
    return child;
}

static UprofThread *
open_thread(pid_t process, pid_t tid)
{
    g_autoptr(GError) error = NULL;
    UprofThread *thread = uprof_thread_open(process, tid, &error);

    g_assert_no_error(error);
    g_assert_nonnull(thread);
    return thread;
}

static bool
wait_for_where(const UprofThread *thread, UprofThreadWhere where, UprofThreadCall *call)
{
    for (unsigned i = 0; i < WAIT_MS; i++) {
        if (uprof_thread_where(thread, call) == where)
            return true;
        g_usleep(1000);
    }
    return false;
}

static void
assert_times(const UprofThreadTimes *times, const UprofThreadTimes *expected)
{
    g_assert_cmpint(times->is_known, ==, expected->is_known);
    g_assert_cmpuint(times->run_ns, ==, expected->run_ns);
    g_assert_cmpuint(times->wait_ns, ==, expected->wait_ns);
    g_assert_cmpuint(times->slices, ==, expected->slices);
}

static bool
skip_without_counts(const UprofThreadTimes *times)
{
    if (!times->is_known)
        g_test_skip("this kernel has no CONFIG_SCHED_INFO");
    return !times->is_known;
}

static void
test_busy(void)
{
    g_auto(Child) child = start_child(run_busy);
    g_autoptr(UprofThread) thread = open_thread(child.pid, child.pid);
    UprofThreadTimes before, after;

    g_assert_true(uprof_thread_times(thread, &before));
    for (unsigned i = 0; i < 100; i++)
        g_assert_cmpint(uprof_thread_where(thread, NULL), ==, UPROF_THREAD_RUNNING);
    g_assert_false(uprof_thread_is_asleep(thread));
    if (skip_without_counts(&before))
        return;
    after = before;
    for (unsigned i = 0; i < WAIT_MS && after.run_ns == before.run_ns; i++) {
        g_usleep(1000);
        g_assert_true(uprof_thread_times(thread, &after));
    }
    g_assert_cmpuint(after.run_ns, >, before.run_ns);
    g_assert_cmpuint(after.slices, >=, before.slices);
}

static void
test_blocked(void)
{
    g_auto(Child) child = start_child(run_read);
    g_autoptr(UprofThread) thread = open_thread(child.pid, child.pid);
    UprofThreadTimes before, after;
    UprofThreadCall call = { 0 };

    g_assert_true(wait_for_where(thread, UPROF_THREAD_IN_CALL, &call));
    g_assert_cmpuint(call.number, ==, SYS_read);
    g_assert_cmpuint(call.args[0], ==, STDIN_FILENO);
    g_assert_cmpuint(call.args[1], !=, 0);
    g_assert_cmpint(uprof_thread_where(thread, NULL), ==, UPROF_THREAD_IN_CALL);
    g_assert_true(uprof_thread_is_asleep(thread));

    /* reading the times of a sleeping thread changes nothing; a byte of input wakes the thread */
    g_assert_true(uprof_thread_times(thread, &before));
    if (skip_without_counts(&before))
        return;
    g_usleep(20 * 1000);
    g_assert_true(wait_for_where(thread, UPROF_THREAD_IN_CALL, &call));
    g_assert_true(uprof_thread_times(thread, &after));
    assert_times(&after, &before);
    g_assert_cmpint(write(child.feed, "!", 1), ==, 1);
    for (unsigned i = 0; i < WAIT_MS && after.slices == before.slices; i++) {
        g_usleep(1000);
        g_assert_true(uprof_thread_times(thread, &after));
    }
    g_assert_cmpuint(after.slices, >, before.slices);
}

static void
test_stopped(void)
{
    g_auto(Child) child = start_child(run_busy);
    g_autoptr(UprofThread) thread = open_thread(child.pid, child.pid);

    kill(child.pid, SIGSTOP);
    g_assert_true(wait_for_where(thread, UPROF_THREAD_BLOCKED, NULL));
    g_assert_false(uprof_thread_is_asleep(thread));
    kill(child.pid, SIGCONT);
    g_assert_true(wait_for_where(thread, UPROF_THREAD_RUNNING, NULL));
}

static void
test_gone(void)
{
    const UprofThreadTimes untouched = { .slices = 42 };
    UprofThreadTimes times = untouched;
    g_auto(Child) child = start_child(run_busy);
    g_autoptr(UprofThread) thread = open_thread(child.pid, child.pid);
    g_autoptr(GError) error = NULL;

    /* a zombie still has its times, but counts as gone */
    kill(child.pid, SIGKILL);
    g_assert_true(wait_for_where(thread, UPROF_THREAD_GONE, NULL));
    g_assert_cmpint(waitpid(child.pid, NULL, 0), ==, child.pid);
    g_assert_cmpint(uprof_thread_where(thread, NULL), ==, UPROF_THREAD_GONE);
    g_assert_false(uprof_thread_is_asleep(thread));
    g_assert_false(uprof_thread_times(thread, &times));
    assert_times(&times, &untouched);

    g_assert_null(uprof_thread_open(child.pid, child.pid, &error));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_NOT_FOUND);
    g_clear_error(&error);
    uprof_thread_close(NULL);
}

static void
test_threads(void)
{
    g_auto(Child) child = start_child(run_two_threads);
    const pid_t second = g_atomic_int_get(&child.shared->thread);
    g_autoptr(UprofThread) leader = open_thread(child.pid, child.pid);
    g_autoptr(UprofThread) thread = open_thread(child.pid, second);
    UprofThreadStatus status;
    UprofThreadTimes times;
    g_autoptr(GError) error = NULL;

    /* splitting /proc/TID/stat at blanks, or at the first ')', would cut this name */
    g_assert_cmpstr(thread->name, ==, "a) S 1 2 (b c");
    g_assert_cmpuint(leader->start, ==, uprof_process_stat_start(child.pid));
    g_assert_cmpuint(thread->start, >=, leader->start);
    g_assert_cmpuint(thread->start, <, leader->start + WAIT_MS);

    g_assert_true(uprof_thread_status(second, &status));
    g_assert_cmpint(status.process, ==, child.pid);
    g_assert_cmpint(status.tracer, ==, 0);
    g_assert_false(status.has_ended);

    /* the thread belongs to another process */
    g_assert_null(uprof_thread_open(getpid(), second, &error));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_NOT_FOUND);

    /* one thread ends, its process runs on */
    close(child.feed);
    child.feed = -1;
    g_assert_true(wait_for_where(thread, UPROF_THREAD_GONE, NULL));
    g_assert_false(uprof_thread_times(thread, &times));
    g_assert_false(uprof_thread_status(second, &status));
    g_assert_true(uprof_thread_times(leader, &times));
}

static void
test_zombie_status(void)
{
    g_auto(Child) child = start_child(run_read);
    UprofThreadStatus status = { 0 };

    kill(child.pid, SIGKILL);
    for (unsigned i = 0; i < WAIT_MS && !status.has_ended; i++) {
        g_assert_true(uprof_thread_status(child.pid, &status));
        g_usleep(1000);
    }
    g_assert_true(status.has_ended);
    g_assert_false(uprof_thread_status(0, &status));
}

/* Another user's thread: its times can be read, but not its call. */
static void
test_no_right(void)
{
    int status = 0;

    if (geteuid() != 0) {
        g_test_skip("needs root, to run as another user");
        return;
    }
    g_auto(Child) child = start_child(run_read);
    const pid_t reader = fork();
    g_assert_cmpint(reader, >=, 0);
    if (reader == 0) {
        if (setresuid(NOBODY, NOBODY, NOBODY) < 0)
            _exit(1);
        g_autoptr(UprofThread) thread = open_thread(child.pid, child.pid);
        UprofThreadTimes times;
        g_assert_cmpint(uprof_thread_where(thread, NULL), ==, UPROF_THREAD_UNKNOWN);
        g_assert_true(uprof_thread_times(thread, &times));
        _exit(0);
    }
    g_assert_cmpint(waitpid(reader, &status, 0), ==, reader);
    g_assert_cmpint(status, ==, 0);
}

/* clang-format off */
static const struct {
    const char *name;
    const char *text;
    UprofThreadTimes times;
} times_cases[] = {
    { "usual",        "123 456 7\n",             { true, 123, 456, 7 } },
    { "largest",      "18446744073709551615 0 1", { true, UINT64_MAX, 0, 1 } },
    { "only-waited",  "0 1 0\n",                 { true, 0, 1, 0 } },
    { "newer-kernel", "1 2 3 4\n",               { true, 1, 2, 3 } },
    { "not-counted",  "0 0 0\n",                 { 0 } },
    { "empty",        "",                        { 0 } },
    { "two",          "123 456\n",               { 0 } },
    { "no-number",    "123 456 x\n",             { 0 } },
    { "negative",     "123 -456 7\n",            { 0 } },
    { "too-large",    "18446744073709551616 0 1", { 0 } },
};

static const struct {
    const char *name;
    const char *text;
    UprofThreadWhere where;
    UprofThreadCall call;
} where_cases[] = {
    { "running",      "running\n",                        UPROF_THREAD_RUNNING, { 0 } },
    { "ioctl",        "16 0x1c 0xae80 0x0 0x0 0x0 0x0 0x7ffd 0x7f1b\n",
                                                          UPROF_THREAD_IN_CALL, { 16, { 0x1c, 0xae80 } } },
    { "call-zero",    "0 0x0 0xffffffffffffffff 0x1",     UPROF_THREAD_IN_CALL, { 0, { 0, UINT64_MAX } } },
    { "elsewhere",    "-1 0x7ffd 0x7f1b\n",               UPROF_THREAD_BLOCKED, { 0 } },
    { "no-stack",     "-1 0x0 0x0\n",                     UPROF_THREAD_GONE,    { 0 } },
    { "empty",        "",                                 UPROF_THREAD_UNKNOWN, { 0 } },
    { "number-only",  "16\n",                             UPROF_THREAD_UNKNOWN, { 0 } },
    { "one-argument", "16 0x1c\n",                        UPROF_THREAD_UNKNOWN, { 0 } },
    { "no-prefix",    "16 1c ae80 0x0\n",                 UPROF_THREAD_UNKNOWN, { 0 } },
    { "bare-prefix",  "16 0x 0xae80 0x0\n",               UPROF_THREAD_UNKNOWN, { 0 } },
    { "too-large",    "16 0x10000000000000000 0x0\n",     UPROF_THREAD_UNKNOWN, { 0 } },
    { "word",         "sleeping\n",                       UPROF_THREAD_UNKNOWN, { 0 } },
};
/* clang-format on */

static int
write_file(const char *text)
{
    const int fd = memfd_create("test", MFD_CLOEXEC);

    g_assert_cmpint(write(fd, text, strlen(text)), ==, (ssize_t)strlen(text));
    return fd;
}

static void
test_parse_times(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_autoptr(UprofThread) thread = g_new0(UprofThread, 1);
    UprofThreadTimes times = { .slices = 42 };

    thread->schedstat_fd = write_file(times_cases[i].text);
    thread->stat_fd = thread->syscall_fd = -1;
    g_assert_true(uprof_thread_times(thread, &times));
    assert_times(&times, &times_cases[i].times);
}

static void
test_parse_where(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_autoptr(UprofThread) thread = g_new0(UprofThread, 1);
    UprofThreadCall call = { 0 };

    thread->schedstat_fd = thread->stat_fd = -1;
    thread->syscall_fd = write_file(where_cases[i].text);
    g_assert_cmpint(uprof_thread_where(thread, &call), ==, where_cases[i].where);
    g_assert_cmpmem(&call, sizeof(call), &where_cases[i].call, sizeof(call));
}

/* If /proc has no files of the thread, all facts are unknown. This is not an error. */
static void
test_no_files(void)
{
    g_autoptr(UprofThread) thread = g_new0(UprofThread, 1);
    UprofThreadTimes times = { .slices = 42 };

    thread->schedstat_fd = thread->stat_fd = thread->syscall_fd = -1;
    g_assert_true(uprof_thread_times(thread, &times));
    g_assert_false(times.is_known);
    g_assert_cmpuint(times.slices, ==, 0);
    g_assert_cmpint(uprof_thread_where(thread, NULL), ==, UPROF_THREAD_UNKNOWN);
    g_assert_false(uprof_thread_is_asleep(thread));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    signal(SIGPIPE, SIG_IGN);

    g_test_add_func("/thread/busy", test_busy);
    g_test_add_func("/thread/blocked", test_blocked);
    g_test_add_func("/thread/stopped", test_stopped);
    g_test_add_func("/thread/gone", test_gone);
    g_test_add_func("/thread/threads", test_threads);
    g_test_add_func("/thread/zombie-status", test_zombie_status);
    g_test_add_func("/thread/no-right", test_no_right);
    g_test_add_func("/thread/no-files", test_no_files);
    for (size_t i = 0; i < G_N_ELEMENTS(times_cases); i++) {
        g_autofree char *path = g_strdup_printf("/thread/times/%s", times_cases[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_parse_times);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(where_cases); i++) {
        g_autofree char *path = g_strdup_printf("/thread/where/%s", where_cases[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_parse_where);
    }
    return g_test_run();
}
