/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * paging-priv.h - one walk through a vCPU's page tables
 *
 * The guest may have written its tables to do harm: the number of levels is fixed, and there is
 * no recursion. The function that reads an entry checks the entry's address.
 */
#pragma once

#include "uprof/paging.h"

enum { UPROF_WALK_LEVELS_MAX = 5 };

/*
 * Bits of an entry that the processor or the guest's kernel changes while the entry leads to the
 * same page: x86 has "accessed" and "dirty" in bits 5 and 6; aarch64 has "accessed" in bit 10, and
 * software's own bits in 55 to 58. No architecture has a part of an address in these bits, except
 * that 32-bit entries have only the lower half.
 */
#define UPROF_ENTRY_VOLATILE_32 UINT64_C(0x460)
#define UPROF_ENTRY_VOLATILE (UPROF_ENTRY_VOLATILE_32 | UINT64_C(0xf) << 55)

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

/** UprofPaging: a row: the page tables of an architecture */
typedef struct {
    /* (out): @walk: the walk for @gva. @data: for @read_entry */
    void (*walk)(UprofReadEntry *read_entry, void *data, const UprofRegs *regs, uint64_t gva,
                 UprofWalk *walk);
    /*
     * Returns: a number for the address space of @gva, made of all of @regs that a walk depends
     *   on. If two numbers are equal, the same tables translate an address in the same way.
     */
    uint64_t (*space)(const UprofRegs *regs, uint64_t gva);
    const char *(*name)(const UprofRegs *regs);
    /* as uprof_paging_use_process() */
    void (*use_process)(UprofRegs *regs, uint64_t root);
} UprofPaging;

extern const UprofPaging uprof_paging_x86;
extern const UprofPaging uprof_paging_aarch64;

/** uprof_paging_find: @arch: in the table of architectures. Returns: (transfer none): its row */
const UprofPaging *uprof_paging_find(const UprofArch *arch);
