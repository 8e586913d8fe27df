/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * task-reply.h - a worker's replies with the tasks of a Linux guest, as text
 *
 * The tasks are read in one call and written in another, because the guest may be held during the
 * first.
 */
#pragma once

#include "uprof/analysis.h"

/** uprof_task_reply_prepare: to be called before snapshots are taken; has no argument and no reply
 */
void uprof_task_reply_prepare(UprofAnalysis *analysis, UprofSlice argument, GByteArray *reply);

/**
 * uprof_task_reply_read_table: reads the list of tasks
 *
 * The argument is a UprofTaskRequest. The worker keeps what it has read until the next such call.
 * The reply is empty if tasks cannot be listed; a notice has said why. Else it has one byte.
 */
void uprof_task_reply_read_table(UprofAnalysis *analysis, UprofSlice argument, GByteArray *reply);

/** uprof_task_reply_read_groups: the same for the stacks of tasks */
void uprof_task_reply_read_groups(UprofAnalysis *analysis, UprofSlice argument, GByteArray *reply);

/**
 * uprof_task_reply_write: the text about the tasks that were read last; empty if there are none
 *
 * The argument is an uint64_t: see uprof_task_reading_write().
 */
void uprof_task_reply_write(UprofAnalysis *analysis, UprofSlice argument, GByteArray *reply);
