/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/session-tasks.h"

#include "uprof/clock.h"
#include "uprof/number-text.h"
#include "uprof/session-snapshots.h"
#include "uprof/text.h"

#include "pause-priv.h"
#include "session-priv.h"

enum { PAUSE_S_MAX = UPROF_PAUSE_MAX_MS / 1000 };

/* A list of tasks that takes longer is of many moments. */
#define SLOW_NS (UINT64_C(2) * UPROF_NS_PER_S)

/*
 * The time of snapshots between the rehearsal and the hold. In this time the worker forgets all
 * memory and all facts about processes. It is longer than the longest rehearsal, which counts 10 ms
 * for a task.
 */
#define APART_NS (UINT64_C(2000) * UPROF_NS_PER_S)

static UprofSlice
request_slice(const UprofSessionTasks *tasks)
{
    return (UprofSlice){ &tasks->request, sizeof(tasks->request) };
}

/* Returns: %UPROF_ERROR_UNSUPPORTED if the worker has not read the tasks; it has said why */
static UprofErrorCode
check_reply(const GByteArray *reply)
{
    return reply->len > 0 ? UPROF_ERROR_NONE : UPROF_ERROR_UNSUPPORTED;
}

static UprofErrorCode
read_running(UprofSession *session, const UprofSessionTasks *tasks, const UprofNotices *notices)
{
    g_autoptr(GByteArray) reply = NULL;
    g_autoptr(GError) error = NULL;

    if (!uprof_worker_call(session->worker, tasks->read, request_slice(tasks), &reply, &error))
        return uprof_notice_error(notices, error);
    return check_reply(reply);
}

/* @taken_ns: how long the call took, in which the pause ended */
static void
warn_about_end(const UprofSession *session, const UprofPauseResult *result, uint64_t taken_ns,
               const UprofNotices *notices)
{
    const uint64_t seconds = taken_ns / UPROF_NS_PER_S + 1;
    g_autofree char *held = uprof_format_ns(result->held_ns);
    g_autofree char *hint = NULL;

    if (result->end == UPROF_PAUSE_INTERRUPTED)
        hint = g_strdup("");
    else if (session->guest->slow_reads)
        hint = g_strdup("; each read takes milliseconds: 'virt-uprof check' says why");
    else if (seconds <= PAUSE_S_MAX)
        hint = g_strdup_printf("; try --max-pause %" G_GUINT64_FORMAT "s", seconds);
    else
        hint = g_strdup("; choose fewer tasks");
    uprof_notice(notices, UPROF_NOTICE_WARNING,
                 "%s: the pause ended after %s, before all tasks were read: the others were read "
                 "while the guest ran%s",
                 session->shown, held, hint);
}

/* @request: (inout): gets the time of the hold */
static UprofErrorCode
read_held(UprofSession *session, UprofSessionTasks *tasks, const UprofNotices *notices)
{
    const UprofPauseInput input = {
        .guest = session->guest,
        .guardian = session->guardian ? uprof_guardian_fd(session->guardian) : -1,
        .limit_ns = session->settings.pause_ns,
        .worker = session->worker,
        .call = tasks->read,
        .argument = request_slice(tasks),
    };
    g_auto(UprofPauseResult) result;
    g_autoptr(GError) error = NULL;

    tasks->request.time_ns += APART_NS;
    const uint64_t began_ns = uprof_clock_now_ns();
    const UprofAnswer answer = uprof_pause_call(&input, &result, &error);
    const uint64_t taken_ns = uprof_clock_now_ns() - began_ns;
    if (answer != UPROF_OK)
        return uprof_session_note_answer(session, answer, error, notices);
    tasks->request.hold = (UprofTaskHold){ result.held_ns, result.end != UPROF_PAUSE_DONE };
    if (result.end == UPROF_PAUSE_DONE) {
        g_autofree char *held = uprof_format_ns(result.held_ns);
        uprof_notice(notices, UPROF_NOTICE_INFO, "%s: held for %s", session->shown, held);
    } else {
        warn_about_end(session, &result, taken_ns, notices);
    }
    return check_reply(result.reply);
}

static UprofErrorCode
read_tasks(UprofSession *session, UprofSessionTasks *tasks, const UprofNotices *notices)
{
    const bool has_pause = session->settings.pause_ns > 0 && !session->guest->paused;
    const uint64_t began_ns = uprof_clock_now_ns();

    tasks->request.is_rehearsal = has_pause;
    UprofErrorCode code = read_running(session, tasks, notices);
    const uint64_t taken_ns = uprof_clock_now_ns() - began_ns;
    tasks->request.is_rehearsal = false;
    if (code == UPROF_ERROR_NONE && has_pause)
        return read_held(session, tasks, notices);
    if (code == UPROF_ERROR_NONE && taken_ns > SLOW_NS) {
        g_autofree char *taken = uprof_format_ns(taken_ns);
        uprof_notice(notices, UPROF_NOTICE_INFO, "%s: reading the tasks took %s", session->shown,
                     taken);
    }
    return code;
}

static UprofErrorCode
write_text(UprofSession *session, const UprofSessionTasks *tasks, GString **text,
           const UprofNotices *notices)
{
    const UprofTaskHold hold = tasks->request.hold;
    g_autoptr(GByteArray) reply = NULL;
    g_autoptr(GError) error = NULL;

    if (!uprof_worker_call(session->worker, tasks->write, (UprofSlice){ &hold, sizeof(hold) },
                           &reply, &error))
        return uprof_notice_error(notices, error);
    *text = g_string_new(NULL);
    uprof_text_append_lines(*text, (UprofSlice){ reply->data, reply->len });
    return UPROF_ERROR_NONE;
}

UprofErrorCode
uprof_session_read_tasks(UprofSession *session, UprofSessionTasks *tasks, GString **text,
                         const UprofNotices *notices)
{
    g_auto(UprofSnapshots) snapshots = { 0 };
    g_autoptr(GByteArray) reply = NULL;
    g_autoptr(GError) error = NULL;

    *text = NULL;
    if (!uprof_worker_call(session->worker, tasks->prepare, (UprofSlice){ 0 }, &reply, &error))
        return uprof_notice_error(notices, error);
    UprofErrorCode code = uprof_session_find_linux(session, &snapshots, notices);
    if (code != UPROF_ERROR_NONE)
        return code;
    /* the search for the kernel may have taken longer than memory is remembered */
    tasks->request.time_ns = uprof_clock_now_ns();
    tasks->request.reset = snapshots.slots[0]->reset;
    tasks->request.is_paused = session->guest->paused;
    g_strlcpy(tasks->request.uuid, session->domain->uuid, sizeof(tasks->request.uuid));
    code = read_tasks(session, tasks, notices);
    return code == UPROF_ERROR_NONE ? write_text(session, tasks, text, notices) : code;
}
