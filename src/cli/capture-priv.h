/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * capture-priv.h - a capture worked out again, with its own symbol files or others
 */
#pragma once

#include "options-priv.h"
#include "pipeline-priv.h"

/**
 * UprofCaptureRead:
 * @run: @guest's
 */
typedef struct {
    UprofGuest *guest;
    UprofRun *run;
    UprofPipeline *pipeline;
} UprofCaptureRead;

/**
 * uprof_capture_read:
 * @keeps_times: as for uprof_load_new()
 * @code: (out): exit code; not 0 also when only a part could be read
 *
 * Says what is wrong with it.
 *
 * Returns: (transfer full) (nullable): %NULL: nothing of it can be used
 */
UprofCaptureRead *
uprof_capture_read(const char *path, const UprofOptions *options, bool keeps_times, int *code);
void uprof_capture_read_free(UprofCaptureRead *read);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofCaptureRead, uprof_capture_read_free)
