/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * dwfl-stack.h - unwinds snapshots with elfutils' libdwfl, to compare results and speed
 *
 * Only for x86-64.
 */
#pragma once

#include "uprof/snapshot.h"

typedef struct _DwflStack DwflStack;

DwflStack *dwfl_stack_new(void);
void dwfl_stack_free(DwflStack *stack);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DwflStack, dwfl_stack_free)

/**
 * dwfl_stack_add: adds an ELF file; @bias: distance from its link addresses to its addresses in
 * memory
 */
void dwfl_stack_add(DwflStack *stack, const char *path, uint64_t bias);

/** dwfl_stack_begin: call it after the last file was added */
void dwfl_stack_begin(DwflStack *stack);

/**
 * dwfl_stack_unwind:
 * @pcs: (out): program counters, innermost first, at most @max
 *
 * Returns: number of program counters
 */
unsigned
dwfl_stack_unwind(DwflStack *stack, const UprofSnapshot *snapshot, uint64_t *pcs, unsigned max);

/** dwfl_stack_name: Returns: (nullable): the function at @pc */
const char *dwfl_stack_name(DwflStack *stack, uint64_t pc);
