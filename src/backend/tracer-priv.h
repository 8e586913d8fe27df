/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * tracer-priv.h - holds one thread of another process for microseconds, by ptrace
 *
 * The tracer is attached for the length of a hold only, because a traced thread stops at every
 * signal, and QEMU kicks its vCPU threads with signals. No signal is lost: if a signal stopped the
 * thread before the tracer's interrupt, the release delivers the signal. Interrupted system calls
 * of the thread restart as after every stop by ptrace. Nothing is written to the thread.
 * PTRACE_O_EXITKILL is never set: if the tracer dies, its tracee runs on.
 *
 * Linux binds a tracee to one thread: the thread that has stopped it makes all other calls for it.
 * No other thread of the program may wait for "any" child meanwhile. Nothing here allocates.
 */
#pragma once

#include "thread-priv.h"

#include <time.h>

typedef enum {
    /* stopped by this tracer; must be released */
    UPROF_TRACE_STOPPED,
    /* it runs on and is not traced */
    UPROF_TRACE_RELEASED,
    /*
     * Attached but not stopped: it did not stop in time, or was killed and has not ended
     * yet. Call uprof_tracee_release_late() until that changes.
     */
    UPROF_TRACE_LATE,
    /* a signal has stopped the process, which stays stopped; not traced */
    UPROF_TRACE_GROUP_STOP,
    /* another process traces it */
    UPROF_TRACE_OTHER_TRACER,
    /*
     * A missing capability, yama's ptrace_scope or a security module. Also a tracer outside
     * of this PID namespace, or a tracer that detached just now.
     */
    UPROF_TRACE_DENIED,
    /* the thread has ended and is reaped */
    UPROF_TRACE_GONE,
} UprofTraceAnswer;

typedef enum {
    UPROF_TRACEE_DETACHED,
    UPROF_TRACEE_STOPPED, /* attached and stopped */
    UPROF_TRACEE_LATE,    /* attached, not stopped yet, or killed and not ended yet */
} UprofTraceeState;

/** UprofTracee: begins as `{ .thread = TID }` */
typedef struct {
    /* of another process; the caller makes sure that the number still means the same thread */
    pid_t thread;
    UprofTraceeState state;
    /* the signal that stopped it, delivered at the release; 0: the interrupt stopped it */
    int signal;
    /* the thread of this process that traces it; has a meaning only while it is attached */
    pid_t owner;
    /* after %UPROF_TRACE_OTHER_TRACER: the thread that traces it */
    pid_t other_tracer;
    /*
     * monotonic: time of the last request to stop. The thread ran undisturbed until then. If a
     * signal has stopped the thread: the time of the attach.
     */
    uint64_t asked_ns;
    /* monotonic: when the last stop ended by detach, or the thread was found killed; 0: not yet */
    uint64_t released_ns;
    /* monotonic: when a late thread was last found not to have stopped */
    uint64_t checked_ns;
    /*
     * An upper bound of the time that the thread has stood still in stops that did not become a
     * hold. The caller sets this to 0, and may add the time of other stops.
     */
    uint64_t lost_ns;
} UprofTracee;

/** UprofTracer: the timer that limits the waits of one tracing thread; all zero: none yet */
typedef struct {
    pid_t process;  /* the process that owns the timer */
    pid_t thread;   /* the thread that the timer signals */
    bool has_timer; /* false if the kernel gave none (RLIMIT_SIGPENDING): waits poll then */
    timer_t timer;
} UprofTracer;

/**
 * uprof_tracer_init:
 *
 * Uses a real-time signal of the process, SIGRTMIN + 1, for all tracers. Its handler does
 * nothing and remains installed.
 */
void uprof_tracer_init(UprofTracer *tracer);

/** uprof_tracer_clear: deletes the timer; detaches nothing */
void uprof_tracer_clear(UprofTracer *tracer);

/**
 * uprof_tracer_disarm: stops the timer, after a hold; takes half a microsecond
 *
 * A running timer would fire ten thousand times a second, and interrupt the waits of other
 * tracers of this thread, too.
 */
void uprof_tracer_disarm(const UprofTracer *tracer);

/**
 * uprof_tracee_stop:
 * @tracer: belongs to the calling thread from now on
 * @tracee: detached, or late: then uprof_tracee_release_late() is called first
 * @limit_ns: how long to wait for the stop, from the call
 *
 * Attaches, interrupts and waits. A thread stops within microseconds if it runs, or sleeps
 * where signals wake it. It stops later if it is in uninterruptible sleep or gets no CPU.
 *
 * The wait sleeps in waitpid(). A timer of this thread ends it; the timer is set here and
 * runs until uprof_tracer_disarm(). Its signal stays unblocked in this thread, which saves two
 * system calls of each hold: until uprof_tracer_disarm(), other system calls of the thread may fail
 * with EINTR. Other signals do not end the wait.
 *
 * Returns: any answer but %UPROF_TRACE_RELEASED
 */
UprofTraceAnswer uprof_tracee_stop(UprofTracer *tracer, UprofTracee *tracee, uint64_t limit_ns);

/**
 * uprof_tracee_release: in the thread that stopped it
 * @tracee: stopped; or detached: nothing happens
 *
 * Returns: %UPROF_TRACE_RELEASED. If it was killed meanwhile, %UPROF_TRACE_GONE, or
 *   %UPROF_TRACE_LATE until it has ended
 */
UprofTraceAnswer uprof_tracee_release(UprofTracee *tracee);

/**
 * uprof_tracee_release_late: in the thread that tried to stop it
 * @tracee: late; or detached: nothing happens
 *
 * Does not wait. If a late thread has stopped or ended, detaches it.
 * Call this now and then as long as the thread is late. A late thread stops as soon as it can,
 * and stays stopped until this call. A dead one remains a zombie until this call, and its process
 * cannot end.
 *
 * Only the end of the tracing thread detaches a thread that never stops: the kernel then detaches
 * it and drops the interrupt. @tracee must be initialized again then.
 *
 * Returns: %UPROF_TRACE_LATE if nothing has changed; else %UPROF_TRACE_RELEASED,
 *   %UPROF_TRACE_GROUP_STOP or %UPROF_TRACE_GONE
 */
UprofTraceAnswer uprof_tracee_release_late(UprofTracee *tracee);

/**
 * uprof_tracee_call: in the hold, in the thread that stopped it
 * @tracee: stopped
 * @call: (out): the system call that the stop has interrupted
 * @result: (out): the value that the call is about to return, as in the kernel: -errno, also
 *   ERESTARTSYS
 *
 * Returns: false, outputs untouched, if it was in no system call, or on hosts other than
 *   x86-64
 */
bool uprof_tracee_call(const UprofTracee *tracee, UprofThreadCall *call, int64_t *result);
