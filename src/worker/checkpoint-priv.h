/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * checkpoint-priv.h - the counts of a worker, in memory that outlives the worker
 *
 *   checkpoint = { u64 length of the facts, u64 length of the stacks, facts, stacks }
 *
 * The facts are a sidecar, and the stacks are folded. Stacks of tasks that waited have no root.
 * From time to time a worker writes a checkpoint into memory that the program has made. If the
 * worker dies, its successor reads the checkpoint. A hostile file may have taken over the worker,
 * so the successor parses the checkpoint like any foreign file, and the program does not read it at
 * all.
 *
 * A checkpoint has no inlined functions, no lines and no times of samples.
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
 * Its size is fixed at %UPROF_CHECKPOINT_BYTES_MAX. Only the written part takes memory.
 *
 * Returns: a descriptor; -1 with an error
 */
int uprof_checkpoint_new(GError **error);

/** UprofCheckpointProfiles: all pointers are borrowed */
typedef struct {
    UprofProfile *samples;
    UprofProfile *waits; /* (nullable): see waits.h */
} UprofCheckpointProfiles;

/**
 * uprof_checkpoint_write: writes a checkpoint
 * @profiles: their frames may be sites of @sym
 *
 * Returns: false if the checkpoint does not fit; it is then unusable
 */
bool uprof_checkpoint_write(int fd, const UprofCheckpointProfiles *profiles, const UprofRun *run,
                            UprofSym *sym);

/**
 * uprof_checkpoint_read: adds the stacks and the counts of a checkpoint
 * @profiles: (inout): have a root, which replaces the root of the stacks
 * @run: (inout): gets counts only
 *
 * Returns: false with %UPROF_ERROR_BAD_DATA; the stacks before the error are added even then
 */
bool uprof_checkpoint_read(int fd, const UprofCheckpointProfiles *profiles, UprofRun *run,
                           GError **error);
