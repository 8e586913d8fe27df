/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * task-command-priv.h - what the commands ps and dump --tasks have in common
 */
#pragma once

#include "capture-command-priv.h"
#include "uprof/session.h"
#include "uprof/task-table.h"

/**
 * uprof_task_command_print: prints a worker's text about the tasks of a guest
 * @first_call: the first of three functions of UprofWorkerPlan: see UprofSessionTasks
 */
UprofErrorCode uprof_task_command_print(UprofSession *session, const UprofOptions *options,
                                        unsigned first_call, const UprofNotices *notices);

/** uprof_task_command_print_capture: prints the tasks of a guest at the end of its capture */
UprofErrorCode
uprof_task_command_print_capture(const UprofCaptureReplay *replay, const UprofOptions *options,
                                 UprofTaskMake *make, const UprofNotices *notices);
