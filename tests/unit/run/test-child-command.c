/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/child-command.h"

#include "uprof/error.h"

#include <signal.h>
#include <sys/resource.h>

static int
run_shell(const char *script)
{
    char *const words[] = { (char *)"sh", (char *)"-c", (char *)script, NULL };
    UprofChild child = { 0 };
    g_autoptr(GError) error = NULL;

    g_assert_true(uprof_child_start(&child, words, &error));
    g_assert_no_error(error);
    const int status = uprof_child_wait(&child);
    g_assert_true(uprof_child_has_ended(&child));
    g_assert_cmpint(uprof_child_wait(&child), ==, status);
    return status;
}

static void
test_status(void)
{
    g_assert_cmpint(run_shell("exit 0"), ==, 0);
    g_assert_cmpint(run_shell("exit 7"), ==, 7);
    g_assert_cmpint(run_shell("kill -TERM $$"), ==, 128 + SIGTERM);
}

/* The command has the limits and signals of the caller, whatever the program has changed. */
static void
test_caller(void)
{
    struct rlimit limit;
    sigset_t all, before;

    g_assert_cmpint(getrlimit(RLIMIT_NOFILE, &limit), ==, 0);
    g_autofree char *script =
        g_strdup_printf("[ $(ulimit -Sn) = %lu ]", (unsigned long)limit.rlim_cur);
    uprof_child_raise_files();
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    signal(SIGPIPE, SIG_IGN);
    g_assert_cmpint(run_shell(script), ==, 0);
    g_assert_cmpint(run_shell("kill -PIPE $$"), ==, 128 + SIGPIPE);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    g_assert_cmpint(run_shell("[ \"$UPROF_TEST_WORD\" = 'a b' ]"), ==, 0);
}

static void
test_signal(void)
{
    char *const words[] = { (char *)"sleep", (char *)"60", NULL };
    UprofChild child = { 0 };

    uprof_child_signal(&child, SIGTERM); /* nothing was started */
    g_assert_false(uprof_child_has_ended(&child));
    g_assert_cmpint(uprof_child_wait(&child), ==, 0);
    g_assert_true(uprof_child_start(&child, words, NULL));
    g_assert_false(uprof_child_has_ended(&child));
    uprof_child_signal(&child, SIGTERM);
    g_assert_cmpint(uprof_child_wait(&child), ==, 128 + SIGTERM);
    uprof_child_signal(&child, SIGTERM); /* its number may belong to another process now */
}

static void
test_missing(void)
{
    char *const words[] = { (char *)"/nonexistent/\x1b", NULL };
    g_autoptr(GError) error = NULL;
    g_autoptr(GError) failure = NULL;
    UprofChild child = { 0 };

    g_assert_false(uprof_child_is_there(words, &error));
    g_assert_cmpstr(error->message, ==, "cannot run '/nonexistent/?': there is no such program");
    g_assert_false(uprof_child_start(&child, words, &failure));
    g_assert_error(failure, UPROF_ERROR, UPROF_ERROR_FAILED);
    g_assert_true(uprof_child_has_ended(&child));
    g_assert_cmpint(uprof_child_wait(&child), ==, UPROF_CHILD_NOT_FOUND);
}

int
main(int argc, char **argv)
{
    g_setenv("UPROF_TEST_WORD", "a b", true);
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/child-command/status", test_status);
    g_test_add_func("/child-command/caller", test_caller);
    g_test_add_func("/child-command/signal", test_signal);
    g_test_add_func("/child-command/missing", test_missing);
    return g_test_run();
}
