/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * current-task-priv.h - finds the task that a CPU runs, and the CPU's interrupt stack
 */
#pragma once

#include "kernel-memory-priv.h"
#include "kernel-offsets-priv.h"
#include "kernel-symbols-priv.h"
#include "uprof/linux.h"

/**
 * uprof_linux_links_make:
 * @before: (nullable): earlier links of the same kernel and number of vCPUs; complete ones
 *   are copied instead of read again
 *
 * Returns: (transfer full): free it with g_free()
 */
UprofLinks *
uprof_linux_links_make(const UprofLinuxArch *arch, const UprofLinuxSymbols *symbols,
                       const UprofLinuxOffsets *offsets, const UprofLinuxMaps *maps,
                       const UprofLinks *before, const UprofKernelMemory *memory, unsigned n_vcpus);

/** uprof_linux_task_is_named: @name: %UPROF_LINUX_NAME_BYTES bytes: does a NUL follow printable
 * characters? */
bool uprof_linux_task_is_named(const char *name);

/** uprof_linux_task_read: see uprof_linux_task() */
bool uprof_linux_task_read(const UprofLinks *links, const UprofLinuxOffsets *offsets,
                           const UprofSnapshot *snapshot, UprofLinuxTask *task);

/**
 * uprof_linux_task_owns_stack: is @task the address of a struct task_struct, and @sp on its kernel
 * stack?
 */
bool uprof_linux_task_owns_stack(const UprofLinks *links, const UprofKernelMemory *memory,
                                 uint64_t task, uint64_t sp);

/**
 * uprof_linux_next_task_find:
 * @task: (out): the task on whose stack the kernel runs; undefined if false is returned
 *
 * While the kernel changes tasks, it is on the stack of the next task before it notes that this
 * task runs. A register has the address of the next task.
 *
 * Returns: false if the kernel changes no tasks, or the next one is not known
 */
bool uprof_linux_next_task_find(const UprofLinks *links, const UprofLinuxOffsets *offsets,
                                const UprofKernelMemory *memory, const UprofSnapshot *snapshot,
                                UprofLinuxTask *task);
