/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/thread-number.h"

#include <glib.h>
#include <pthread.h>
#include <unistd.h>

static _Thread_local pid_t number; /* 0: not asked yet */

/* The only thread of a child of fork() has another number than the thread that has called fork().
 */
static void
forget_number(void)
{
    number = 0;
}

pid_t
uprof_thread_number(void)
{
    static gsize is_ready;

    if (number != 0)
        return number;
    if (g_once_init_enter(&is_ready)) {
        pthread_atfork(NULL, NULL, forget_number);
        g_once_init_leave(&is_ready, 1);
    }
    number = gettid();
    return number;
}
