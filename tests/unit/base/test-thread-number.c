/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/thread-number.h"

#include <glib.h>
#include <sys/wait.h>
#include <unistd.h>

static gpointer
ask_twice(gpointer data)
{
    pid_t *own = data;

    g_assert_cmpint(uprof_thread_number(), ==, gettid());
    *own = uprof_thread_number();
    return NULL;
}

static void
test_threads(void)
{
    pid_t other = 0;
    GThread *thread = g_thread_new("other", ask_twice, &other);

    g_thread_join(thread);
    g_assert_cmpint(uprof_thread_number(), ==, getpid());
    g_assert_cmpint(other, >, 0);
    g_assert_cmpint(other, !=, getpid());
}

static void
test_child_process(void)
{
    int status;

    g_assert_cmpint(uprof_thread_number(), ==, getpid());
    const pid_t child = fork();
    if (child == 0)
        _exit(uprof_thread_number() == getpid() ? 0 : 1);
    g_assert_cmpint(waitpid(child, &status, 0), ==, child);
    g_assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/thread-number/threads", test_threads);
    g_test_add_func("/thread-number/child-process", test_child_process);
    return g_test_run();
}
