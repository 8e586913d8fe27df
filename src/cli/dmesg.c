/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * dmesg.c - the command dmesg: the log of a Linux guest's kernel
 */
#include "commands-priv.h"

#include "capture-command-priv.h"
#include "domain-command-priv.h"
#include "terminal-priv.h"
#include "uprof/log-reply.h"
#include "uprof/session-snapshots.h"
#include "uprof/text.h"

#include <string.h>

enum { CALL_LOG };

static const UprofAnalysisCall calls[] = { [CALL_LOG] = uprof_log_reply_make };

static UprofErrorCode
print_reply(const UprofSession *session, const GByteArray *reply, const UprofNotices *notices)
{
    UprofLogReply head = { .code = UPROF_ERROR_FAILED };
    GString *text = g_string_new(NULL);

    if (reply->len >= sizeof(head)) {
        memcpy(&head, reply->data, sizeof(head));
        uprof_text_append_lines(
            text, (UprofSlice){ reply->data + sizeof(head), reply->len - sizeof(head) });
    }
    if (head.code == UPROF_ERROR_NONE)
        return uprof_terminal_print(text);
    uprof_notice(notices, UPROF_NOTICE_WARNING, "%s: %s", session->shown, text->str);
    g_string_free(text, TRUE);
    return head.code;
}

static UprofErrorCode
print_log(UprofSession *session, const UprofOptions *options, const UprofNotices *notices)
{
    const UprofLogRequest request = { .is_json = options->json };
    g_auto(UprofSnapshots) snapshots;
    g_autoptr(GByteArray) reply = NULL;
    g_autoptr(GError) error = NULL;
    const UprofErrorCode code = uprof_session_find_linux(session, &snapshots, notices);

    if (code != UPROF_ERROR_NONE)
        return code;
    if (!uprof_worker_call(session->worker, CALL_LOG, (UprofSlice){ &request, sizeof(request) },
                           &reply, &error))
        return uprof_notice_error(notices, error);
    return print_reply(session, reply, notices);
}

static UprofErrorCode
print_captured_log(const UprofCaptureReplay *replay, const UprofOptions *options,
                   const UprofNotices *notices)
{
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(GError) error = NULL;

    if (uprof_log_append(text, replay->pipeline, options->json, notices, &error) !=
        UPROF_ERROR_NONE)
        return uprof_notice_error(notices, error);
    return uprof_terminal_print(g_steal_pointer(&text));
}

static UprofErrorCode
print_captures(const UprofReadCommand *command)
{
    return uprof_capture_command_show(command, print_captured_log);
}

int
uprof_dmesg_run(UprofOptions *options)
{
    if (uprof_capture_command_accepts(options))
        return uprof_read_command_run(options, false, print_captures);
    return uprof_domain_command_run(options, calls, G_N_ELEMENTS(calls), print_log);
}
