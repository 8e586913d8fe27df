/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * space.h - the address spaces of a Linux guest's processes
 *
 * An address has different code in each process, and a library lies at a different address in
 * each process. So every file that is mapped as code (a module) gets its own symbol addresses,
 * which no guest address can equal. Symbols and unwind rules are found by symbol address, and
 * remembered once for all processes.
 *
 * An area of a process is read from guest memory, outside holds, when an address first falls
 * into it.
 */
#pragma once

#include "uprof/linux.h"

typedef struct _UprofSpace UprofSpace;

/** uprof_space_new: @kernel, @sym: borrowed; @sym gets the modules */
UprofSpace *uprof_space_new(const UprofLinux *kernel, UprofSym *sym);
void uprof_space_free(UprofSpace *space);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofSpace, uprof_space_free)

/**
 * uprof_space_begin: call it before each stack
 * @mem: the worker's; borrowed until the next call
 * @snapshot: borrowed until the next call
 */
void uprof_space_begin(UprofSpace *space, UprofMem *mem, const UprofSnapshot *snapshot);

/** uprof_space_has_process: are the areas of the process that ran known? */
bool uprof_space_has_process(const UprofSpace *space);

/**
 * uprof_space_is_of_process: does the thread that ran belong to a process?
 *
 * Nothing else of the process may be known.
 */
bool uprof_space_is_of_process(const UprofSpace *space);

/** UprofSpaceProcess: the process that ran */
typedef struct {
    uint64_t memory; /* address of its struct mm_struct */
    uint32_t id;     /* of the process; a later process has another one */
    uint64_t thread; /* thread pointer of the thread that ran; 0 if it is not known */
} UprofSpaceProcess;

/**
 * uprof_space_process:
 * @process: (out)
 *
 * Returns: false if the process that ran is not known
 */
bool uprof_space_process(const UprofSpace *space, UprofSpaceProcess *process);

/**
 * uprof_space_read:
 * @gva: guest-virtual address in the process that ran
 * @into: (out): @len bytes, or undefined
 *
 * Reads memory as it is now, or as it was up to %UPROF_MEM_KEEP_NS ago.
 *
 * Returns: false unless all bytes are mapped, or this sample has read too much
 */
bool uprof_space_read(const UprofSpace *space, uint64_t gva, void *into, size_t len);

/** uprof_space_forget: the next uprof_space_read() of the page at @gva reads it as it is then */
void uprof_space_forget(const UprofSpace *space, uint64_t gva);

/** uprof_space_allow_more: lets this sample read more memory: see uprof_mem_allow_more() */
void uprof_space_allow_more(UprofSpace *space);

/** uprof_space_read_word: as uprof_space_read(), for a word of 8 bytes in the guest's byte order */
bool uprof_space_read_word(const UprofSpace *space, uint64_t gva, uint64_t *word);

/**
 * uprof_space_module:
 * @pc: an address of the process that ran
 * @base: (out): guest-virtual address of the module's first page
 *
 * Returns: the number of the module that is mapped there; 0 if there is none
 */
unsigned uprof_space_module(UprofSpace *space, uint64_t pc, uint64_t *base);

/**
 * uprof_space_find_object:
 * @pc: an address of the process that ran
 * @name: of data that the module at @pc exports
 * @offset: (out): bytes from the module's first page to the data
 *
 * Returns: false if the module has no such data, or its file cannot be read now
 */
bool uprof_space_find_object(UprofSpace *space, uint64_t pc, const char *name, uint64_t *offset);

/**
 * uprof_space_tables:
 *
 * Returns: (nullable): registers with the page tables of the process that ran, if those of the
 * snapshot are of another process; borrowed until the next uprof_space_begin()
 */
const UprofRegs *uprof_space_tables(const UprofSpace *space);

/**
 * uprof_space_saved_regs:
 *
 * Returns: guest-virtual address of the registers that this thread had when it entered the kernel;
 * 0 if the address is not known, or the thread belongs to no process
 */
uint64_t uprof_space_saved_regs(const UprofSpace *space);

/**
 * uprof_space_symbol_address:
 * @pc: an address of the process that ran, or of the kernel
 *
 * Returns: the address by which @sym knows @pc. It is @pc itself for the kernel's addresses and
 *   in guests without processes. Code outside of modules gets an address outside of
 *   modules, which differs between processes. Its names come from the perf map or the jitdump
 *   that the process writes.
 */
uint64_t uprof_space_symbol_address(UprofSpace *space, uint64_t pc);

/**
 * uprof_space_is_root: is a frame the first one of the process's first thread?
 * @sp: stack pointer of the frame in user mode
 *
 * The kernel puts the arguments of a program at the end of its stack. The frame right below them
 * has no caller.
 */
bool uprof_space_is_root(const UprofSpace *space, uint64_t sp);

/**
 * uprof_space_read_code:
 * @gva: guest-virtual address in the process that ran
 * @into: (out): @len bytes, or undefined
 *
 * For code that the process has mapped, but whose pages are not in its page tables: reads them from
 * the kernel's page cache.
 *
 * Returns: false unless all bytes are there
 */
bool uprof_space_read_code(UprofSpace *space, uint64_t gva, void *into, size_t len);
