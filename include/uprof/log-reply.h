/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * log-reply.h - a worker's reply with the log of a Linux guest's kernel
 */
#pragma once

#include "uprof/analysis.h"

/** UprofLogRequest: the argument of the call */
typedef struct {
    bool is_json;
} UprofLogRequest;

/** UprofLogReply: the reply begins so; the text follows */
typedef struct {
    UprofErrorCode code; /* %UPROF_ERROR_NONE: the text is the log; else, why there is none */
} UprofLogReply;

/**
 * uprof_log_append: appends the log of the kernel
 * @pipeline: has analyzed a snapshot of each vCPU
 * @notices: get a warning if the log is longer than %UPROF_TEXT_LONG_MAX
 *
 * Returns: %UPROF_ERROR_NONE, or the code of the error
 */
UprofErrorCode uprof_log_append(GString *out, const UprofPipeline *pipeline, bool as_json,
                                const UprofNotices *notices, GError **error);

/** uprof_log_reply_make: a call of UprofWorkerPlan; snapshots of the guest were taken before */
void uprof_log_reply_make(UprofAnalysis *analysis, UprofSlice argument, GByteArray *reply);
