/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/time-limit.h"

#include "uprof/clock.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

/* older versions of glibc have no name for it */
#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

/* The timer of one thread, and the jump that abandons its work. */
typedef struct {
    timer_t timer;
    pid_t process; /* that made the timer; a fork() copies no timers */
    bool has_timer;
    volatile sig_atomic_t is_running; /* the work runs, and may be abandoned */
    sigjmp_buf out;                   /* where the thread continues after it has abandoned work */
} Limit;

static void free_limit(gpointer data);

static GPrivate own_limit = G_PRIVATE_INIT(free_limit);
/* A copy of own_limit. A signal handler may read it, because the thread has used it before. */
static _Thread_local Limit *current;

static void
free_limit(gpointer data)
{
    Limit *limit = data;

    if (limit->has_timer && limit->process == getpid())
        timer_delete(limit->timer);
    current = NULL;
    g_free(limit);
}

/* SIGRTMIN is not a constant in glibc. */
static int
limit_signal(void)
{
    return SIGRTMIN + 2;
}

static void
abandon_work(int number)
{
    Limit *limit = current;

    if (!limit || !limit->is_running)
        return;
    limit->is_running = 0;
    siglongjmp(limit->out, 1);
}

static void
install_handler(void)
{
    const struct sigaction action = { .sa_handler = abandon_work, .sa_flags = SA_RESTART };

    sigaction(limit_signal(), &action, NULL);
}

static Limit *
find_limit(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    Limit *limit = g_private_get(&own_limit);

    if (limit && limit->process == getpid())
        return limit;
    pthread_once(&once, install_handler);
    limit = g_new0(Limit, 1);
    g_private_replace(&own_limit, limit);
    current = limit;
    struct sigevent event = {
        .sigev_notify = SIGEV_THREAD_ID,
        .sigev_signo = limit_signal(),
        .sigev_notify_thread_id = gettid(),
    };
    limit->process = getpid();
    limit->has_timer = timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &limit->timer) == 0;
    return limit;
}

static bool
set_timer(const Limit *limit, uint64_t cpu_ns)
{
    const struct itimerspec when = {
        .it_value = { .tv_sec = (time_t)(cpu_ns / UPROF_NS_PER_S),
                      .tv_nsec = (long)(cpu_ns % UPROF_NS_PER_S) },
    };

    return timer_settime(limit->timer, 0, &when, NULL) == 0;
}

/* A function of its own, because a jump makes local variables of the function undefined. */
static __attribute__((noinline)) bool
run_timed(Limit *limit, uint64_t cpu_ns, void (*work)(void *data), void *data)
{
    volatile bool is_done = false;

    /* the jump also restores the current signal mask, in which the signal is not blocked */
    if (sigsetjmp(limit->out, 1) == 0) {
        limit->is_running = 1;
        if (set_timer(limit, cpu_ns)) {
            work(data);
            is_done = true;
        }
        limit->is_running = 0;
    }
    return is_done;
}

bool
uprof_time_limit_run(uint64_t cpu_ns, void (*work)(void *data), void *data)
{
    Limit *limit = find_limit();
    sigset_t signals, before;

    if (!limit->has_timer || cpu_ns == 0)
        return false;
    sigemptyset(&signals);
    sigaddset(&signals, limit_signal());
    pthread_sigmask(SIG_UNBLOCK, &signals, &before);
    const bool is_done = run_timed(limit, cpu_ns, work, data);
    set_timer(limit, 0);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return is_done;
}
