/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tracer-priv.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "uprof/clock.h"
#include "uprof/thread-number.h"

/* older versions of glibc have no name for it */
#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

enum {
    REPEAT_NS = 100 * 1000, /* the first signal may have come before waitpid() was entered */
    POLL_NS = 50 * 1000,    /* if there is no timer */
};

/* SIGRTMIN is not a constant in glibc. */
static int
timer_signal(void)
{
    return SIGRTMIN + 1;
}

static sigset_t
timer_signal_set(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, timer_signal());
    return set;
}

static void
ignore_timer_signal(int number)
{
}

void
uprof_tracer_init(UprofTracer *tracer)
{
    /* no SA_RESTART, so that waitpid() returns */
    const struct sigaction action = { .sa_handler = ignore_timer_signal };

    *tracer = (UprofTracer){ 0 };
    sigaction(timer_signal(), &action, NULL);
}

void
uprof_tracer_clear(UprofTracer *tracer)
{
    /* fork() copies no timers: in a child the same number may mean another timer */
    if (tracer->has_timer && tracer->process == getpid())
        timer_delete(tracer->timer);
    *tracer = (UprofTracer){ 0 };
}

/*
 * The signal of a timer goes to the thread for which it was created. That thread never blocks the
 * signal: a timer runs in holds only, and no system call of a hold but the wait can be interrupted.
 */
static void
use_own_timer(UprofTracer *tracer)
{
    const pid_t self = uprof_thread_number();
    struct sigevent event = {
        .sigev_notify = SIGEV_THREAD_ID,
        .sigev_signo = timer_signal(),
        .sigev_notify_thread_id = self,
    };
    const sigset_t signals = timer_signal_set();

    if (tracer->thread == self)
        return;
    uprof_tracer_clear(tracer);
    pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
    tracer->process = getpid();
    tracer->thread = self;
    tracer->has_timer = timer_create(CLOCK_MONOTONIC, &event, &tracer->timer) == 0;
}

void
uprof_tracer_disarm(const UprofTracer *tracer)
{
    const struct itimerspec never = { 0 };

    if (tracer->has_timer)
        timer_settime(tracer->timer, 0, &never, NULL);
}

static void
set_timer(const UprofTracer *tracer, uint64_t limit_ns)
{
    const uint64_t at_ns = MAX(limit_ns, 1); /* 0 would disarm the timer */
    const struct itimerspec when = {
        .it_value = { .tv_sec = (time_t)(at_ns / UPROF_NS_PER_S),
                      .tv_nsec = (long)(at_ns % UPROF_NS_PER_S) },
        .it_interval = { .tv_nsec = REPEAT_NS },
    };

    if (tracer->has_timer)
        timer_settime(tracer->timer, 0, &when, NULL);
}

/* Waits as waitpid() does. An error counts if it comes twice: after a single one, the thread may
 * still be attached, and would stay stopped. */
static pid_t
wait_for_tracee(pid_t thread, int *status, int options)
{
    const pid_t waited = waitpid(thread, status, options);

    return waited < 0 && errno != EINTR ? waitpid(thread, status, options) : waited;
}

/*
 * The wait sleeps from the start. Polling with WNOHANG for the first 5 to 40 us did not
 * shorten holds of a running vCPU (median 25 to 31 us with and without). If the vCPU shares
 * the CPU of this thread, polling lengthened holds by just that time.
 *
 * Returns: as waitpid(); 0 at the limit
 */
static pid_t
wait_for_stop(const UprofTracer *tracer, pid_t thread, uint64_t until_ns, int *status)
{
    const int options = __WALL | (tracer->has_timer ? 0 : WNOHANG);
    pid_t waited;
    bool again;

    do {
        waited = wait_for_tracee(thread, status, options);
        const bool is_open = waited == 0 || (waited < 0 && errno == EINTR);
        const uint64_t now_ns = is_open ? uprof_clock_now_ns() : 0;
        again = is_open && now_ns < until_ns;
        if (again && waited == 0)
            uprof_clock_sleep_until(MIN(now_ns + POLL_NS, until_ns));
        if (is_open)
            waited = 0;
    } while (again);
    return waited;
}

/* Returns: false if the thread was killed: it is still attached then, but no longer stopped */
static bool
detach_tracee(UprofTracee *tracee, int signal)
{
    const bool ok = ptrace(PTRACE_DETACH, tracee->thread, NULL, (void *)(intptr_t)signal) == 0;

    tracee->released_ns = tracee->checked_ns = uprof_clock_now_ns();
    tracee->state = ok ? UPROF_TRACEE_DETACHED : UPROF_TRACEE_LATE;
    return ok;
}

