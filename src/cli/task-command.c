/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "task-command-priv.h"

#include "terminal-priv.h"
#include "uprof/clock.h"
#include "uprof/number-text.h"
#include "uprof/session-snapshots.h"
#include "uprof/task-reply.h"
#include "uprof/text.h"
#include "worker-reply-priv.h"

/* A list of tasks that takes longer is of many moments. */
#define SLOW_NS (UINT64_C(2) * UPROF_NS_PER_S)

/* @time_ns, @reset: of a snapshot of the guest as it is now */
static UprofTaskRequest
make_request(const UprofOptions *options, const char *uuid, uint64_t time_ns, uint32_t reset)
{
    UprofTaskRequest request = {
        .choice = options->tasks,
        .time_ns = time_ns,
        .reset = reset,
        .is_json = options->json,
    };

    request.choice.order =
        options->is_blocked ? UPROF_TASK_BLOCKED : uprof_task_choice_order(options->sort);
    g_strlcpy(request.uuid, uuid, sizeof(request.uuid));
    return request;
}

static GString *
make_text(const UprofSession *session, unsigned call, const UprofTaskRequest *request,
          const UprofNotices *notices, GError **error)
{
    const uint64_t began_ns = uprof_clock_now_ns();
    GString *text =
        uprof_worker_reply_text(session, call, (UprofSlice){ request, sizeof(*request) }, error);
    const uint64_t taken_ns = uprof_clock_now_ns() - began_ns;

    if (text && taken_ns > SLOW_NS) {
        g_autofree char *taken = uprof_format_ns(taken_ns);
        uprof_notice(notices, UPROF_NOTICE_INFO, "%s: reading the tasks took %s", session->shown,
                     taken);
    }
    return text;
}

UprofErrorCode
uprof_task_command_print(UprofSession *session, const UprofOptions *options, unsigned prepare,
                         unsigned call, const UprofNotices *notices)
{
    g_auto(UprofSnapshots) snapshots = { 0 };
    g_autoptr(GByteArray) reply = NULL;
    g_autoptr(GError) error = NULL;

    if (!uprof_worker_call(session->worker, prepare, (UprofSlice){ 0 }, &reply, &error))
        return uprof_notice_error(notices, error);
    const UprofErrorCode code = uprof_session_take_snapshots(session, &snapshots, notices);
    if (code != UPROF_ERROR_NONE)
        return code;
    const UprofSnapshot *first = snapshots.slots[0];
    UprofTaskRequest request =
        make_request(options, session->domain->uuid, first->time_ns, first->reset);
    request.is_paused = session->guest->paused;
    GString *text = make_text(session, call, &request, notices, &error);
    if (!text)
        return uprof_notice_error(notices, error);
    if (text->len > 0)
        return uprof_terminal_print(text) == 0 ? UPROF_ERROR_NONE : UPROF_ERROR_FAILED;
    g_string_free(text, TRUE);
    return UPROF_ERROR_UNSUPPORTED; /* the worker has said why */
}

UprofErrorCode
uprof_task_command_print_capture(const UprofCaptureReplay *replay, const UprofOptions *options,
                                 UprofTaskMake *make, const UprofNotices *notices)
{
    const UprofRun *run = replay->run;
    const UprofTaskRequest request =
        make_request(options, run->uuid ? run->uuid : "", replay->time_ns, replay->reset);
    g_autofree char *shown = uprof_text_quote(run->domain);
    g_autoptr(GError) error = NULL;
    GString *text = make(replay->pipeline, &request, shown, notices, &error);

    if (text)
        return uprof_terminal_print(text) == 0 ? UPROF_ERROR_NONE : UPROF_ERROR_FAILED;
    g_prefix_error(&error, "the capture of %s has no tasks: ", shown);
    return uprof_notice_error(notices, error);
}
