/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/signal-mask.h"

void
uprof_signal_mask_block(sigset_t *before)
{
    sigset_t all;

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, before);
}

bool
uprof_signal_mask_run(const char *name, GThreadFunc work, gpointer data, GError **error)
{
    sigset_t before;

    uprof_signal_mask_block(&before);
    GThread *thread = g_thread_try_new(name, work, data, error);
    if (thread)
        g_thread_join(thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return thread != NULL;
}

bool
uprof_signal_end_is_pending(void)
{
    static const int ending[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
    sigset_t pending;

    sigpending(&pending);
    for (size_t i = 0; i < G_N_ELEMENTS(ending); i++)
        if (sigismember(&pending, ending[i]))
            return true;
    return false;
}
