/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * dump.c - the command dump: the current stack of each vCPU
 *
 * The command also reads a guest that somebody has paused, and leaves it paused.
 */
#include "commands-priv.h"

#include "uprof/domid.h"
#include "exit-priv.h"
#include "uprof/json-writer.h"
#include "uprof/session.h"
#include "uprof/stack-text.h"
#include "worker-reply-priv.h"

#include <stdio.h>
#include <string.h>

/* A request of the program to a worker: make the text of one stack. */
typedef struct {
    bool is_json;
    bool is_first, is_last;
    bool is_paused; /* the guest */
    char uuid[UPROF_MARKER_UUID_BYTES];
    UprofSnapshot snapshot; /* the last member: without its unused bytes */
} StackRequest;

static void
begin_json(UprofJsonWriter *json, const UprofAnalysis *analysis, const StackRequest *request)
{
    if (!request->is_first) {
        json->needs_comma = true;
        uprof_json_break_line(json, "\n  ");
        return;
    }
    uprof_json_begin(json, NULL, UPROF_JSON_OBJECT);
    uprof_json_string(json, "domain", analysis->shown);
    uprof_json_string(json, "uuid", request->uuid);
    uprof_json_bool(json, "paused", request->is_paused);
    uprof_json_break_line(json, "\n ");
    uprof_json_begin(json, "vcpus", UPROF_JSON_ARRAY);
}

static void
end_json(UprofJsonWriter *json)
{
    uprof_json_end(json, UPROF_JSON_ARRAY);
    uprof_json_end(json, UPROF_JSON_OBJECT);
    g_string_append_c(json->out, '\n');
}

/* In the worker: the stack of one vCPU, as text. @argument: StackRequest */
static void
make_stack(UprofAnalysis *analysis, UprofSlice argument, GByteArray *reply)
{
    const StackRequest *request = argument.data;
    GString *out = g_string_new(NULL);
    UprofJsonWriter json = { .out = out };

    uprof_pipeline_take(analysis->pipeline, &request->snapshot, NULL);
    uprof_sym_resolve(analysis->pipeline->sym, UPROF_SYM_RESOLVE_MS);
    if (request->is_json) {
        begin_json(&json, analysis, request);
        uprof_stack_text_write(&json, analysis->pipeline, &request->snapshot);
        if (request->is_last)
            end_json(&json);
    } else {
        uprof_stack_text_append(out, analysis->pipeline, &request->snapshot, analysis->shown);
    }
    g_byte_array_append(reply, (const guint8 *)out->str, (guint)out->len);
    g_string_free(out, TRUE);
}

enum { CALL_STACK };

static const UprofAnalysisCall calls[] = { [CALL_STACK] = make_stack };

static UprofErrorCode
print_stack(const UprofSession *session, const StackRequest *request, const UprofNotices *notices)
{
    const UprofSlice argument = {
        request,
        G_STRUCT_OFFSET(StackRequest, snapshot) + uprof_snapshot_bytes(&request->snapshot),
    };
    g_autoptr(GError) error = NULL;
    g_autoptr(GString) text = uprof_worker_reply_text(session, CALL_STACK, argument, &error);

    if (!text)
        return uprof_notice_error(notices, error);
    return fputs(text->str, stdout) >= 0 ? UPROF_ERROR_NONE : UPROF_ERROR_FAILED;
}

static UprofErrorCode
print_stacks(const UprofSession *session, UprofSnapshot **slots, unsigned n, bool as_json,
             const UprofNotices *notices)
{
    g_autofree StackRequest *request = g_new0(StackRequest, 1);
    UprofErrorCode code = UPROF_ERROR_NONE;

    request->is_json = as_json;
    request->is_paused = session->guest->paused;
    g_strlcpy(request->uuid, session->domain->uuid, sizeof(request->uuid));
    for (unsigned i = 0; i < n && code == UPROF_ERROR_NONE; i++) {
        request->is_first = i == 0;
        request->is_last = i + 1 == n;
        memcpy(&request->snapshot, slots[i], uprof_snapshot_bytes(slots[i]));
        code = print_stack(session, request, notices);
    }
    return fflush(stdout) == 0 ? code : UPROF_ERROR_FAILED;
}

/*
 * Takes the snapshots twice. From the first ones the worker finds the kernel of a Linux guest. With
 * the kernel known, the second ones also contain data such as the running process.
 */
