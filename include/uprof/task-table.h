/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * task-table.h - the tasks of a Linux guest, as a table or as JSON
 *
 * Both run in the process without rights, like all analysis: they read the guest's memory.
 */
#pragma once

#include "uprof/notice.h"
#include "uprof/pipeline.h"
#include "uprof/task-choice.h"

/** UprofTaskRequest: has no pointers, so that it can be sent to another process */
typedef struct {
    UprofTaskChoice choice;
    uint64_t time_ns; /* of a snapshot of the guest as it is now, such as that of the first vCPU */
    uint32_t reset;   /* of the same snapshot */
    /* time for the list, for the stacks of the kernel, and for those of user space; 0: the default */
    uint64_t list_ns, kernel_ns, user_ns;
    size_t most; /* bytes of the text, about; 0: %UPROF_TEXT_LONG_MAX */
    bool is_json;
    bool is_paused; /* the guest */
    char uuid[UPROF_MARKER_UUID_BYTES];
} UprofTaskRequest;

/** UprofTaskMake: makes a text about tasks: uprof_task_table_make() or uprof_task_groups_make() */
typedef GString *UprofTaskMake(UprofPipeline *pipeline, const UprofTaskRequest *request,
                               const char *shown, const UprofNotices *notices, GError **error);

/**
 * uprof_task_table_make:
 * @pipeline: has analyzed a snapshot of each vCPU; see uprof_linux_want_tasks()
 * @shown: the domain's name, safe to print
 * @notices: get a warning if the list is not complete, the text becomes too long, or this kernel does
 *   not tell everything
 *
 * Returns: (transfer full) (nullable): lines that are safe to print; %NULL with an error if tasks cannot
 *   be listed
 */
GString *uprof_task_table_make(UprofPipeline *pipeline, const UprofTaskRequest *request,
                               const char *shown, const UprofNotices *notices, GError **error);
