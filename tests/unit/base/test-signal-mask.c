/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/signal-mask.h"

#include <stdbool.h>

static bool
is_blocked(int number)
{
    sigset_t blocked;

    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    return sigismember(&blocked, number) == 1;
}

static gpointer
look_at_mask(gpointer data)
{
    const GThread **thread = data;

    g_assert_true(is_blocked(SIGTSTP));
    g_assert_true(is_blocked(SIGINT));
    g_assert_true(is_blocked(SIGRTMAX));
    *thread = g_thread_self();
    return data;
}

static void
test_block(void)
{
    sigset_t before;

    g_assert_false(is_blocked(SIGTSTP));
    uprof_signal_mask_block(&before);
    g_assert_true(is_blocked(SIGTSTP));
    g_assert_true(is_blocked(SIGINT));
    uprof_signal_mask_block(NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    g_assert_false(is_blocked(SIGTSTP));
}

static void
test_run(void)
{
    const GThread *thread = NULL;

    g_assert_true(uprof_signal_mask_run("blocked", look_at_mask, &thread, NULL));
    g_assert_nonnull(thread);
    g_assert_true(thread != g_thread_self());
    g_assert_false(is_blocked(SIGTSTP));
}

static void
test_pending_signal_interrupts(void)
{
    sigset_t term;
    int number;

    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &term, NULL);
    g_assert_false(uprof_signal_end_is_pending());
    raise(SIGTERM);
    g_assert_true(uprof_signal_end_is_pending());
    sigwait(&term, &number);
    g_assert_false(uprof_signal_end_is_pending());
    pthread_sigmask(SIG_UNBLOCK, &term, NULL);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/signal-mask/block-and-restore", test_block);
    g_test_add_func("/signal-mask/run-in-a-thread", test_run);
    g_test_add_func("/signal-mask/pending-end", test_pending_signal_interrupts);
    return g_test_run();
}
