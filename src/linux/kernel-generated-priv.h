/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * kernel-generated-priv.h - code that a Linux kernel has generated while it runs: BPF programs and
 * trampolines, trampolines of ftrace, and the pages of kprobes
 *
 * /proc/kallsyms shows the same names.
 */
#pragma once

#include "kernel-memory-priv.h"
#include "kernel-modules-priv.h"
#include "kernel-symbols-priv.h"

/**
 * uprof_linux_generated_read: adds the generated code and its names
 * @offsets: lists whose offsets are not known are left out
 * @symbols: lists whose heads are not known are left out
 * @modules: (inout): its code gets sorted
 *
 * Code that lies in a module is not added.
 */
void uprof_linux_generated_read(const UprofLinuxGeneratedOffsets *offsets,
                                const UprofLinuxSymbols *symbols, const UprofKernelMemory *memory,
                                UprofLinuxModules *modules);

/**
 * uprof_linux_generated_digest: Returns: a hash of the newest BPF program, which differs once
 * another one was loaded
 */
uint64_t
uprof_linux_generated_digest(const UprofLinuxGeneratedOffsets *offsets,
                             const UprofLinuxSymbols *symbols, const UprofKernelMemory *memory);
