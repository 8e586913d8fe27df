/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * stack-reply.h - a worker's reply with the stack of one vCPU, as text
 */
#pragma once

#include "uprof/analysis.h"
#include "uprof/marker.h"

/** UprofStackRequest: the argument of the call */
typedef struct {
    bool is_json;
    bool is_first, is_last; /* of the vCPUs of one domain, for the JSON around them */
    bool is_paused;         /* the guest */
    char uuid[UPROF_MARKER_UUID_BYTES];
    UprofSnapshot snapshot; /* the last member: without its unused bytes */
} UprofStackRequest;

/** uprof_stack_reply_make: a call of UprofWorkerPlan; replies with the text */
void uprof_stack_reply_make(UprofAnalysis *analysis, UprofSlice argument, GByteArray *reply);
