/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * recording.h - one domain of a run: its session, its outcome and its files
 */
#pragma once

#include "uprof/session.h"
#include "uprof/loop.h"
#include "uprof/output-request.h"

/** UprofRecording: one domain of a run. All members are owned unless they say "borrowed". */
typedef struct {
    UprofSession *session;       /* set by uprof_recording_open() */
    const UprofNotices *notices; /* borrowed */
    const char *word;            /* (nullable): borrowed: the user's word for the domain */
    UprofLoop *loop;             /* (nullable): only of a guest that is held as a whole */
    GArray *outputs;             /* of UprofWorkerOutput; their files are owned, or %NULL after
                                  * they were written */
    bool has_spare;              /* the last output is written only if another one fails */
    UprofWorkerCounts counts;    /* of the complete run */
    bool has_restarted;          /* the process of the worker has died and was replaced */
    bool is_cut;                 /* the new process died, too: the files end at the checkpoint */
    bool is_lost;                /* there is no checkpoint, so nothing can be saved */
    bool stops_at_failure;       /* after a file that cannot be written, writes no more files */
    bool has_enough;             /* it was told to end because there are enough samples */
    bool is_done;                /* the sampler has ended, or the run no longer waits for it */
    bool is_left;                /* the run no longer waits for the sampler */
    uint64_t start_ns;           /* when its sampler began; monotonic */
    bool has_fallen_back;        /* changed from holds of one vCPU to holds of the whole guest */
    uint64_t reported_stride;    /* the largest stride that was reported; 0: none yet */
    bool has_reported_full;      /* after that the rate rose to its full value again */
    gint reported_hindrance;     /* the hindrance that was reported last */
    UprofErrorCode code;         /* of the first error; LEFT_HELD outranks it */
} UprofRecording;

/** UprofRecordingSettings: settings of a recording; all pointers are borrowed */
typedef struct {
    const UprofSessionSettings *session;
    UprofWorkers *workers;
    const GPtrArray *outputs; /* of UprofOutputRequest */
    const int *store; /* (nullable): the @parent of uprof_file_open_own(), which then opens the
                       * files; writing stops at the first failure */
    const char *time; /* UTC, for %t in file names */
    /* (nullable): called with @data when libvirt has answered all questions about the domain, or
     * the domain cannot be opened */
    void (*on_opened)(const void *data);
    const void *data;
} UprofRecordingSettings;

void uprof_recording_free(UprofRecording *recording);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofRecording, uprof_recording_free)
