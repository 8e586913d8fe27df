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
UprofLinks *uprof_linux_links_make(const UprofLinuxArch *arch, const UprofLinuxSymbols *symbols,
                                   const UprofLinuxOffsets *offsets, const UprofLinks *before,
                                   const UprofKernelMemory *memory, unsigned n_vcpus);

/** uprof_linux_task_read: see uprof_linux_task() */
bool uprof_linux_task_read(const UprofLinks *links, const UprofLinuxOffsets *offsets,
                           const UprofSnapshot *snapshot, UprofLinuxTask *task);
