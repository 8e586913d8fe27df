/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * windows-priv.h - copies the windows of a snapshot
 *
 * The window of a stack begins a little below the stack pointer. The addresses of the other stacks
 * and of the task (links.h) are found before the hold, so a hold does not unwind.
 */
#pragma once

#include "uprof/chains.h"
#include "uprof/links.h"
#include "uprof/mem.h"
#include "uprof/window-size.h"

/**
 * uprof_windows_copy: in the hold
 * @mem: the sampler's
 * @links: (nullable): addresses of further memory to copy
 * @chains: (nullable): pointers to follow in processes
 * @snapshot: (inout): has its registers, and gets its windows
 */
void uprof_windows_copy(UprofMem *mem, const UprofWindowSize *size, const UprofLinks *links,
                        const UprofChains *chains, UprofSnapshot *snapshot);
