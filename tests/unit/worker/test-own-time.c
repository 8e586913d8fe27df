/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../../src/worker/own-time-priv.h"

#include "uprof/clock.h"
#include "uprof/process-stat.h"

#include <glib.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIMIT_MS = 300, STEP_US = 5000 };

static void
pin_to_one_processor(void)
{
    cpu_set_t one;

    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    g_assert_cmpint(sched_setaffinity(0, sizeof(one), &one), ==, 0);
}

static pid_t
start_busy(void)
{
    const pid_t pid = fork();

    if (pid == 0) {
        /* a test that fails must not leave it behind */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        pin_to_one_processor();
        for (volatile unsigned i = 0;; i++)
            ;
    }
    g_assert_cmpint(pid, >, 0);
    return pid;
}

static void
end_process(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* Returns: milliseconds from @start_ns until the limit was reached */
static uint64_t
wait_until_over(UprofOwnTime *time, uint64_t start_ns)
{
    while (!uprof_own_time_is_over(time, LIMIT_MS * UPROF_NS_PER_MS))
        g_usleep(STEP_US);
    return (uprof_clock_now_ns() - start_ns) / UPROF_NS_PER_MS;
}

/* A clock that was not started never reaches a limit. */
static void
test_off(void)
{
    UprofOwnTime time = { 0 };

    g_assert_false(uprof_own_time_is_over(&time, 0));
}

/* Time passes also while the process sleeps or is stopped. */
static void
test_stopped(void)
{
    UprofOwnTime time;
    const pid_t pid = start_busy();

    kill(pid, SIGSTOP);
    const uint64_t start_ns = uprof_clock_now_ns();
    uprof_own_time_start(&time, pid);
    g_assert_false(uprof_own_time_is_over(&time, LIMIT_MS * UPROF_NS_PER_MS));
    g_assert_cmpuint(wait_until_over(&time, start_ns), >=, LIMIT_MS - 1);
    end_process(pid);
}

/* A pause of the clock does not count. */
static void
test_paused(void)
{
    UprofOwnTime time = { 0 };
    const pid_t pid = start_busy();

    kill(pid, SIGSTOP);
    for (unsigned i = 0; i < 2; i++) {
        uprof_own_time_resume(&time, pid);
        g_assert_false(uprof_own_time_is_over(&time, LIMIT_MS * UPROF_NS_PER_MS));
        g_usleep(LIMIT_MS * 1000 / 3);
        uprof_own_time_pause(&time);
        g_usleep(LIMIT_MS * 1000);
        g_assert_false(uprof_own_time_is_over(&time, 1));
    }
    uprof_own_time_resume(&time, pid);
    g_assert_true(uprof_own_time_is_over(&time, (uint64_t)LIMIT_MS / 2 * UPROF_NS_PER_MS));
    uprof_own_time_start(&time, pid);
    g_assert_false(uprof_own_time_is_over(&time, (uint64_t)LIMIT_MS / 2 * UPROF_NS_PER_MS));
    end_process(pid);
}

/* Time in which the process waits for a processor does not count. */
static void
test_waiting(void)
{
    cpu_set_t all;
    UprofOwnTime time;
    pid_t pids[4];

    g_assert_cmpint(sched_getaffinity(0, sizeof(all), &all), ==, 0);
    pin_to_one_processor();
    for (size_t i = 0; i < G_N_ELEMENTS(pids); i++)
        pids[i] = start_busy();
    sched_setaffinity(0, sizeof(all), &all);
    const uint64_t start_ns = uprof_clock_now_ns();
    uprof_own_time_start(&time, pids[0]);
    const uint64_t before_ns = uprof_process_stat_run_delay(pids[0]);
    const uint64_t passed_ms = wait_until_over(&time, start_ns);
    const uint64_t waited_ms =
        (uprof_process_stat_run_delay(pids[0]) - before_ns) / UPROF_NS_PER_MS;
    for (size_t i = 0; i < G_N_ELEMENTS(pids); i++)
        end_process(pids[i]);
    g_assert_cmpuint(waited_ms, >, LIMIT_MS / 2);
    g_assert_cmpuint(passed_ms, >=, LIMIT_MS + waited_ms / 2);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/own-time/off", test_off);
    g_test_add_func("/own-time/stopped", test_stopped);
    g_test_add_func("/own-time/paused", test_paused);
    g_test_add_func("/own-time/waiting", test_waiting);
    return g_test_run();
}
