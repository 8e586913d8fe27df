/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * task-reply.h - a worker's replies with the tasks of a Linux guest, as text
 *
 * A reply is empty if tasks cannot be listed; a notice has said why. The argument of
 * uprof_task_reply_table() and uprof_task_reply_groups() is a UprofTaskRequest.
 */
#pragma once

#include "uprof/analysis.h"
#include "uprof/task-table.h"

/** uprof_task_reply_prepare: to be called before snapshots are taken; has no argument and no reply */
void uprof_task_reply_prepare(UprofAnalysis *analysis, UprofSlice argument, GByteArray *reply);

/** uprof_task_reply_table: the list of tasks */
void uprof_task_reply_table(UprofAnalysis *analysis, UprofSlice argument, GByteArray *reply);

/** uprof_task_reply_groups: the stacks of tasks */
void uprof_task_reply_groups(UprofAnalysis *analysis, UprofSlice argument, GByteArray *reply);
