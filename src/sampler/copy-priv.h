/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * copy-priv.h - copies pieces of guest memory into a snapshot, in the hold
 */
#pragma once

#include "uprof/chains.h"
#include "uprof/links.h"
#include "uprof/mem.h"

/** UprofCopy: the copies of one sample; all pointers are borrowed */
typedef struct {
    UprofMem *mem;
    const UprofLinks *links;   /* (nullable): only the stack is copied */
    const UprofChains *chains; /* (nullable) */
    UprofSnapshot *snapshot;
    size_t wanted;   /* bytes of each stack */
    size_t reserved; /* bytes of the snapshot that stacks must leave free */
} UprofCopy;

/** uprof_copy_window: Returns: how many bytes were copied from @gva on, by the page tables of @regs
 */
size_t uprof_copy_window(const UprofCopy *copy, const UprofRegs *regs, uint64_t gva, size_t len);

/**
 * uprof_copy_stack: copies from a little below @sp up to @end, by the page tables of @regs
 * @end: 0 if unknown
 */
void uprof_copy_stack(const UprofCopy *copy, const UprofRegs *regs, uint64_t sp, uint64_t end);

/** uprof_copy_word: reads a word, which is in a window then; false if it cannot be read */
bool uprof_copy_word(const UprofCopy *copy, const UprofRegs *regs, uint64_t gva, uint64_t *word);

/** uprof_copy_peek: reads a word that no window needs; false if it cannot be read */
bool uprof_copy_peek(const UprofCopy *copy, const UprofRegs *regs, uint64_t gva, uint64_t *word);
