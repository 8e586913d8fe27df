/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/time-limit.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "uprof/clock.h"
#include "uprof/signal-mask.h"

static void
count(void *data)
{
    ++*(unsigned *)data;
}

static void
spin(void *data)
{
    for (;;)
        ++*(volatile unsigned *)data;
}

static void
test_ends(void)
{
    unsigned n = 0;

    for (unsigned i = 0; i < 1000; i++)
        g_assert_true(uprof_time_limit_run(UPROF_NS_PER_S, count, &n));
    g_assert_cmpuint(n, ==, 1000);
}

static void
test_abandoned(void)
{
    unsigned n = 0;

    for (unsigned i = 0; i < 10; i++) {
        const uint64_t began_ns = uprof_clock_thread_ns();
        g_assert_false(uprof_time_limit_run(5 * UPROF_NS_PER_MS, spin, &n));
        g_assert_cmpuint(uprof_clock_thread_ns() - began_ns, >=, 4 * UPROF_NS_PER_MS);
        g_assert_cmpuint(uprof_clock_thread_ns() - began_ns, <, UPROF_NS_PER_S);
    }
    g_assert_cmpuint(n, >, 0);
    g_assert_true(uprof_time_limit_run(UPROF_NS_PER_S, count, &n));
}

/* If the limit is 0, the work does not run. */
static void
test_no_time(void)
{
    unsigned n = 0;

    g_assert_false(uprof_time_limit_run(0, count, &n));
    g_assert_cmpuint(n, ==, 0);
}

static gpointer
run_both(gpointer data)
{
    test_ends();
    test_abandoned();
    return NULL;
}

/* The limit also works in threads that block all signals, and does not change their mask. */
static void
test_blocked(void)
{
    sigset_t before, after;

    uprof_signal_mask_run("limit", run_both, NULL, NULL);
    uprof_signal_mask_block(&before);
    test_abandoned();
    pthread_sigmask(SIG_SETMASK, &before, &after);
    g_assert_cmpint(sigismember(&after, SIGRTMIN + 2), ==, 1);
    g_assert_cmpint(sigismember(&after, SIGTERM), ==, 1);
}

/* Each thread has its own timer. */
static void
test_threads(void)
{
    GThread *threads[4];

    for (unsigned i = 0; i < G_N_ELEMENTS(threads); i++)
        threads[i] = g_thread_new("limit", run_both, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(threads); i++)
        g_thread_join(threads[i]);
}

/* A child process makes a timer of its own. */
static void
test_fork(void)
{
    unsigned n = 0;
    int status;

    g_assert_true(uprof_time_limit_run(UPROF_NS_PER_S, count, &n));
    const pid_t pid = fork();
    if (pid == 0)
        _exit(uprof_time_limit_run(5 * UPROF_NS_PER_MS, spin, &n) ? 1 : 0);
    g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
    g_assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    test_abandoned();
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/time-limit/ends", test_ends);
    g_test_add_func("/time-limit/abandoned", test_abandoned);
    g_test_add_func("/time-limit/no-time", test_no_time);
    g_test_add_func("/time-limit/blocked", test_blocked);
    g_test_add_func("/time-limit/threads", test_threads);
    g_test_add_func("/time-limit/fork", test_fork);
    return g_test_run();
}
