/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * symbol-search-priv.h - finds data whose symbols a kernel does not have
 *
 * A kernel without CONFIG_KALLSYMS_ALL has symbols of its code only. What virt-uprof reads of its
 * data lies in the image, and code refers to it.
 */
#pragma once

#include "kernel-memory-priv.h"
#include "kernel-symbols-priv.h"

/**
 * uprof_linux_symbols_search:
 * @image: a copy of the kernel's image; what was not copied is zero
 * @base: guest-virtual address of its first byte
 * @symbols: (inout): symbols that are 0 are searched for: @text, @banner, @btf_start and @btf_end,
 * and with a row that can read code also @cpu_areas and @run_queues
 *
 * Reads the image once. The caller must check what was found: by reading the banner and the types.
 */
void uprof_linux_symbols_search(const UprofLinuxArch *arch, UprofSlice image, uint64_t base,
                                const UprofKernelMemory *memory, UprofLinuxSymbols *symbols);
