/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * dump.c - the command dump: the current stack of each vCPU, or of each task of a Linux guest
 *
 * The command also reads a guest that somebody has paused, and leaves it paused.
 */
#include "commands-priv.h"

#include "domain-command-priv.h"
#include "task-command-priv.h"
#include "uprof/session-snapshots.h"
#include "uprof/stack-reply.h"
#include "uprof/task-groups.h"
#include "uprof/task-reply.h"
#include "worker-reply-priv.h"

#include <stdio.h>
#include <string.h>

enum { CALL_STACK, CALL_PREPARE_TASKS, CALL_READ_TASKS, CALL_WRITE_TASKS };

static const UprofAnalysisCall calls[] = {
    [CALL_STACK] = uprof_stack_reply_make,
    [CALL_PREPARE_TASKS] = uprof_task_reply_prepare,
    [CALL_READ_TASKS] = uprof_task_reply_read_groups,
    [CALL_WRITE_TASKS] = uprof_task_reply_write,
};

static UprofErrorCode
print_stack(const UprofSession *session, const UprofStackRequest *request,
            const UprofNotices *notices)
{
    const UprofSlice argument = {
        request,
        G_STRUCT_OFFSET(UprofStackRequest, snapshot) + uprof_snapshot_bytes(&request->snapshot),
    };
    g_autoptr(GError) error = NULL;
    g_autoptr(GString) text = uprof_worker_reply_text(session, CALL_STACK, argument, &error);

    if (!text)
        return uprof_notice_error(notices, error);
    return fputs(text->str, stdout) >= 0 ? UPROF_ERROR_NONE : UPROF_ERROR_FAILED;
}

static UprofErrorCode
print_stacks(UprofSession *session, const UprofOptions *options, const UprofNotices *notices)
{
    g_autofree UprofStackRequest *request = g_new0(UprofStackRequest, 1);
    g_auto(UprofSnapshots) snapshots;
    UprofErrorCode code = uprof_session_take_snapshots(session, &snapshots, notices);

    request->is_json = options->json;
    request->is_paused = session->guest->paused;
    g_strlcpy(request->uuid, session->domain->uuid, sizeof(request->uuid));
    for (unsigned i = 0; i < snapshots.n && code == UPROF_ERROR_NONE; i++) {
        request->is_first = i == 0;
        request->is_last = i + 1 == snapshots.n;
        memcpy(&request->snapshot, snapshots.slots[i], uprof_snapshot_bytes(snapshots.slots[i]));
        code = print_stack(session, request, notices);
    }
    return fflush(stdout) == 0 ? code : UPROF_ERROR_FAILED;
}

static UprofErrorCode
print_tasks(UprofSession *session, const UprofOptions *options, const UprofNotices *notices)
{
    return uprof_task_command_print(session, options, CALL_PREPARE_TASKS, notices);
}

static UprofErrorCode
print_captured_tasks(const UprofCaptureReplay *replay, const UprofOptions *options,
                     const UprofNotices *notices)
{
    return uprof_task_command_print_capture(replay, options, uprof_task_groups_make, notices);
}

static UprofErrorCode
print_captures(const UprofReadCommand *command)
{
    return uprof_capture_command_show(command, print_captured_tasks);
}

int
uprof_dump_run(UprofOptions *options)
{
    const bool shows_tasks = options->shows_tasks || options->is_blocked;

    if (shows_tasks && uprof_capture_command_accepts(options))
        return uprof_read_command_run(options, false, print_captures);
    return uprof_domain_command_run(options, calls, G_N_ELEMENTS(calls),
                                    shows_tasks ? print_tasks : print_stacks);
}
