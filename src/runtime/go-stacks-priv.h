/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * go-stacks-priv.h - the stacks of goroutines (Go 1.18 to 1.27)
 *
 * Sources: Go, src/runtime/runtime2.go (structs g, m and gobuf), src/runtime/asm_amd64.s
 * (systemstack, morestack, asmcgocall) and src/runtime/sys_linux_amd64.s (nanotime1, walltime).
 *
 * The word below the thread pointer is the running g. On the stack of a thread this is not the
 * goroutine; m.curg is, and curg.sched has the goroutine's stack pointer.
 */
#pragma once

#include "chain-table-priv.h"
#include "uprof/runtimes.h"

typedef struct _UprofGoStacks UprofGoStacks;

/** uprof_go_stacks_new: all are borrowed; @chains gets the chains of Go's processes */
UprofGoStacks *uprof_go_stacks_new(UprofSpace *space, UprofSym *sym, UprofChainTable *chains);
void uprof_go_stacks_free(UprofGoStacks *stacks);

/** uprof_go_stacks_leave: see uprof_runtimes_leave_go_stack() */
UprofGoCaller uprof_go_stacks_leave(UprofGoStacks *stacks, const UprofSnapshot *snapshot,
                                    uint64_t start, uint64_t symbol_address, UprofRegs *regs);

/** uprof_go_stacks_note_signal: see uprof_runtimes_note_go_signal() */
void uprof_go_stacks_note_signal(UprofGoStacks *stacks, uint64_t context);
