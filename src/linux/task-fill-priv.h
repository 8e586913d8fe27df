/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * task-fill-priv.h - what the structure of a task tells
 */
#pragma once

#include "task-offsets-priv.h"
#include "uprof/task-list.h"

/**
 * uprof_task_fill: takes every member that is in the structure itself
 * @task: (inout): @address, @parent, @inner, @level, @is_doubtful, @wait_ns and its names stay; see
 *   uprof_task_name_read(). @has_wait: it is noted when it left its CPU
 */
void uprof_task_fill(const UprofTaskOffsets *offsets, const UprofTaskBytes *bytes, UprofTask *task);

/**
 * uprof_task_fill_left: Returns: when the task left its CPU; 0: not known. See UprofTaskClock
 *
 * The kernel sets it to 0 when a task that does not run moves to another CPU.
 */
uint64_t uprof_task_fill_left(const UprofTaskOffsets *offsets, const UprofTaskBytes *bytes);
