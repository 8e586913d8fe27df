/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * child.h - runs a function in a child process, so that the function may fail in any way
 *
 * The child process is for libraries that read foreign bytes but do not expect malicious ones. It
 * has a private copy of the parent's memory, and none of the memory that the parent shares
 * with other processes. It has no open file except the pipe for its answer, and no system
 * calls except those for memory, for writing and for ending (seccomp). Its memory and
 * time are limited. If the child dies, the parent gets the answer up to that point.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** UprofChildOutput: the child's end of the pipe, with a buffer */
typedef struct _UprofChildOutput UprofChildOutput;

/** UprofChildPlan: what the child does, and its limits */
typedef struct {
    /* Runs in the child. Changes to @data are lost. Must not take locks that another thread
     * of the parent may hold at the time of the fork. */
    void (*work)(UprofChildOutput *output, void *data);
    void *data;           /* borrowed; passed to @work */
    uint64_t memory_max;  /* bytes that @work may allocate */
    unsigned time_max_ms; /* of processor time (rounded up to seconds), and of elapsed time */
    size_t answer_max;    /* bytes */
} UprofChildPlan;

/** UprofChildEnd: how the child ended */
typedef enum {
    UPROF_CHILD_DONE,
    UPROF_CHILD_DIED,  /* by a signal, or because it ran out of memory */
    UPROF_CHILD_SLOW,  /* it was killed after @time_max_ms */
    UPROF_CHILD_WORDY, /* its answer is longer than @answer_max */
} UprofChildEnd;

/** uprof_child_put: in the child: appends @len bytes to the answer */
void uprof_child_put(UprofChildOutput *output, const void *bytes, size_t len);

/**
 * uprof_child_run: forks, runs the work, and waits for its end
 * @end: (out): how the child ended
 *
 * A process that was sealed (confine.h) cannot fork and has no more rights than the child would
 * have: it does the work itself, without limits of its own.
 *
 * A build with address sanitizer has no limit on memory and allows all system calls.
 *
 * Returns: (transfer full) (nullable): the answer, which may stop at any byte unless
 *   @end is %UPROF_CHILD_DONE; %NULL if there can be no child
 */
GByteArray *uprof_child_run(const UprofChildPlan *plan, UprofChildEnd *end, GError **error);
