/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * unwind.h - finds the program counters of the stack in a snapshot
 *
 * This file asks the unwinders in turn, one frame at a time, and enforces the limits: the depth, a
 * stack pointer that only rises, and return addresses that lie in code. The guest wrote the stack
 * and may mean harm, so these limits end every stack, and the stack has the reason for its end. The
 * unwinders read the snapshot's windows. The only guest memory that they read is code, which is
 * remembered.
 *
 * An unwinder is one step function in a file of its own, and a row in unwind.c: the tables of a
 * Linux kernel (orc-step.c), DWARF unwind tables (cfi-step.c, expr.c), machine code alone
 * (code-step-x86_64.c and the other files named code-*.c), and frame pointers (fp-step.c).
 */
#pragma once

#include "uprof/call-check.h"
#include "uprof/stack.h"
#include "uprof/unwind-context.h"

/** uprof_unwind_method: @name: (nullable): "cfi" or "fp"; everything else is "auto" */
UprofUnwindMethod uprof_unwind_method(const char *name);

/**
 * uprof_unwind:
 * @stack: (out): at least one frame
 *
 * Allocates only remembered pages and facts about functions. Cannot fail: an incomplete stack
 * is still a sample.
 */
void uprof_unwind(const UprofUnwindContext *context, UprofStack *stack);

/** uprof_unwind_is_complete: does the stack reach its root? */
bool uprof_unwind_is_complete(const UprofStack *stack);

/** uprof_unwind_is_idle: is the vCPU in kernel mode, right behind HLT or MWAIT? */
bool uprof_unwind_is_idle(const UprofUnwindContext *context);
