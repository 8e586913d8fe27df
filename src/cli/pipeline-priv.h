/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * pipeline-priv.h - the worker's part: snapshot -> stack -> names -> counts
 *
 * The same for a live guest and for a recording, so that a capture gives again
 * what the run gave. Owned by one thread.
 */
#pragma once

#include "uprof/backend.h"
#include "uprof/linux.h"
#include "uprof/space.h"
#include "uprof/profile.h"
#include "uprof/unwind.h"
#include "uprof/windows.h"

/** UprofPipelineLast: what the snapshot before of a vCPU came to */
typedef struct {
    bool is_known;
    bool is_idle;
    uint64_t *tally; /* the member of @run that its stack was counted in; (nullable) if idle */
    unsigned n_frames;
    const UprofName *frames[UPROF_PROFILE_DEPTH_MAX];
} UprofPipelineLast;

/**
 * UprofPipeline:
 * @run: borrowed; its facts on quality are filled here
 * @kernel: the guest's own, if it is Linux
 * @space: and its processes
 * @profile: until the end with places (sym.h) in its stacks
 * @is_coarse: no places any more: there were too many stacks, or somebody looks on
 * @sizes: (nullable): borrowed; windows that learn from the stacks
 * @writer: (nullable): borrowed; the capture
 * @stack, @frames: of the snapshot taken last, innermost and outermost first
 * @ends: how often stacks ended for each reason
 * @lasts: of UprofPipelineLast, by vCPU: where some that have not run may come
 */
typedef struct {
    UprofRun *run;
    UprofNames *names;
    UprofSym *sym;
    UprofLinux *kernel;
    UprofSpace *space;
    UprofProfile *profile;
    bool is_coarse;
    UprofGuest *recorder;
    UprofMem *mem;
    UprofWriter *writer;
    UprofWindowSize *sizes;
    uint64_t last_hold;
    bool any_hold;
    bool is_idle; /* the snapshot taken last */
    UprofStack *stack;
    UprofUnwindCache *cache;
    const UprofName *frames[UPROF_PROFILE_DEPTH_MAX];
    unsigned n_frames;
    uint64_t ends[UPROF_N_ENDS];
    GHashTable *lasts;
    GMutex lock; /* of @run, for whoever shows progress */
} UprofPipeline;

/**
 * uprof_pipeline_new:
 * @guest: borrowed: to read memory of, outside holds
 * @run: with what is known at the start
 * @writer: (nullable): an empty capture; gets run and images by uprof_pipeline_begin()
 */
UprofPipeline *uprof_pipeline_new(UprofGuest *guest, UprofRun *run, UprofWriter *writer);
void uprof_pipeline_free(UprofPipeline *pipeline);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofPipeline, uprof_pipeline_free)

/**
 * uprof_pipeline_move: reads of another way into the same guest from now on
 * @guest: borrowed; the one before may be closed afterwards
 *
 * Between snapshots only: the worker must be at none of them.
 */
void uprof_pipeline_move(UprofPipeline *pipeline, UprofGuest *guest);

/** uprof_pipeline_begin: when all symbol files are there: notes them in run and capture */
bool uprof_pipeline_begin(UprofPipeline *pipeline, GError **error);

/**
 * uprof_pipeline_take:
 *
 * Of one that is @is_prime only what the guest is is looked at.
 *
 * Returns: false with %UPROF_ERROR_FAILED if the capture cannot be written; the
 *   snapshot is counted all the same
 */
bool uprof_pipeline_take(UprofPipeline *pipeline, const UprofSnapshot *snapshot, GError **error);

/**
 * uprof_pipeline_take_profile: from any thread
 *
 * Names are those of functions from then on, without what is inlined in them.
 *
 * Returns: (transfer full): what was counted since the last call; its names are
 *   the pipeline's
 */
UprofProfile *uprof_pipeline_take_profile(UprofPipeline *pipeline);

/**
 * uprof_pipeline_end: finds inlined functions and lines for the profile, and notes
 * in the run what became of the symbol files
 */
void uprof_pipeline_end(UprofPipeline *pipeline);
