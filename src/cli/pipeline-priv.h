/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * pipeline-priv.h - the worker's part: snapshot -> stack -> names -> counts
 *
 * The same for a live guest and for a recording, so that a capture gives again
 * what the run gave. Owned by one thread.
 */
#pragma once

#include "uprof/backend.h"
#include "uprof/profile.h"
#include "uprof/unwind.h"
#include "uprof/windows.h"

/**
 * UprofPipeline:
 * @run: borrowed; its facts on quality are filled here
 * @sizes: (nullable): borrowed; windows that learn from the stacks
 * @writer: (nullable): borrowed; the capture
 * @stack, @frames: of the snapshot taken last, innermost and outermost first
 * @ends: how often stacks ended for each reason
 */
typedef struct {
    UprofRun *run;
    UprofNames *names;
    UprofSym *sym;
    UprofProfile *profile;
    UprofGuest *recorder;
    UprofMem *mem;
    UprofWriter *writer;
    UprofWindowSize *sizes;
    uint64_t last_hold;
    bool any_hold;
    bool is_idle; /* the snapshot taken last */
    UprofStack *stack;
    const UprofName *frames[UPROF_PROFILE_DEPTH_MAX];
    unsigned n_frames;
    uint64_t ends[UPROF_N_ENDS];
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

/** uprof_pipeline_begin: when all symbol files are there: notes them in run and capture */
bool uprof_pipeline_begin(UprofPipeline *pipeline, GError **error);

/**
 * uprof_pipeline_take:
 *
 * Returns: false with %UPROF_ERROR_FAILED if the capture cannot be written; the
 *   snapshot is counted all the same
 */
bool uprof_pipeline_take(UprofPipeline *pipeline, const UprofSnapshot *snapshot, GError **error);

/** uprof_pipeline_end: notes in the run what became of the symbol files */
void uprof_pipeline_end(UprofPipeline *pipeline);
