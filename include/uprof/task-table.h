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

/** UprofTaskHold: the hold of the whole guest in which its tasks were read */
typedef struct {
    uint64_t ns;          /* its length; 0: there was none */
    uint64_t ended_early; /* 1: before all tasks were read: the guest ran while the rest was read */
} UprofTaskHold;

/** UprofTaskRequest: has no pointers, so that it can be sent to another process */
typedef struct {
    UprofTaskChoice choice;
    uint64_t time_ns; /* of a snapshot of the guest as it is now, such as that of the first vCPU */
    uint32_t reset;   /* of the same snapshot */
    /* time for the list, for the stacks of the kernel, and for those of user space; 0: the default
     */
    uint64_t list_ns, kernel_ns, user_ns;
    size_t most; /* bytes of the text, about; 0: %UPROF_TEXT_LONG_MAX */
    bool is_json;
    bool is_paused;    /* the guest */
    bool is_rehearsal; /* the same is read once more: only an error gives a notice */
    UprofTaskHold hold;
    char uuid[UPROF_MARKER_UUID_BYTES];
} UprofTaskRequest;

/**
 * UprofTaskReading: what was read about tasks; another struct begins with it
 *
 * A text is made in two steps, because the guest may be held while its tasks are read, and the text
 * also says for how long.
 */
typedef struct _UprofTaskReading UprofTaskReading;
struct _UprofTaskReading {
    UprofTaskRequest request; /* a copy */
    GString *(*write)(UprofTaskReading *reading, const UprofNotices *notices);
    void (*free)(UprofTaskReading *reading);
};

/**
 * uprof_task_reading_write: reads no tasks
 * @hold: in which the tasks were read
 * @notices: get a warning if tasks are left out
 *
 * Returns: (transfer full): lines that are safe to print
 */
GString *uprof_task_reading_write(UprofTaskReading *reading, const UprofTaskHold *hold,
                                  const UprofNotices *notices);

/** uprof_task_reading_free: @reading: (nullable) */
void uprof_task_reading_free(UprofTaskReading *reading);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofTaskReading, uprof_task_reading_free)

/** UprofTaskMake: makes a text about tasks: uprof_task_table_make() or uprof_task_groups_make() */
typedef GString *UprofTaskMake(UprofPipeline *pipeline, const UprofTaskRequest *request,
                               const char *shown, const UprofNotices *notices, GError **error);

/**
 * uprof_task_table_read:
 * @pipeline: has analyzed a snapshot of each vCPU; see uprof_linux_want_tasks(); must outlive the
 * result
 * @shown: the domain's name, safe to print; borrowed until the result is freed
 * @notices: get a warning if the list is not complete, or the kernel's types lack facts
 *
 * Returns: (transfer full) (nullable): %NULL with an error if tasks cannot be listed
 */
UprofTaskReading *
uprof_task_table_read(UprofPipeline *pipeline, const UprofTaskRequest *request, const char *shown,
                      const UprofNotices *notices, GError **error);

/**
 * uprof_task_table_make: both steps: reads, and makes a text
 *
 * Returns: (transfer full) (nullable): %NULL with an error if tasks cannot be listed
 */
GString *uprof_task_table_make(UprofPipeline *pipeline, const UprofTaskRequest *request,
                               const char *shown, const UprofNotices *notices, GError **error);
