/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * dwfl-stack.h - stacks as elfutils' libdwfl finds them, of the snapshots that we have
 *
 * For comparisons, of answers and of speed. Only for x86-64.
 */
#pragma once

#include "uprof/snapshot.h"

typedef struct _DwflStack DwflStack;

DwflStack *dwfl_stack_new(void);
void dwfl_stack_free(DwflStack *stack);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DwflStack, dwfl_stack_free)

/** dwfl_stack_add: @bias: what its code was moved by */
void dwfl_stack_add(DwflStack *stack, const char *path, uint64_t bias);

/** dwfl_stack_begin: behind the last one that was added */
void dwfl_stack_begin(DwflStack *stack);

/**
 * dwfl_stack_unwind:
 * @pcs: (out): program counters, innermost first, @max at most
 *
 * Returns: how many
 */
unsigned
dwfl_stack_unwind(DwflStack *stack, const UprofSnapshot *snapshot, uint64_t *pcs, unsigned max);

/** dwfl_stack_name: Returns: (nullable): the function at @pc */
const char *dwfl_stack_name(DwflStack *stack, uint64_t pc);
