/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * task-groups.h - the stacks of tasks that do not run; equal stacks are shown once
 */
#pragma once

#include "uprof/task-table.h"

/** uprof_task_groups_read: as uprof_task_table_read() */
UprofTaskReading *
uprof_task_groups_read(UprofPipeline *pipeline, const UprofTaskRequest *request, const char *shown,
                       const UprofNotices *notices, GError **error);

/** uprof_task_groups_make: as uprof_task_table_make() */
GString *uprof_task_groups_make(UprofPipeline *pipeline, const UprofTaskRequest *request,
                                const char *shown, const UprofNotices *notices, GError **error);
