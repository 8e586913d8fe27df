/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * checkpoint-priv.h - what a worker has counted, kept where it outlives the worker
 *
 *   checkpoint = { u64 length of the facts, u64 length of the stacks, facts, stacks }
 *
 * The facts are a sidecar, and the stacks are folded. A worker writes them from time to time into
 * memory that the program has made, and its successor reads them. A worker that a hostile file has
 * taken over can write any bytes. So the successor reads them as any foreign file, and the program
 * does not read them at all.
 *
 * Inlined functions, lines and the times of samples are not kept.
 */
#pragma once

#include "uprof/profile.h"
#include "uprof/sym.h"

enum {
    UPROF_CHECKPOINT_BYTES_MAX = 64 * 1024 * 1024,
    UPROF_N_CHECKPOINTS = 2, /* the one that was completed last stays while the next is written */
};

/**
 * uprof_checkpoint_new: makes memory for one checkpoint
 *
 * Its size is fixed at %UPROF_CHECKPOINT_BYTES_MAX. Only what was written takes memory.
 *
 * Returns: a descriptor; -1 with an error
 */
int uprof_checkpoint_new(GError **error);

/**
 * uprof_checkpoint_write:
 * @profile: its frames may be sites of @sym
 *
 * Returns: false if the checkpoint does not fit; it is then unusable
 */
bool
uprof_checkpoint_write(int fd, const UprofProfile *profile, const UprofRun *run, UprofSym *sym);

/**
 * uprof_checkpoint_read: adds the stacks and the counts
 * @profile: (inout): has a root, which replaces that of the stacks
 * @run: (inout): gets counts only
 *
 * Returns: false with %UPROF_ERROR_BAD_DATA; stacks that were read before are then added
 */
bool uprof_checkpoint_read(int fd, UprofProfile *profile, UprofRun *run, GError **error);
