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
