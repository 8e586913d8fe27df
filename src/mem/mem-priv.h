/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * mem-priv.h - between mem.c and the page-table walks
 */
#pragma once

#include "uprof/mem.h"

/**
 * uprof_mem_read_entry:
 * @gpa: of the entry, aligned to @len
 * @len: 4 or 8
 * @entry: (out): its value
 *
 * Returns: false if there is no memory
 */
bool uprof_mem_read_entry(UprofMem *mem, uint64_t gpa, unsigned len, uint64_t *entry);

/** uprof_x86_translate: as uprof_mem_translate(), by the tables of an x86 vCPU */
bool uprof_x86_translate(UprofMem *mem, const UprofRegs *regs, uint64_t gva, uint64_t *gpa,
                         uint64_t *left, bool *executable);
