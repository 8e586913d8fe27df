/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "task-command-priv.h"

#include "terminal-priv.h"
#include "uprof/session-tasks.h"
#include "uprof/text.h"

static UprofTaskRequest
make_request(const UprofOptions *options)
{
    UprofTaskRequest request = { .choice = options->tasks, .is_json = options->json };

    request.choice.order =
        options->is_blocked ? UPROF_TASK_BLOCKED : uprof_task_choice_order(options->sort);
    return request;
}

UprofErrorCode
uprof_task_command_print(UprofSession *session, const UprofOptions *options, unsigned first_call,
                         const UprofNotices *notices)
{
    UprofSessionTasks tasks = {
        .request = make_request(options),
        .prepare = first_call,
        .read = first_call + 1,
        .write = first_call + 2,
    };
    GString *text;
    const UprofErrorCode code = uprof_session_read_tasks(session, &tasks, &text, notices);

    if (code != UPROF_ERROR_NONE)
        return code;
    return uprof_terminal_print(text);
}

UprofErrorCode
uprof_task_command_print_capture(const UprofCaptureReplay *replay, const UprofOptions *options,
                                 UprofTaskMake *make, const UprofNotices *notices)
{
    const UprofRun *run = replay->run;
    UprofTaskRequest request = make_request(options);
    g_autofree char *shown = uprof_text_quote(run->domain);
    g_autoptr(GError) error = NULL;

    request.time_ns = replay->time_ns;
    request.reset = replay->reset;
    g_strlcpy(request.uuid, run->uuid ? run->uuid : "", sizeof(request.uuid));
    GString *text = make(replay->pipeline, &request, shown, notices, &error);
    if (text)
        return uprof_terminal_print(text);
    g_prefix_error(&error, "the capture of %s has no tasks: ", shown);
    return uprof_notice_error(notices, error);
}
