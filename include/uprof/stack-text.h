/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * stack-text.h - the last stack of a pipeline, with all that is known of its frames
 */
#pragma once

#include "uprof/json-writer.h"
#include "uprof/pipeline.h"

/**
 * uprof_stack_text_append: appends a line about the vCPU, and a line for each function
 * @pipeline: uprof_pipeline_take() was called for @snapshot, and then uprof_sym_resolve()
 * @shown: the domain's name, safe to print
 */
void uprof_stack_text_append(GString *out, const UprofPipeline *pipeline,
                             const UprofSnapshot *snapshot, const char *shown);

/** uprof_stack_text_write: the same, as a JSON object */
void uprof_stack_text_write(UprofJsonWriter *json, const UprofPipeline *pipeline,
                            const UprofSnapshot *snapshot);

/** uprof_stack_text_append_frames: appends a line for each function; @frames: innermost first */
void uprof_stack_text_append_frames(GString *out, UprofSym *sym, const UprofFrame *frames,
                                    unsigned n_frames);

/** uprof_stack_text_write_frames: the same, as the member "frames" of an object */
void uprof_stack_text_write_frames(UprofJsonWriter *json, UprofSym *sym, const UprofFrame *frames,
                                   unsigned n);
