/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * task-record.h - a list of tasks as bytes: the TASKS of a capture, which may be hostile
 *
 * THE FORMAT. Numbers are little-endian.
 *
 *   list     u8   1 if the list is complete, else 0
 *            u8   flags: 1 parents, 2 times, 4 waits, 8 levels are known
 *            u16  len, bytes of the text
 *            len  facts of tasks that the kernel's types lack
 *   tasks    each u64 address, began_ns, user_ns, system_ns, wait_ns, n_switches, memory, stack,
 *            saved_sp, cgroup;
 *            u32 id, process, parent, inner, level, cpu;
 *            u8 state, a letter;
 *            u8 flags: 1 is_on_cpu, 2 is_kernel, 4 is_in_io, 8 has_run, 16 is_doubtful, 32
 * has_wait, 64 may_run; u8 len, and the name; u8 len, and comm
 */
#pragma once

#include "uprof/bytes.h"
#include "uprof/task-list.h"

/** uprof_task_record_make: Returns: (transfer full): at most %UPROF_CAPTURE_TASKS_BYTES_MAX bytes
 */
GByteArray *uprof_task_record_make(const UprofTaskList *list);

/**
 * uprof_task_record_parse:
 *
 * Texts are made safe to print.
 *
 * Returns: (transfer full) (nullable): %NULL with %UPROF_ERROR_BAD_DATA if the bytes do not follow
 * the format, or are of more than %UPROF_TASK_LIST_MAX tasks
 */
UprofTaskList *uprof_task_record_parse(UprofSlice bytes, GError **error);
