/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * chain-priv.h - follows a chain (chains.h) in the memory of a process, in the hold
 *
 * All words on the way are in windows of the snapshot, so the analysis follows the same chain
 * later.
 */
#pragma once

#include "copy-priv.h"

/**
 * uprof_chain_copy:
 * @regs: with the page tables of the process
 * @thread: the thread pointer of the thread that ran
 *
 * The number of reads is limited, also if the list has a loop.
 */
void uprof_chain_copy(const UprofCopy *copy, const UprofRegs *regs, const UprofChain *chain,
                      uint64_t thread);
