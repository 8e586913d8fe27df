/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * x86-paging-priv.h - one walk through an x86 vCPU's page tables
 *
 * The guest may have written its tables to do harm: the number of levels is fixed, and there is
 * no recursion. The function that reads an entry checks the entry's address.
 */
#pragma once

#include "uprof/x86-paging.h"

enum { UPROF_WALK_LEVELS_MAX = 5 };

/* Bits 5 and 6 of an entry (accessed, dirty): the processor changes them by itself. */
#define UPROF_ENTRY_VOLATILE UINT64_C(0x60)

/** UprofTableEntry: a page-table entry */
typedef struct {
    uint64_t gpa;   /* where it lies */
    uint64_t value; /* its content */
} UprofTableEntry;

/** UprofWalk: the entries that translate an address, and the page they lead to */
typedef struct {
    uint64_t frame;    /* guest-physical address of the page, if it is mapped */
    uint64_t page_len; /* bytes; 4096 if the address is not mapped */
    bool mapped;
    bool executable;
    bool writable;
    bool cut;            /* an entry could not be read */
    uint8_t entry_bytes; /* 4 or 8 */
    uint8_t n_entries;
    UprofTableEntry entries[UPROF_WALK_LEVELS_MAX]; /* entries that were read, from the root on */
} UprofWalk;

/**
 * UprofReadEntry:
 * @gpa: of the entry, aligned to @len
 * @len: 4 or 8
 * @entry: (out): its value
 *
 * Returns: false if there is no memory at @gpa
 */
typedef bool UprofReadEntry(void *data, uint64_t gpa, unsigned len, uint64_t *entry);

/** uprof_x86_walk: @data: for @read_entry. @walk: (out): the walk for @gva */
void uprof_x86_walk(UprofReadEntry *read_entry, void *data, const UprofRegs *regs, uint64_t gva,
                    UprofWalk *walk);

/**
 * uprof_x86_space:
 *
 * Returns: a number for the address space, made of all of @regs that a walk depends on. If two
 *   numbers are equal, the same tables translate an address in the same way.
 */
uint64_t uprof_x86_space(const UprofRegs *regs);
