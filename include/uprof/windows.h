/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * windows.h - which parts of a stack are copied
 *
 * The stack's window begins a little below the stack pointer. How far it reaches
 * is kept per vCPU: it doubles when a stack was longer, and shrinks when stacks
 * have been short for long, which takes longer each time it was a mistake. What
 * else belongs to a sample (links.h) is found out beforehand, so that nothing in a
 * hold knows unwinding.
 */
#pragma once

#include "uprof/links.h"
#include "uprof/mem.h"

/** UprofWindowSize: of one vCPU; @wanted is set by the worker, read by the sampler */
typedef struct {
    gint wanted;           /* bytes */
    unsigned short_stacks; /* worker only: in a row that used less than half */
    unsigned patience;     /* likewise: so many of them halve the window */
} UprofWindowSize;

/** uprof_window_size_init: to %UPROF_WINDOW_BYTES_FIRST */
void uprof_window_size_init(UprofWindowSize *size);

/**
 * uprof_window_size_learn: in the worker
 * @was_cut: the stack went on behind the window
 * @used: bytes of the window that the stack took
 */
void uprof_window_size_learn(UprofWindowSize *size, bool was_cut, uint64_t used);

/**
 * uprof_windows_copy: in the hold
 * @mem: the sampler's
 * @links: (nullable): what else belongs to the sample
 * @snapshot: (inout): with its registers; gets its windows
 */
void uprof_windows_copy(UprofMem *mem, const UprofWindowSize *size, const UprofLinks *links,
                        UprofSnapshot *snapshot);
