/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * x86-paging.h - the paging modes of x86 vCPUs
 */
#pragma once

#include "uprof/snapshot.h"

enum { UPROF_PAGE_BYTES = 4096 };

/** UprofPagingMode: format of the page tables */
typedef enum {
    UPROF_PAGING_OFF,
    UPROF_PAGING_32BIT,
    UPROF_PAGING_PAE,
    UPROF_PAGING_4LEVEL,
    UPROF_PAGING_5LEVEL,
    /* Paravirtual Xen guests: the tables hold machine frames, and all pages are small. */
    UPROF_PAGING_XEN_PV32,
    UPROF_PAGING_XEN_PV64,
} UprofPagingMode;

/** uprof_paging_mode: Returns: the mode of a vCPU with these registers */
UprofPagingMode uprof_paging_mode(const UprofRegs *regs);

/** uprof_paging_mode_name: Returns: a name for people; literal */
const char *uprof_paging_mode_name(UprofPagingMode mode);
