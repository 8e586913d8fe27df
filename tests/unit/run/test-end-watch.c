/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../../src/run/end-watch-priv.h"

#include "uprof/signal-mask.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SHORT_MS = 10, LONG_MS = 3600 * 1000, LEFT = 42, ENDED = 43, LEFT_IN_CALL = 44 };

typedef struct {
    UprofEndWatch *watch;
    int signals;
} Run;

static gint has_left; /* atomic */

static void
leave(bool in_call, void *data)
{
    g_atomic_int_set(&has_left, 1);
    g_usleep(in_call ? 20 * SHORT_MS * 1000 : 0); /* the main thread must not go on meanwhile */
    _exit(in_call ? LEFT_IN_CALL : *(int *)data);
}

/* A process whose main thread waits for ever: only the watch can end it. */
static G_GNUC_NORETURN void
hang(void)
{
    for (;;)
        pause();
}

/* Runs @act in a process with a watch. Returns: its exit status */
static int
run_alone(void (*act)(Run *run))
{
    int status = LEFT;
    const pid_t child = fork();

    if (child == 0) {
        sigset_t all;
        Run run;
        sigfillset(&all);
        uprof_signal_mask_block(NULL);
        run.signals = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
        run.watch = uprof_end_watch_new(run.signals, leave, &status, NULL);
        act(&run);
        uprof_end_watch_free(run.watch);
        _exit(ENDED);
    }
    g_assert_cmpint(waitpid(child, &status, 0), ==, child);
    g_assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void
hang_with_signal(Run *run)
{
    uprof_end_watch_set_patience(run->watch, SHORT_MS);
    kill(getpid(), SIGTERM);
    hang();
}

static void
read_signal(Run *run)
{
    struct signalfd_siginfo info;

    uprof_end_watch_set_patience(run->watch, LONG_MS);
    kill(getpid(), SIGTERM);
    g_usleep(SHORT_MS * 1000);
    if (read(run->signals, &info, sizeof(info)) != sizeof(info) || info.ssi_signo != SIGTERM)
        _exit(1);
    /* a signal that was read in time cannot end the process later */
    uprof_end_watch_set_patience(run->watch, 0);
    g_usleep(20 * SHORT_MS * 1000);
}

static void
test_unread_signal(void)
{
    g_assert_cmpint(run_alone(hang_with_signal), ==, LEFT);
    g_assert_cmpint(run_alone(read_signal), ==, ENDED);
}

static void
hang_in_call(Run *run)
{
    uprof_end_watch_set_patience(run->watch, LONG_MS);
    uprof_end_watch_begin_call(run->watch, SHORT_MS);
    kill(getpid(), SIGTERM);
    hang();
}

/* The call ends when the watch has left already. */
static void
end_call_late(Run *run)
{
    uprof_end_watch_begin_call(run->watch, SHORT_MS);
    kill(getpid(), SIGTERM);
    while (!g_atomic_int_get(&has_left))
        g_usleep(SHORT_MS * 1000);
    uprof_end_watch_end_call(run->watch);
}

/* Only signals that end the run end the process. */
static void
stop_in_call(Run *run)
{
    uprof_end_watch_begin_call(run->watch, SHORT_MS);
    kill(getpid(), SIGTSTP);
    g_usleep(20 * SHORT_MS * 1000);
    uprof_end_watch_end_call(run->watch);
}

/* No signal, but the time for long calls is over. */
static void
hang_in_limited_call(Run *run)
{
    uprof_end_watch_limit_calls(run->watch, SHORT_MS);
    uprof_end_watch_begin_call(run->watch, SHORT_MS);
    hang();
}

/* The main thread does other things for longer than that. */
static void
work_with_limited_calls(Run *run)
{
    uprof_end_watch_limit_calls(run->watch, SHORT_MS);
    g_usleep(20 * SHORT_MS * 1000);
    uprof_end_watch_begin_call(run->watch, LONG_MS);
    g_usleep(20 * SHORT_MS * 1000);
    uprof_end_watch_end_call(run->watch);
}

static void
end_call_in_time(Run *run)
{
    uprof_end_watch_set_patience(run->watch, LONG_MS);
    uprof_end_watch_begin_call(run->watch, SHORT_MS);
    uprof_end_watch_end_call(run->watch);
    kill(getpid(), SIGTERM);
    g_usleep(20 * SHORT_MS * 1000);
}

static void
test_call(void)
{
    g_assert_cmpint(run_alone(hang_in_call), ==, LEFT_IN_CALL);
    g_assert_cmpint(run_alone(end_call_late), ==, LEFT_IN_CALL);
    g_assert_cmpint(run_alone(hang_in_limited_call), ==, LEFT_IN_CALL);
    g_assert_cmpint(run_alone(work_with_limited_calls), ==, ENDED);
    g_assert_cmpint(run_alone(stop_in_call), ==, ENDED);
    g_assert_cmpint(run_alone(end_call_in_time), ==, ENDED);
    uprof_end_watch_begin_call(NULL, SHORT_MS);
    uprof_end_watch_end_call(NULL);
}

static void
hang_with_limit(Run *run)
{
    uprof_end_watch_limit(run->watch, SHORT_MS);
    hang();
}

static void
end_in_time(Run *run)
{
    uprof_end_watch_limit(run->watch, LONG_MS);
}

static void
lift_limit(Run *run)
{
    uprof_end_watch_limit(run->watch, LONG_MS);
    uprof_end_watch_limit(run->watch, 0);
    g_usleep(SHORT_MS * 1000);
}

static void
test_limit(void)
{
    g_assert_cmpint(run_alone(hang_with_limit), ==, LEFT);
    g_assert_cmpint(run_alone(end_in_time), ==, ENDED);
    g_assert_cmpint(run_alone(lift_limit), ==, ENDED);
    uprof_end_watch_limit(NULL, SHORT_MS);
    uprof_end_watch_free(NULL);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/run/end-watch/unread-signal", test_unread_signal);
    g_test_add_func("/run/end-watch/call", test_call);
    g_test_add_func("/run/end-watch/limit", test_limit);
    return g_test_run();
}