static UprofAnswer
take_stacks(UprofSession *session, UprofSnapshot **slots, unsigned *n, GError **error)
{
    const UprofAnswer answer = uprof_sampler_sample_once(session->sampler, slots, n, error);

    for (unsigned i = 0; answer == UPROF_OK && i < *n; i++) {
        slots[i]->is_prime = true;
        uprof_worker_take(session->worker, slots[i]);
        slots[i]->is_prime = false;
    }
    if (answer == UPROF_OK && !uprof_worker_sync(session->worker, error))
        return UPROF_FAILED;
    return *uprof_worker_links(session->worker)
               ? uprof_sampler_sample_once(session->sampler, slots, n, error)
               : answer;
}

static UprofErrorCode
fail_dump(const UprofSession *session, const UprofNotices *notices, UprofErrorCode code,
          const char *why)
{
    uprof_notice(notices, UPROF_NOTICE_WARNING, "%s: %s", session->shown, why);
    return code;
}

static UprofErrorCode
dump_stacks(UprofSession *session, bool json, const UprofNotices *notices)
{
    g_autoptr(GError) error = NULL;
    g_autofree UprofSnapshot **slots = g_new0(UprofSnapshot *, session->guest->n_vcpus);
    g_autofree UprofSnapshot *pool = g_new0(UprofSnapshot, session->guest->n_vcpus);
    unsigned n = 0;

    for (unsigned i = 0; i < session->guest->n_vcpus; i++)
        slots[i] = &pool[i];
    switch (take_stacks(session, slots, &n, &error)) {
    case UPROF_OK:
    case UPROF_ABSENT:
        return print_stacks(session, slots, n, json, notices);
    case UPROF_BUSY:
        return fail_dump(session, notices, UPROF_ERROR_NOT_FOUND,
                         "somebody else stops, migrates or saves the domain; try again later");
    case UPROF_STUCK:
        return fail_dump(session, notices, UPROF_ERROR_EMPTY,
                         "no vCPU stopped within --max-pause; try a longer one");
    case UPROF_GONE:
        return fail_dump(session, notices, UPROF_ERROR_NOT_FOUND, "the domain has just ended");
    default:
        return uprof_notice_error(notices, error);
    }
}

/* A run copies more stack after a sample needed it. A dump copies the largest window at once. */
static void
widen_windows(UprofSession *session)
{
    for (unsigned i = 0; i < session->guest->n_vcpus; i++)
        session->sizes[i].wanted = UPROF_SNAPSHOT_BYTES_MAX;
}

static UprofErrorCode
dump_domain(UprofHost *host, const char *word, const UprofOptions *options, UprofGuardian *guardian,
            UprofWorkers *workers)
{
    const UprofNotices notices = uprof_options_notices(options);
    const UprofSessionSettings settings = uprof_options_session(options, &notices);
    g_autoptr(GError) error = NULL;
    UprofDomain *domain = uprof_domid_find(host, word, &notices, &error);

    if (!domain)
        return uprof_notice_error(&notices, error);
    g_autoptr(UprofSession) session =
        uprof_session_open(domain, &settings, guardian,
                           UPROF_SESSION_MAY_BE_PAUSED | UPROF_SESSION_WAIT_FOR_LOCK, &error);
    if (!session || !uprof_session_prepare(session, workers, NULL, NULL, &error))
        return uprof_notice_error(&notices, error);
    widen_windows(session);
    return dump_stacks(session, options->json, &notices);
}

int
uprof_dump_run(UprofOptions *options)
{
    const UprofNotices notices = uprof_options_notices(options);
    g_autoptr(GError) error = NULL;
    const UprofWorkerPlan plan = {
        .symbols = uprof_options_symbols(options),
        .calls = calls,
        .n_calls = G_N_ELEMENTS(calls),
    };
    UprofGuardian *guardian = uprof_guardian_start(uprof_access_find, &error);
    g_autoptr(UprofWorkers) workers = guardian ? uprof_workers_new(&plan, &error) : NULL;
    UprofErrorTally tally = { 0 };

    if (!workers) {
        uprof_guardian_end(guardian, NULL);
        return uprof_say_error(error);
    }
    uprof_host_init();
    int code = uprof_exit_of_code(uprof_session_recover(&notices));
    g_autoptr(UprofHost) host = uprof_host_open(options->uri, false, &error);
    if (!host)
        uprof_error_count(&tally, uprof_notice_error(&notices, error));
    for (guint i = 0; host && i < options->words->len; i++)
        uprof_error_count(&tally, dump_domain(host, g_ptr_array_index(options->words, i), options,
                                              guardian, workers));
    code = uprof_exit_worse(code, uprof_exit_of_tally(&tally));
    return uprof_exit_worse(
        code, uprof_exit_of_code(uprof_session_end_guardian(guardian, false, &notices)));
}
