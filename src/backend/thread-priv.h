/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * thread-priv.h - reads the state of one thread from /proc, without an effect on the thread
 *
 * Used for the vCPU threads of QEMU, mostly before a hold. The files are opened once and read many
 * times. An open file stays bound to its thread, even if another thread gets the same number later.
 * Only uprof_thread_open() allocates. This file does not interpret threads or system calls.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { UPROF_THREAD_NAME_BYTES = 16 }; /* TASK_COMM_LEN of Linux, with its NUL */

/** UprofThread: an open thread */
typedef struct {
    pid_t process;
    pid_t thread;
    uint64_t start; /* in clock ticks since the boot (/proc/PID/task/TID/stat, field 22) */
    char name[UPROF_THREAD_NAME_BYTES]; /* of the thread, raw bytes */
    /* owned; -1: there is no such file, or no permission to open it */
    int schedstat_fd;
    int stat_fd;
    int syscall_fd;
} UprofThread;

/**
 * UprofThreadTimes:
 *
 * A thread may have run all the time although none of the three numbers has changed.
 * uprof_thread_where() shows whether the thread runs.
 */
typedef struct {
    bool is_known;    /* false: the kernel does not count (no CONFIG_SCHED_INFO); all is 0 */
    uint64_t run_ns;  /* on a CPU; while it runs, updated at the scheduler's ticks only */
    uint64_t wait_ns; /* ready to run, but waiting for a CPU */
    uint64_t slices;  /* how often it was given a CPU */
} UprofThreadTimes;

typedef enum {
    UPROF_THREAD_RUNNING, /* on a CPU, or waiting for one */
    UPROF_THREAD_IN_CALL, /* sleeps in a system call */
    UPROF_THREAD_BLOCKED, /* sleeps or is stopped elsewhere: a page fault, a signal */
    UPROF_THREAD_UNKNOWN, /* the kernel does not say, or this process may not know */
    UPROF_THREAD_GONE,    /* it has ended */
} UprofThreadWhere;

/** UprofThreadCall: a system call */
typedef struct {
    uint64_t number;  /* by the architecture of the thread */
    uint64_t args[2]; /* the first two */
} UprofThreadCall;

typedef struct {
    pid_t process;   /* the process of the thread */
    pid_t tracer;    /* the thread that traces it; 0: none, or none in this PID namespace */
    bool has_ended;  /* a zombie, or just ending */
    bool is_stopped; /* a signal has stopped it, not a tracer */
} UprofThreadStatus;

/**
 * uprof_thread_open:
 *
 * Returns: (transfer full) (nullable): %NULL with %UPROF_ERROR_NOT_FOUND if
 *   @process has no such thread
 */
UprofThread *uprof_thread_open(pid_t process, pid_t thread, GError **error);
void uprof_thread_close(UprofThread *thread);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofThread, uprof_thread_close)

/**
 * uprof_thread_exists:
 *
 * One read of less than a microsecond, with no effect on the thread. Allocates nothing.
 *
 * False if the thread has ended, even if another thread has its number now.
 */
bool uprof_thread_exists(const UprofThread *thread);

/**
 * uprof_thread_times:
 * @times: (out): untouched if the thread has ended
 *
 * One read of about a microsecond. Does not wait, allocates nothing.
 *
 * Returns: false if the thread has ended
 */
bool uprof_thread_times(const UprofThread *thread, UprofThreadTimes *times);

/**
 * uprof_thread_where:
 * @call: (out) (optional): the system call in which it sleeps; untouched unless the answer is
 *   %UPROF_THREAD_IN_CALL
 *
 * Needs the permissions of a tracer. One read of one to three microseconds, with no effect on
 * the thread. Allocates nothing.
 */
UprofThreadWhere uprof_thread_where(const UprofThread *thread, UprofThreadCall *call);

/**
 * uprof_thread_is_asleep:
 *
 * For a thread that was just detached: until it gets a CPU, uprof_thread_where() says that it
 * sleeps where it was stopped. One read of one to three microseconds, with no effect on the
 * thread. Allocates nothing.
 *
 * False if it runs, waits for a CPU, is stopped or has ended.
 */
bool uprof_thread_is_asleep(const UprofThread *thread);

/**
 * uprof_thread_status:
 * @thread: number of any thread on this host
 * @status: (out): untouched on failure
 *
 * Opens, reads and closes a file. Allocates nothing.
 *
 * Returns: false if there is no such thread, or this process may not see it
 */
bool uprof_thread_status(pid_t thread, UprofThreadStatus *status);
