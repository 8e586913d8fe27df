/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * kernel-priv.h - facts about the kernel that was found, for the other files of src/linux
 */
#pragma once

#include "kernel-memory-priv.h"
#include "kernel-offsets-priv.h"
#include "kernel-symbols-priv.h"
#include "task-offsets-priv.h"
#include "uprof/linux.h"

/** uprof_linux_offsets: Returns: (nullable): %NULL while the running tasks are not known */
const UprofLinuxOffsets *uprof_linux_offsets(const UprofLinux *kernel);

/**
 * uprof_linux_saved_regs:
 * @task: address of a struct task_struct
 *
 * Returns: address of the registers that a task of a process had when it entered the kernel; 0 if
 * it is not known
 */
uint64_t
uprof_linux_saved_regs(const UprofLinux *kernel, const UprofKernelMemory *memory, uint64_t task);

/** uprof_linux_maps: Returns: (transfer none): where the found kernel maps all memory */
const UprofLinuxMaps *uprof_linux_maps(const UprofLinux *kernel);

/** uprof_linux_knows_tables: do holds read a process by its own page tables, if others are in use?
 */
bool uprof_linux_knows_tables(const UprofLinux *kernel);

/** uprof_linux_owns_stack: is @sp on the kernel stack of @task, the address of a struct
 * task_struct? */
bool uprof_linux_owns_stack(const UprofLinux *kernel, const UprofKernelMemory *memory,
                            uint64_t task, uint64_t sp);

/** uprof_linux_log_offsets: Returns: (nullable): %NULL if the kernel's types do not describe its
 * log */
const UprofLinuxLogOffsets *uprof_linux_log_offsets(const UprofLinux *kernel);

/**
 * uprof_linux_task_offsets:
 * @why: (out): if %NULL is returned: why tasks cannot be listed; borrowed
 *
 * Returns: (nullable)
 */
const UprofTaskOffsets *uprof_linux_task_offsets(const UprofLinux *kernel, const char **why);

/** uprof_linux_published: Returns: (nullable): the links that uprof_linux_links() points to */
const UprofLinks *uprof_linux_published(const UprofLinux *kernel);

/** uprof_linux_n_vcpus: Returns: the number of vCPUs of the guest */
unsigned uprof_linux_n_vcpus(const UprofLinux *kernel);

/** uprof_linux_symbols: Returns: borrowed */
const UprofLinuxSymbols *uprof_linux_symbols(const UprofLinux *kernel);

/** uprof_linux_arch: Returns: (nullable): %NULL if the guest's architecture is not supported */
const UprofLinuxArch *uprof_linux_arch(const UprofLinux *kernel);

/** uprof_linux_memory: Returns: the kernel's memory; @mem and @kernel are borrowed */
UprofKernelMemory uprof_linux_memory(const UprofLinux *kernel, UprofMem *mem);
