/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * kernel-memory-priv.h - reads kernel memory, even while the vCPU runs user code
 */
#pragma once

#include "uprof/bytes.h"
#include "uprof/mem.h"

enum { UPROF_KERNEL_NAME_BYTES = 256 }; /* NAME_MAX, and NUL */

/** UprofKernelMemory: all members are borrowed */
typedef struct {
    UprofMem *mem; /* the worker's */
    unsigned vcpu;
    const UprofRegs *regs; /* with a page-table root that maps the kernel */
    UprofSlice copies;     /* of copies.h: older bytes, which count before the memory */
    bool is_copy;          /* only @copies are read */
} UprofKernelMemory;

/**
 * uprof_kernel_read:
 * @gva: kernel address
 * @into: (out): @len bytes, or undefined
 *
 * Counts towards the pages that one sample may fetch; see uprof_mem_is_spent().
 *
 * Returns: false unless all bytes can be read
 */
bool uprof_kernel_read(const UprofKernelMemory *memory, uint64_t gva, void *into, size_t len);

/** uprof_kernel_read_word: @word: (out): the 8 bytes at @gva, in host byte order */
bool uprof_kernel_read_word(const UprofKernelMemory *memory, uint64_t gva, uint64_t *word);

/**
 * uprof_kernel_read_always: uprof_kernel_read() without the limit for one sample
 *
 * For rare searches; the caller bounds how much they read. See uprof_mem_read_always().
 */
bool
uprof_kernel_read_always(const UprofKernelMemory *memory, uint64_t gva, void *into, size_t len);
bool uprof_kernel_read_word_always(const UprofKernelMemory *memory, uint64_t gva, uint64_t *word);

/** uprof_kernel_read_u32_always: @number: (out): the 4 bytes at @gva, in host byte order */
bool uprof_kernel_read_u32_always(const UprofKernelMemory *memory, uint64_t gva, uint32_t *number);

/**
 * uprof_kernel_read_pieces: reads memory as it is now: see uprof_mem_read_pieces()
 *
 * Returns: false if a piece is missing
 */
bool uprof_kernel_read_pieces(const UprofKernelMemory *memory, UprofMemPiece *pieces, unsigned n);

/** uprof_kernel_begin_pieces: see uprof_mem_begin_pieces() */
void uprof_kernel_begin_pieces(const UprofKernelMemory *memory, UprofMemPiece *pieces, unsigned n);

/** uprof_kernel_end_pieces: see uprof_mem_end_pieces() */
void uprof_kernel_end_pieces(const UprofKernelMemory *memory);

/** uprof_kernel_read_now: uprof_kernel_read_pieces() for the @len bytes at @gva */
bool uprof_kernel_read_now(const UprofKernelMemory *memory, uint64_t gva, void *into, size_t len);

/** uprof_kernel_read_word_now: @word: (out): the 8 bytes at @gva as they are now, in host byte
 * order */
bool uprof_kernel_read_word_now(const UprofKernelMemory *memory, uint64_t gva, uint64_t *word);

/**
 * uprof_kernel_read_name: reads the name of a file or a folder
 * @name: (out): %UPROF_KERNEL_NAME_BYTES bytes; ends with NUL on success
 *
 * Counts as uprof_kernel_read().
 *
 * Returns: false if the name cannot be read, is empty, "." or "..", or has a slash
 */
bool uprof_kernel_read_name(const UprofKernelMemory *memory, uint64_t gva, char *name);
