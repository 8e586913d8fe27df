/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * python-stacks-priv.h - the functions of Python that a thread runs
 *
 * The interpreter calls itself on the stack of the thread, and each such call runs one or more
 * functions of Python. A call keeps an object in its own frame on that stack: up to 3.11 a
 * _PyCFrame, since 3.12 a frame that is no function (CPython, Python/ceval.c). The address of this
 * object tells which frame of the stack the functions belong to. No symbol is needed for that.
 *
 * The thread is found by its thread pointer, which is pthread_self() (PyThreadState.thread_id).
 */
#pragma once

#include "chain-table-priv.h"
#include "python-names-priv.h"
#include "uprof/runtimes.h"

typedef struct _UprofPythonStacks UprofPythonStacks;

/** uprof_python_stacks_new: all are borrowed; @chains gets the chains of threads that run Python */
UprofPythonStacks *
uprof_python_stacks_new(UprofSpace *space, UprofNames *names, UprofChainTable *chains);
void uprof_python_stacks_free(UprofPythonStacks *stacks);

/** uprof_python_stacks_find: see uprof_runtimes_find_python() */
unsigned
uprof_python_stacks_find(UprofPythonStacks *stacks, const UprofSnapshot *snapshot, uint64_t pc,
                         bool with_lines, UprofPythonFrame *frames, bool *is_cut);
