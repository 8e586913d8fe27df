/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * runtimes.h - frames that the runtime of a language keeps in other places than the stack of the
 * stack pointer
 *
 * Go: a thread has a stack of its own, and each goroutine has one. The runtime changes to the
 * thread's stack for its own work, for system calls by the vDSO and for functions in C.
 *
 * What leads to such frames is published as a chain (chains.h). The first samples of a process come
 * without them, because the chain is not known yet.
 */
#pragma once

#include "uprof/chains.h"
#include "uprof/space.h"

typedef struct _UprofRuntimes UprofRuntimes;

/** uprof_runtimes_new: both are borrowed */
UprofRuntimes *uprof_runtimes_new(UprofSpace *space, UprofSym *sym);
void uprof_runtimes_free(UprofRuntimes *runtimes);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofRuntimes, uprof_runtimes_free)

/** uprof_runtimes_begin: call it after uprof_space_begin(); @snapshot: borrowed until the next call */
void uprof_runtimes_begin(UprofRuntimes *runtimes, const UprofSnapshot *snapshot);

/**
 * uprof_runtimes_leave_go_stack: finds the caller of a function that has changed the stack
 * @start: guest-virtual address where the function begins
 * @symbol_address: of @start
 * @regs: (inout): of the function; pc and sp of its caller if true is returned
 * @is_return: (out): the caller's pc is a return address
 *
 * Returns: false if the function is no such function of Go, or its caller was not copied
 */
bool uprof_runtimes_leave_go_stack(UprofRuntimes *runtimes, uint64_t start, uint64_t symbol_address,
                                   UprofRegs *regs, bool *is_return);

/**
 * uprof_runtimes_take_chain: takes the next chain that holds should follow from now on
 * @slot: (out): in the UprofChains of the sampler
 * @chain: (out)
 *
 * Returns: false if there is no new one
 */
bool uprof_runtimes_take_chain(UprofRuntimes *runtimes, uint32_t *slot, UprofChain *chain);
