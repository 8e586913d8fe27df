/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * task-guess-priv.h - guesses which task comes next in a ring, so that several can be read at once
 *
 * A wrong guess costs time only: the walk of a ring accepts no task without a check.
 */
#pragma once

#include "kernel-memory-priv.h"
#include "task-offsets-priv.h"

typedef struct _UprofTaskGuess UprofTaskGuess;

/**
 * uprof_task_guess_new: reads the kernel's table of process numbers
 * @ids: address of the first struct pid_namespace, or 0
 * @until_ns: when the reading ends at the latest
 *
 * Returns: (transfer full): without guesses if the table cannot be read, or not in time
 */
UprofTaskGuess *
uprof_task_guess_new(const UprofTaskOffsets *offsets, const UprofKernelMemory *memory, uint64_t ids,
                     uint64_t until_ns);
void uprof_task_guess_free(UprofTaskGuess *guess);

/**
 * uprof_task_guess_next:
 * @task: address of a struct task_struct
 * @is_thread: false: the next process; true: the next thread of the process
 *
 * Returns: address of the task that is probably next; 0 without a guess
 */
uint64_t uprof_task_guess_next(const UprofTaskGuess *guess, uint64_t task, bool is_thread);
