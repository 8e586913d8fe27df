/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * tracer-priv.h - holds one thread of another process for microseconds, by ptrace
 *
 * Attached for the length of a hold only: a thread that is traced stops at
 * every signal, and QEMU kicks its vCPU threads with signals. No signal is
 * swallowed: one that stopped the thread before our interrupt did is handed on
 * at the release. Interrupted system calls of the thread restart as ptrace lets
 * them; nothing is written to it. Never PTRACE_O_EXITKILL: a tracer that dies,
 * however it does, lets its thread run on.
 *
 * Tracing belongs to a thread: the one that has stopped makes all other calls
 * for that tracee. No other thread of the program may wait for "any" child
 * meanwhile. What a held thread is, and what is read in the hold, is not known
 * here. Nothing here allocates.
 */
#pragma once

#include "thread-priv.h"

#include <time.h>

/**
 * UprofTraceAnswer:
 * @UPROF_TRACE_STOPPED: by us; to be released
 * @UPROF_TRACE_RELEASED: it runs on, not traced
 * @UPROF_TRACE_LATE: attached but not stopped: it has not stopped in time, or was
 *   killed and has not ended yet; to be settled
 * @UPROF_TRACE_GROUP_STOP: somebody else has stopped the process, which stays
 *   so; not traced
 * @UPROF_TRACE_TAKEN: somebody else traces it
 * @UPROF_TRACE_DENIED: capability, yama's ptrace_scope or a security module;
 *   also a tracer outside of our PID namespace, or one that left as we looked
 * @UPROF_TRACE_GONE: the thread has ended, and is reaped
 */
typedef enum {
    UPROF_TRACE_STOPPED,
    UPROF_TRACE_RELEASED,
    UPROF_TRACE_LATE,
    UPROF_TRACE_GROUP_STOP,
    UPROF_TRACE_TAKEN,
    UPROF_TRACE_DENIED,
    UPROF_TRACE_GONE,
} UprofTraceAnswer;

typedef enum { UPROF_TRACEE_FREE, UPROF_TRACEE_STOPPED, UPROF_TRACEE_LATE } UprofTraceeState;

/**
 * UprofTracee: begins as `{ .thread = TID }`
 * @thread: of another process; that the number still means the same thread is the caller's care
 * @state: whether it is attached
 * @signal: that stopped it and is handed on at the release; 0: our interrupt
 * @owner: the thread of ours that traces it, unless it is free
 * @taken_by: after %UPROF_TRACE_TAKEN: who traces it
 * @asked_ns: of the last stop, when it was asked for: until then the thread ran undisturbed;
 *   if a signal has stopped it, when it was attached
 * @freed_ns: of that stop, when the thread was let go, or was found killed; 0: not yet
 * @looked_ns: of a late one: when it had last not stopped
 * @lost_ns: how long it has stood still, at most, after stops that were given up, in
 *   all; for the caller to set back, and to add other stops to that came to nothing
 */
typedef struct {
    pid_t thread;
    UprofTraceeState state;
    int signal;
    pid_t owner;
    pid_t taken_by;
    uint64_t asked_ns;
    uint64_t freed_ns;
    uint64_t looked_ns;
    uint64_t lost_ns;
} UprofTracee;

/**
 * UprofTracer: what bounds the waits of one tracing thread
 * @process, @thread: whose timer it is
 * @has_timer: false if the kernel gave none (RLIMIT_SIGPENDING): waits poll then
 */
typedef struct {
    pid_t process;
    pid_t thread;
    bool has_timer;
    timer_t timer;
} UprofTracer;

/**
 * uprof_tracer_init:
 *
 * Takes a real-time signal of the process, SIGRTMIN + 1, for all tracers. Its
 * handler does nothing and stays.
 */
void uprof_tracer_init(UprofTracer *tracer);

/** uprof_tracer_clear: stops the timer; detaches nothing */
void uprof_tracer_clear(UprofTracer *tracer);

/**
 * uprof_tracer_disarm: stops the timer, after a hold; half a microsecond
 *
 * Left running it would ring, ten thousand times a second, in the waits of other
 * tracers of this thread too.
 */
void uprof_tracer_disarm(const UprofTracer *tracer);

/**
 * uprof_tracee_stop:
 * @tracer: of the calling thread; if it was another's, it becomes this one's
 * @tracee: free, or late: then it is settled first
 * @limit_ns: how long to wait for the stop, from the call
 *
 * Attaches, interrupts and waits. A thread that runs, or sleeps where signals
 * wake it, stops in microseconds; one in uninterruptible sleep, or that gets no
 * CPU, does later. The wait is waitpid(), asleep, ended by a timer of this
 * thread: the timer is set here and runs until uprof_tracer_disarm(), but its signal
 * is let through in the wait alone and blocked in this thread otherwise, so
 * that no other system call of the thread sees an EINTR of it, and no later
 * stop is hurt by an earlier one's timer. Other signals do not end the wait.
 *
 * Returns: all but %UPROF_TRACE_RELEASED
 */
UprofTraceAnswer uprof_tracee_stop(UprofTracer *tracer, UprofTracee *tracee, uint64_t limit_ns);

/**
 * uprof_tracee_release: in the thread that stopped it
 * @tracee: stopped; or free, which does nothing
 *
 * Returns: %UPROF_TRACE_RELEASED; or, if it was killed meanwhile,
 *   %UPROF_TRACE_GONE, or %UPROF_TRACE_LATE until it has ended
 */
UprofTraceAnswer uprof_tracee_release(UprofTracee *tracee);

/**
 * uprof_tracee_settle: in the thread that tried to stop it
 * @tracee: late; or free, which does nothing
 *
 * Looks, without waiting, whether a late one has stopped or ended, and lets go
 * of it at once. To be called now and then for as long as there is one: until
 * then the thread stops as soon as it can and stays so, and a dead one remains
 * a zombie, which keeps its process from ending. What never stops can be let go
 * of in one way only: as the tracing thread ends, the kernel detaches it, and
 * drops the interrupt; @tracee then begins anew.
 *
 * Returns: %UPROF_TRACE_LATE if it is so still; else %UPROF_TRACE_RELEASED,
 *   %UPROF_TRACE_GROUP_STOP or %UPROF_TRACE_GONE
 */
UprofTraceAnswer uprof_tracee_settle(UprofTracee *tracee);

/**
 * uprof_tracee_call: in the hold, in the thread that stopped it
 * @tracee: stopped
 * @call: (out): the system call that the stop has interrupted
 * @result: (out): what it is about to return, as in the kernel: -errno, ERESTARTSYS among it
 *
 * Returns: false, outputs untouched, if it was in none, or on hosts other than x86-64
 */
bool uprof_tracee_call(const UprofTracee *tracee, UprofThreadCall *call, int64_t *result);
