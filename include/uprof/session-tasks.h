/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * session-tasks.h - the tasks of a Linux guest, for commands that do not sample
 */
#pragma once

#include "uprof/session.h"
#include "uprof/task-table.h"

/** UprofSessionTasks: which tasks, and the functions of the worker's plan: see task-reply.h */
typedef struct {
    UprofTaskRequest request; /* its choice and form; the rest is filled later */
    unsigned prepare;         /* uprof_task_reply_prepare() */
    unsigned read;            /* uprof_task_reply_read_table(), or another one that reads */
    unsigned write;           /* uprof_task_reply_write() */
} UprofSessionTasks;

/**
 * uprof_session_read_tasks:
 * @session: prepared with a worker
 * @tasks: (inout): its request is completed
 * @text: (out) (transfer full) (nullable): lines that are safe to print; %NULL: see the code
 *
 * Holds vCPUs for snapshots (session-snapshots.h). With @pause_ns of its settings, the whole guest
 * is then held once while the worker reads the tasks. The worker reads them before that, too, so
 * that in the hold it knows all symbols and unwind tables. If the hold becomes too long, it ends,
 * and a notice says so. A guest that somebody else has paused is read as it is.
 *
 * Returns: %UPROF_ERROR_NONE; another code if it failed, after a notice with the reason
 */
UprofErrorCode uprof_session_read_tasks(UprofSession *session, UprofSessionTasks *tasks,
                                        GString **text, const UprofNotices *notices);
