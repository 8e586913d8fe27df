/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * ps.c - the command ps: the tasks of a Linux guest
 */
#include "commands-priv.h"

#include "domain-command-priv.h"
#include "task-command-priv.h"
#include "uprof/task-reply.h"

enum { CALL_PREPARE, CALL_READ, CALL_WRITE };

static const UprofAnalysisCall calls[] = {
    [CALL_PREPARE] = uprof_task_reply_prepare,
    [CALL_READ] = uprof_task_reply_read_table,
    [CALL_WRITE] = uprof_task_reply_write,
};

static UprofErrorCode
print_table(UprofSession *session, const UprofOptions *options, const UprofNotices *notices)
{
    return uprof_task_command_print(session, options, CALL_PREPARE, notices);
}

static UprofErrorCode
print_captured_table(const UprofCaptureReplay *replay, const UprofOptions *options,
                     const UprofNotices *notices)
{
    return uprof_task_command_print_capture(replay, options, uprof_task_table_make, notices);
}

static UprofErrorCode
print_captures(const UprofReadCommand *command)
{
    return uprof_capture_command_show(command, print_captured_table);
}

int
uprof_ps_run(UprofOptions *options)
{
    if (uprof_capture_command_accepts(options))
        return uprof_read_command_run(options, false, print_captures);
    return uprof_domain_command_run(options, calls, G_N_ELEMENTS(calls), print_table);
}
