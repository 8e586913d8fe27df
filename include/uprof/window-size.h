/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * window-size.h - the number of bytes of a stack that a snapshot should copy
 *
 * Each vCPU has its own size. The size doubles after a stack that was longer, and halves after many
 * short stacks. After each stack that was longer, the next halving needs four times as many short
 * stacks, up to a limit.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/** UprofWindowSize: the window of one vCPU */
typedef struct {
    gint wanted;           /* bytes; atomic: set by the worker, read by the sampler */
    unsigned short_stacks; /* worker only: stacks in a row that used less than half */
    unsigned patience;     /* worker only: this many short stacks in a row halve the window */
} UprofWindowSize;

/** uprof_window_size_init: starts with %UPROF_WINDOW_BYTES_FIRST */
void uprof_window_size_init(UprofWindowSize *size);

/**
 * uprof_window_size_learn: in the worker
 * @was_cut: the stack was longer than the window
 * @used: bytes of the window that the stack used
 */
void uprof_window_size_learn(UprofWindowSize *size, bool was_cut, uint64_t used);
