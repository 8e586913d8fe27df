/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * child.h - a function that may fail in any way, in a process of its own
 *
 * For libraries that are given foreign bytes and were not made for bad ones. The
 * child has what the parent has in memory, as a copy, and nothing else: nothing of
 * what is shared with other processes, no open file but the pipe that its answer
 * goes through, no system call but those for memory and for writing (seccomp), and
 * a limit on memory and on time. Whatever
 * happens to it, the parent gets what was written up to then.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** UprofChildOutput: where the child's answer goes */
typedef struct _UprofChildOutput UprofChildOutput;

/**
 * UprofChildPlan:
 * @work: runs in the child, on a copy of @data; what it changes is lost. It must
 *   not take locks that another thread of the parent may have held.
 * @memory_max: bytes that it may allocate
 * @time_max_ms: of processor, and of time altogether
 * @answer_max: bytes of its answer that are read
 */
typedef struct {
    void (*work)(UprofChildOutput *output, void *data);
    void *data;
    uint64_t memory_max;
    unsigned time_max_ms;
    size_t answer_max;
} UprofChildPlan;

/** UprofChildEnd: how it ended */
typedef enum {
    UPROF_CHILD_DONE,
    UPROF_CHILD_DIED,  /* by a signal, or for want of memory */
    UPROF_CHILD_SLOW,  /* it took more than @time_max_ms and was killed */
    UPROF_CHILD_WORDY, /* it had more to say than @answer_max */
} UprofChildEnd;

/** uprof_child_put: in the child: @len bytes more of the answer */
void uprof_child_put(UprofChildOutput *output, const void *bytes, size_t len);

/** uprof_child_is_bound: Returns: false in a build with sanitizers, which need rights of their own */
bool uprof_child_is_bound(void);

/**
 * uprof_child_run:
 * @end: (out): how it ended
 *
 * Returns: (transfer full) (nullable): the answer, which may be cut anywhere unless
 *   @end is %UPROF_CHILD_DONE; %NULL with %UPROF_ERROR_FAILED if there can be no child
 */
GByteArray *uprof_child_run(const UprofChildPlan *plan, UprofChildEnd *end, GError **error);