/* Sets the state of an attached thread by the result of waitpid() (0: nothing new). */
static UprofTraceAnswer
classify_wait(UprofTracee *tracee, pid_t waited, int status)
{
    if (waited == 0) {
        tracee->state = UPROF_TRACEE_LATE;
        return UPROF_TRACE_LATE;
    }
    if (waited < 0 || !WIFSTOPPED(status)) {
        tracee->state = UPROF_TRACEE_DETACHED;
        return UPROF_TRACE_GONE;
    }
    const int event = status >> 16;
    const int signal = WSTOPSIG(status);
    if (event == PTRACE_EVENT_STOP && signal != SIGTRAP) /* SIGSTOP, TSTP, TTIN, TTOU */
        return detach_tracee(tracee, 0) ? UPROF_TRACE_GROUP_STOP : UPROF_TRACE_LATE;
    tracee->state = UPROF_TRACEE_STOPPED;
    tracee->signal = event == 0 ? signal : 0;
    return UPROF_TRACE_STOPPED;
}

/* Returns: the answer to a PTRACE_SEIZE that failed with @code */
static UprofTraceAnswer
explain_refusal(UprofTracee *tracee, int code)
{
    UprofThreadStatus status;

    if (code == ESRCH)
        return UPROF_TRACE_GONE;
    /* /proc may be hidden (hidepid), or this process has no file descriptor left */
    if (!uprof_thread_status(tracee->thread, &status))
        return kill(tracee->thread, 0) < 0 && errno == ESRCH ? UPROF_TRACE_GONE
                                                             : UPROF_TRACE_DENIED;
    if (status.has_ended) /* the kernel refuses a zombie with EPERM, too */
        return UPROF_TRACE_GONE;
    tracee->other_tracer = status.tracer;
    return status.tracer != 0 ? UPROF_TRACE_OTHER_TRACER : UPROF_TRACE_DENIED;
}

UprofTraceAnswer
uprof_tracee_stop(UprofTracer *tracer, UprofTracee *tracee, uint64_t limit_ns)
{
    int status = 0;

    g_assert(tracee->state != UPROF_TRACEE_STOPPED);
    if (tracee->state == UPROF_TRACEE_LATE) {
        const UprofTraceAnswer answer = uprof_tracee_release_late(tracee);
        if (answer != UPROF_TRACE_RELEASED)
            return answer;
    }
    const uint64_t until_ns = uprof_clock_now_ns() + limit_ns;
    tracee->other_tracer = 0;
    tracee->released_ns = 0;
    use_own_timer(tracer);
    set_timer(tracer, limit_ns);
    const uint64_t attached_ns = uprof_clock_now_ns();
    if (ptrace(PTRACE_SEIZE, tracee->thread, NULL, NULL) < 0)
        return explain_refusal(tracee, errno);
    tracee->owner = tracer->thread;
    tracee->asked_ns = uprof_clock_now_ns();
    /* fails if the thread has ended since, which the wait reports */
    ptrace(PTRACE_INTERRUPT, tracee->thread, NULL, NULL);
    const pid_t waited = wait_for_stop(tracer, tracee->thread, until_ns, &status);
    const UprofTraceAnswer answer = classify_wait(tracee, waited, status);
    if (waited == 0)
        tracee->checked_ns = until_ns; /* it was not stopped at that time */
    /* a signal stops a traced thread, perhaps before the interrupt was asked for */
    if (tracee->signal != 0)
        tracee->asked_ns = attached_ns;
    return answer;
}

UprofTraceAnswer
uprof_tracee_release(UprofTracee *tracee)
{
    g_assert(tracee->state != UPROF_TRACEE_LATE);
    if (tracee->state == UPROF_TRACEE_DETACHED)
        return UPROF_TRACE_RELEASED;
    g_assert(tracee->owner == uprof_thread_number());
    return detach_tracee(tracee, tracee->signal) ? UPROF_TRACE_RELEASED
                                                 : uprof_tracee_release_late(tracee);
}

UprofTraceAnswer
uprof_tracee_release_late(UprofTracee *tracee)
{
    int status = 0;

    g_assert(tracee->state != UPROF_TRACEE_STOPPED);
    if (tracee->state == UPROF_TRACEE_DETACHED)
        return UPROF_TRACE_RELEASED;
    g_assert(tracee->owner == uprof_thread_number());
    const uint64_t since_ns = tracee->checked_ns, now_ns = uprof_clock_now_ns();
    const pid_t waited = wait_for_tracee(tracee->thread, &status, __WALL | WNOHANG);
    const UprofTraceAnswer answer = classify_wait(tracee, waited, status);
    if (waited == 0)
        tracee->checked_ns = now_ns;
    if (answer != UPROF_TRACE_STOPPED)
        return answer;
    const bool is_free = detach_tracee(tracee, tracee->signal);
    tracee->lost_ns += tracee->released_ns - since_ns;
    return is_free ? UPROF_TRACE_RELEASED : UPROF_TRACE_LATE;
}

bool
uprof_tracee_call(const UprofTracee *tracee, UprofThreadCall *call, int64_t *result)
{
#if defined(__x86_64__)
    struct user_regs_struct regs;

    g_assert(tracee->state == UPROF_TRACEE_STOPPED && tracee->owner == uprof_thread_number());
    if (ptrace(PTRACE_GETREGS, tracee->thread, NULL, &regs) < 0 || (int64_t)regs.orig_rax < 0)
        return false;
    *call = (UprofThreadCall){ .number = regs.orig_rax, .args = { regs.rdi, regs.rsi } };
    *result = (int64_t)regs.rax;
    return true;
#else
    return false;
#endif
}
