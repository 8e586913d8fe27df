/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * capture-replay.h - analyzes a capture again, with its own symbol files or with others
 */
#pragma once

#include "uprof/bytes.h"
#include "uprof/notice.h"
#include "uprof/pipeline.h"
#include "uprof/symbol-settings.h"

/** UprofReplaySettings: how to analyze a capture; all pointers are borrowed */
typedef struct {
    const UprofSymbolSettings *symbols;
    /* true turns the option on even if the recording had it off: see UprofRun */
    bool per_vcpu;
    bool pids;
    bool cgroups;
    bool native;
    bool idle;
    bool idle_stacks;
    unsigned max_depth;   /* frames of a stack; 0: as recorded */
    const char *unwind;   /* (nullable): the method: "auto", "cfi" or "fp"; %NULL: as recorded */
    bool keeps_times;     /* keeps the times of samples, for formats that show them */
    bool wants_tasks;     /* prepares for the tasks of a Linux guest: see task-table.h */
    const char *annotate; /* (nullable): a function whose samples are counted by instruction, too */
    const UprofNotices *notices; /* (nullable) */
} UprofReplaySettings;

/** UprofCaptureReplay: an analyzed capture */
typedef struct {
    UprofGuest *guest;       /* owned; the capture as a guest */
    UprofRun *run;           /* borrowed from @guest */
    UprofPipeline *pipeline; /* owned; has the profile */
    UprofHotPlaces *places;  /* (nullable): owned; of the function to annotate */
    uint64_t time_ns;        /* of the last snapshot */
    uint32_t reset;          /* of the last snapshot */
    unsigned n_given;        /* files of the user that the capture's own files can replace */
} UprofCaptureReplay;

/**
 * uprof_capture_replay_new:
 * @path: of a regular file
 * @settings: borrowed during the call
 * @code: (out): an error also if only a part of the capture could be read
 *
 * Sends a warning for each error.
 *
 * Returns: (transfer full) (nullable): %NULL if nothing of the capture can be used
 */
UprofCaptureReplay *uprof_capture_replay_new(const char *path, const UprofReplaySettings *settings,
                                             UprofErrorCode *code);
void uprof_capture_replay_free(UprofCaptureReplay *replay);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofCaptureReplay, uprof_capture_replay_free)

/** uprof_capture_replay_accepts: @head, the first bytes of a file, begin a capture */
bool uprof_capture_replay_accepts(UprofSlice head);

/** uprof_capture_replay_is_complete: false if the recording program was killed */
bool uprof_capture_replay_is_complete(const UprofCaptureReplay *replay);
