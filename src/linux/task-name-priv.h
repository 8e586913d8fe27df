/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * task-name-priv.h - the name of a task
 */
#pragma once

#include "kernel-memory-priv.h"
#include "task-offsets-priv.h"
#include "uprof/task-list.h"

/**
 * uprof_task_name_read: finds the name that the guest's own tools show
 * @bytes: of the task
 * @task: (inout): its name is set; its other members are known
 *
 * The kernel cuts names after 15 bytes. Its own threads have longer ones elsewhere, and its workers
 * tell which queue they work for, as in "kworker/0:1-events".
 */
void uprof_task_name_read(const UprofTaskOffsets *offsets, const UprofKernelMemory *memory,
                          const UprofTaskBytes *bytes, UprofTask *task);

/**
 * uprof_task_name_read_text: reads text of the kernel as it is now
 * @text: (out): @size bytes: safe to print, cut to fit; "" if it cannot be read
 */
void
uprof_task_name_read_text(const UprofKernelMemory *memory, uint64_t gva, char *text, size_t size);
