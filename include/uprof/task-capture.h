/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * task-capture.h - the tasks and the log of a Linux guest in its capture
 */
#pragma once

#include "uprof/task-table.h"

/**
 * uprof_task_capture:
 * @pipeline: writes a capture, and has been asked for tasks before its first snapshot; see
 *   uprof_linux_want_tasks()
 * @request: the time and the reset of the last snapshot; all tasks
 *
 * Reads what uprof_task_table_make(), uprof_task_groups_make() and uprof_kernel_log_read() read, so
 * that the capture has it. Does nothing if no Linux kernel was found, or if the guest is slow to
 * read.
 */
void uprof_task_capture(UprofPipeline *pipeline, const UprofTaskRequest *request);
