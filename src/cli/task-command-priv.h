/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * task-command-priv.h - what the commands ps and dump --tasks have in common
 */
#pragma once

#include "capture-command-priv.h"
#include "uprof/session.h"
#include "uprof/task-table.h"

/**
 * uprof_task_command_print: prints a worker's reply about the tasks of a guest
 * @prepare, @call: of UprofWorkerPlan: uprof_task_reply_prepare(), and the function that makes the reply
 */
UprofErrorCode
uprof_task_command_print(UprofSession *session, const UprofOptions *options, unsigned prepare,
                         unsigned call, const UprofNotices *notices);

/** uprof_task_command_print_capture: prints the tasks of a guest at the end of its capture */
UprofErrorCode
uprof_task_command_print_capture(const UprofCaptureReplay *replay, const UprofOptions *options,
                                 UprofTaskMake *make, const UprofNotices *notices);
