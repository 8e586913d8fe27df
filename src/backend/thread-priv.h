/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * thread-priv.h - what /proc says of one thread, without touching it
 *
 * For the vCPU threads of QEMU, and for looking before a hold. The files are
 * opened once and read again and again; what was opened stays bound to that one
 * thread, whoever gets its number later. Only opening and listing allocate.
 * What a thread is for, and what a system call means, is not known here.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    UPROF_THREAD_NAME_BYTES = 16, /* TASK_COMM_LEN of Linux, with its NUL */
    UPROF_THREADS_MAX = 65536,    /* of one process */
};

/**
 * UprofThread:
 * @process, @thread: their numbers
 * @start: of the thread, in clock ticks after the boot (/proc/PID/task/TID/stat, field 22)
 * @name: the thread's own, raw bytes
 * @schedstat_fd, @stat_fd, @syscall_fd: -1 if there is no such file, or no right to open it
 */
typedef struct {
    pid_t process;
    pid_t thread;
    uint64_t start;
    char name[UPROF_THREAD_NAME_BYTES];
    int schedstat_fd;
    int stat_fd;
    int syscall_fd;
} UprofThread;

/**
 * UprofThreadTimes:
 * @is_known: false where the kernel does not count (no CONFIG_SCHED_INFO): all is 0
 * @run_ns: on a CPU; while the thread runs, brought up to date at the scheduler's ticks only
 * @wait_ns: runnable, but waiting for a CPU
 * @slices: times it was given one
 *
 * A thread of which none of the three has moved may have run all the time:
 * uprof_thread_where() tells.
 */
typedef struct {
    bool is_known;
    uint64_t run_ns;
    uint64_t wait_ns;
    uint64_t slices;
} UprofThreadTimes;

/**
 * UprofThreadWhere:
 * @UPROF_THREAD_RUNNING: on a CPU, or waiting for one
 * @UPROF_THREAD_IN_CALL: sleeps in a system call
 * @UPROF_THREAD_BLOCKED: sleeps or is stopped elsewhere: a page fault, a signal
 * @UPROF_THREAD_UNKNOWN: the kernel does not say, or not to us
 * @UPROF_THREAD_GONE: the thread has ended
 */
typedef enum {
    UPROF_THREAD_RUNNING,
    UPROF_THREAD_IN_CALL,
    UPROF_THREAD_BLOCKED,
    UPROF_THREAD_UNKNOWN,
    UPROF_THREAD_GONE,
} UprofThreadWhere;

/**
 * UprofThreadCall: a system call
 * @number: by the thread's own architecture
 * @args: the first two
 */
typedef struct {
    uint64_t number;
    uint64_t args[2];
} UprofThreadCall;

/**
 * UprofThreadStatus:
 * @process: to which the thread belongs
 * @tracer: the thread that traces it; 0: none, or none in our PID namespace
 * @has_ended: a zombie, or on the way out
 * @is_stopped: by a signal, not by a tracer
 */
typedef struct {
    pid_t process;
    pid_t tracer;
    bool has_ended;
    bool is_stopped;
} UprofThreadStatus;

/**
 * uprof_thread_open:
 *
 * Returns: (transfer full) (nullable): %NULL with %UPROF_ERROR_NOT_FOUND if
 *   @process has no such thread (any more)
 */
UprofThread *uprof_thread_open(pid_t process, pid_t thread, GError **error);
void uprof_thread_close(UprofThread *thread);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofThread, uprof_thread_close)

/**
 * uprof_thread_times:
 * @times: (out): untouched if the thread has ended
 *
 * One read of about a microsecond; never waits, allocates nothing.
 *
 * Returns: false if the thread has ended
 */
bool uprof_thread_times(const UprofThread *thread, UprofThreadTimes *times);

/**
 * uprof_thread_where:
 * @call: (out) (optional): where it sleeps; untouched unless %UPROF_THREAD_IN_CALL
 *
 * Needs the rights of a tracer. One read of one to three microseconds, with no
 * effect on the thread; allocates nothing.
 */
UprofThreadWhere uprof_thread_where(const UprofThread *thread, UprofThreadCall *call);

/**
 * uprof_thread_is_asleep:
 *
 * To be asked of a thread that was just let go by its tracer: until it has got a
 * CPU again, uprof_thread_where() says that it sleeps where it was stopped. One
 * read of one to three microseconds, with no effect on the thread; allocates nothing.
 *
 * Returns: false if it runs, waits for a CPU, is stopped or is gone
 */
bool uprof_thread_is_asleep(const UprofThread *thread);

/**
 * uprof_thread_status:
 * @thread: number of any thread on this host
 * @status: (out): untouched on failure
 *
 * Opens, reads and closes; allocates nothing.
 *
 * Returns: false if there is no such thread, or none that we may see
 */
bool uprof_thread_status(pid_t thread, UprofThreadStatus *status);

/**
 * uprof_thread_list:
 *
 * Returns: (transfer full) (nullable) (element-type pid_t): the threads of
 *   @process at about this moment, rising; %NULL with %UPROF_ERROR_NOT_FOUND if it is gone
 */
GArray *uprof_thread_list(pid_t process, GError **error);
