/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * mem-priv.h - between mem.c, the page-table walks, and what remembers them
 */
#pragma once

#include "uprof/mem.h"

enum {
    UPROF_WALK_STEPS_MAX = 5, /* levels of tables */
    UPROF_COPY_PAGES_MAX = UPROF_SNAPSHOT_BYTES_MAX / UPROF_PAGE_BYTES + 1,
};

/* bits 5 and 6 of an entry (accessed, dirty) change by themselves */
#define UPROF_ENTRY_VOLATILE UINT64_C(0x60)

/** UprofStep: a page-table entry: @gpa: where it lies; @value: what it says */
typedef struct {
    uint64_t gpa;
    uint64_t value;
} UprofStep;

/**
 * UprofWalk: an address's way through the tables
 * @frame: guest-physical address of the page, if it is mapped
 * @page_len: of the page; 4096 of what is not mapped
 * @mapped: the way ends at a page
 * @executable, @writable: code may run there, the kernel may write there
 * @cut: an entry lies where there is no memory
 * @entry_bytes: 4 or 8
 * @steps: the @n_steps entries that were read, from the root on
 */
typedef struct {
    uint64_t frame;
    uint64_t page_len;
    bool mapped;
    bool executable;
    bool writable;
    bool cut;
    uint8_t entry_bytes;
    uint8_t n_steps;
    UprofStep steps[UPROF_WALK_STEPS_MAX];
} UprofWalk;

/**
 * uprof_mem_read_entry:
 * @gpa: of the entry, aligned to @len
 * @len: 4 or 8
 * @entry: (out): its value
 *
 * Returns: false if there is no memory
 */
bool uprof_mem_read_entry(UprofMem *mem, uint64_t gpa, unsigned len, uint64_t *entry);

/** uprof_x86_walk: @walk: (out): the way of @gva by the tables of an x86 vCPU */
void uprof_x86_walk(UprofMem *mem, const UprofRegs *regs, uint64_t gva, UprofWalk *walk);

/**
 * uprof_x86_space:
 *
 * Returns: all of @regs that a walk depends on, as one number: with the same
 *   one the same tables lead an address the same way
 */
uint64_t uprof_x86_space(const UprofRegs *regs);
