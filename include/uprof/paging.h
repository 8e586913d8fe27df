/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * paging.h - the page tables of a vCPU
 */
#pragma once

#include "uprof/snapshot.h"

enum { UPROF_PAGE_BYTES = 4096 }; /* the unit of reads; pages of a guest may be larger */

/**
 * uprof_paging_name:
 * @arch: of the guest
 *
 * Returns: the mode of a vCPU with these registers, for people; literal
 */
const char *uprof_paging_name(const UprofArch *arch, const UprofRegs *regs);

/**
 * uprof_paging_use_process: makes @regs those of a vCPU that runs a process
 * @root: guest-physical address of the process's topmost page table
 *
 * Where kernel and processes have page tables of their own, the format of both is the same, as
 * Linux has it.
 */
void uprof_paging_use_process(const UprofArch *arch, UprofRegs *regs, uint64_t root);
