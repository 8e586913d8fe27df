/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * check.c - the command check: diagnoses a host or a domain
 *
 * The command prints one line per finding. The findings about a domain come from a few samples.
 * Without a domain, the command checks the host.
 */
#include "commands-priv.h"

#include "exit-priv.h"
#include "uprof/analysis-findings.h"
#include "uprof/diagnosis-text.h"
#include "uprof/domid.h"
#include "uprof/host-findings.h"
#include "uprof/json-writer.h"
#include "uprof/probes.h"
#include "uprof/push-probe.h"
#include "uprof/push-rounds.h"
#include "uprof/session-findings.h"
#include "uprof/session.h"
#include "uprof/clock.h"
#include "uprof/number-text.h"
#include "uprof/text.h"
#include "uprof/worker.h"

#include <stdio.h>
#include <string.h>

/* ---- Findings of a worker ---- */

/* In the worker: the findings about the guest's symbols and stacks. */
static void
make_findings(UprofAnalysis *analysis, UprofSlice argument, GByteArray *reply)
{
    g_auto(UprofDiagnosis) diagnosis = { 0 };

    uprof_diagnosis_init(&diagnosis, "");
    uprof_analysis_findings_add(&diagnosis, analysis);
    uprof_diagnosis_pack(&diagnosis, reply);
}

/* In the worker: prepares for the digest of the kernel's symbols. */
static void
want_digest(UprofAnalysis *analysis, UprofSlice argument, GByteArray *reply)
{
    uprof_linux_want_digest(analysis->pipeline->kernel);
}

enum { CALL_FINDINGS, CALL_WANT_DIGEST };

static const UprofAnalysisCall calls[] = {
    [CALL_FINDINGS] = make_findings,
    [CALL_WANT_DIGEST] = want_digest,
};

static void
take_findings(UprofDiagnosis *diagnosis, const UprofSession *session)
{
    g_autoptr(GByteArray) reply = NULL;
    g_autoptr(GError) error = NULL;

    if (!uprof_worker_call(session->worker, CALL_FINDINGS, (UprofSlice){ 0 }, &reply, &error)) {
        uprof_diagnosis_add_error(diagnosis, "symbols", error);
        return;
    }
    uprof_diagnosis_unpack(diagnosis, (UprofSlice){ reply->data, reply->len });
}

/* ---- A domain ---- */

/* The receiver of the samples that the probes take. */
typedef struct {
    UprofDiagnosis *diagnosis;
    UprofSession *session;
    bool has_mode;
} Probing;

static void
take_probe(const UprofSnapshot *snapshot, void *data)
{
    Probing *probing = data;

    uprof_worker_take(probing->session->worker, snapshot);
    /* The registers of a halted vCPU may be unknown. */
    if (!probing->has_mode && snapshot->regs.word_bytes > 0) {
        uprof_session_findings_mode(probing->diagnosis, probing->session, &snapshot->regs);
        probing->has_mode = true;
    }
}

/* Returns: the number of probes that gave samples; -1 after a finding that says why not */
static int
take_probes(UprofDiagnosis *diagnosis, UprofSession *session)
{
    Probing probing = { diagnosis, session, false };
    const UprofProbesSettings probes = {
        .sampler = session->sampler,
        .n_vcpus = session->guest->n_vcpus,
        .budget_ppm = uprof_session_budget_ppm(session),
        .max_pause_ns = session->settings.max_pause_ns,
        .hold = &session->run->hold,
        .take = take_probe,
        .data = &probing,
    };

    return uprof_probes_take(&probes, diagnosis);
}

/* Processes that help with all domains. */
typedef struct {
    UprofGuardian *guardian;
    UprofWorkers *workers;
} Helpers;

/* Removes "NAME: " from the beginning of @text: the title of the findings has the name. */
static void
drop_prefix(char *text, const char *name)
{
    const size_t len = strlen(name);

    if (strncmp(text, name, len) == 0 && strncmp(text + len, ": ", 2) == 0)
        memmove(text, text + len + 2, strlen(text + len + 2) + 1);
}

static void
diagnose_domain(UprofDiagnosis *diagnosis, UprofHost *host, UprofDomain *domain,
                const UprofOptions *options, const Helpers *helpers)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GByteArray) reply = NULL;
    g_autofree char *about = uprof_host_describe(host);
    g_autofree char *name = uprof_text_quote(domain->name); /* the session owns the domain */
    const char *job = uprof_host_job(host, domain);
    const UprofNotices notices = uprof_options_notices(options);
    const UprofSessionSettings settings = uprof_options_session(options, &notices);

    uprof_diagnosis_add(diagnosis, job ? UPROF_LEVEL_WARN : UPROF_LEVEL_OK, "connection", "%s; %s",
                        about, job ? job : "no job or migration");
    g_autoptr(UprofSession) session = uprof_session_open(domain, &settings, helpers->guardian,
                                                         UPROF_SESSION_WAIT_FOR_LOCK, &error);
    if (!session || !uprof_session_prepare(session, helpers->workers, NULL, NULL, &error)) {
        const bool is_locked = g_error_matches(error, UPROF_ERROR, UPROF_ERROR_LOCKED);
        drop_prefix(error->message, name);
        uprof_diagnosis_add_error(diagnosis, session ? "symbols" : "access", error);
        if (is_locked) /* nothing is wrong with the domain */
            g_array_index(diagnosis->findings, UprofFinding, diagnosis->findings->len - 1).level =
                UPROF_LEVEL_NOTE;
        return;
    }
    uprof_worker_call(session->worker, CALL_WANT_DIGEST, (UprofSlice){ 0 }, &reply, NULL);
    const int n_probes = take_probes(diagnosis, session);
    if (n_probes < 0)
        return;
    if (n_probes > 0)
        uprof_session_findings_access(diagnosis, session);
    take_findings(diagnosis, session);
    uprof_session_findings_rate(diagnosis, session);
}

static UprofErrorCode
print_diagnosis(const UprofDiagnosis *diagnosis, const UprofOptions *options, UprofJsonWriter *json)
{
    if (options->json) {
        uprof_diagnosis_text_write(json, diagnosis, uprof_exit_of_code(diagnosis->code));
        uprof_json_break_line(json, "\n ");
    } else {
        g_autoptr(GString) out = g_string_new(NULL);
        uprof_diagnosis_text_append(out, diagnosis, options->quiet);
        fputs(out->str, stdout);
    }
    return diagnosis->code;
}

static UprofErrorCode
check_host(const UprofOptions *options, UprofHost *host, const Helpers *helpers, bool healed,
           const GError *error, UprofJsonWriter *json)
{
    g_auto(UprofDiagnosis) diagnosis = { 0 };

    uprof_diagnosis_init(&diagnosis, "host");
    if (host)
        uprof_host_findings_add(&diagnosis, host, uprof_workers_confined(helpers->workers), healed);
    else
        uprof_diagnosis_add_error(&diagnosis, "connection", error);
    return print_diagnosis(&diagnosis, options, json);
}

static UprofErrorCode
check_domain(const UprofOptions *options, UprofHost *host, const char *word, const Helpers *helpers,
             UprofJsonWriter *json)
{
    g_autoptr(GError) error = NULL;
    g_auto(UprofDiagnosis) diagnosis = { 0 };
    const UprofNotices notices = uprof_options_notices(options);
    UprofDomain *domain = uprof_domid_find(host, word, &notices, &error);
    g_autofree char *title =
        domain ? uprof_host_findings_title(host, domain) : uprof_text_quote(word);

    uprof_diagnosis_init(&diagnosis, title);
    if (domain)
        diagnose_domain(&diagnosis, host, domain, options, helpers);
    else
        uprof_diagnosis_add_error(&diagnosis, "domain", error);
    return print_diagnosis(&diagnosis, options, json);
}

/* Tries the destinations of push. */
static UprofErrorCode
check_destinations(const UprofOptions *options, UprofJsonWriter *json)
{
    g_autoptr(GError) error = NULL;
    g_auto(UprofDiagnosis) diagnosis = { 0 };
    g_autoptr(UprofConfig) config = uprof_config_load(options->config_path, &error);
    g_autoptr(GPtrArray) destinations =
        config ? uprof_push_choose(config->destinations, options->targets, &error) : NULL;

    uprof_diagnosis_init(&diagnosis, "push");
    if (error)
        uprof_diagnosis_add_error(&diagnosis, "configuration", error);
    else if (destinations->len == 0)
        uprof_diagnosis_add(&diagnosis, UPROF_LEVEL_NOTE, "configuration",
                            "no destination is configured; see: man virt-uprof.xml");
    for (guint i = 0; destinations && i < destinations->len; i++) {
        const UprofDestination *destination = g_ptr_array_index(destinations, i);
        g_autofree char *text = NULL;
        const UprofProbeResult result = uprof_push_probe(destination, &text);
        g_autoptr(GError) failure = g_error_new(UPROF_ERROR, UPROF_ERROR_FAILED, "%s", text);
        if (result == UPROF_PROBE_FAILS)
            uprof_diagnosis_add_error(&diagnosis, destination->name, failure);
        else
            uprof_diagnosis_add(&diagnosis,
                                result == UPROF_PROBE_WORKS ? UPROF_LEVEL_OK : UPROF_LEVEL_WARN,
                                destination->name, "%s", text);
    }
    return print_diagnosis(&diagnosis, options, json);
}

int
uprof_check_run(UprofOptions *options)
{
    const UprofNotices notices = uprof_options_notices(options);
    g_autoptr(GError) error = NULL;
    const UprofWorkerPlan plan = {
        .symbols = uprof_options_symbols(options),
        .calls = calls,
        .n_calls = G_N_ELEMENTS(calls),
        .cpu_s = UPROF_WORKER_CPU_S,
    };
    UprofGuardian *guardian = uprof_guardian_start(uprof_access_find, &error);
    g_autoptr(UprofWorkers) workers = guardian ? uprof_workers_new(&plan, &error) : NULL;
    const Helpers helpers = { guardian, workers };
    g_autoptr(GString) out = g_string_new(NULL);
    UprofJsonWriter json = { .out = out };
    UprofErrorTally tally = { 0 };

    if (!workers) {
        uprof_guardian_end(guardian, NULL);
        return uprof_exit_say_error(error);
    }
    uprof_json_begin(&json, NULL, UPROF_JSON_ARRAY);
    const UprofErrorCode recovered = uprof_session_recover(&notices);
    g_autoptr(UprofHost) host = uprof_host_open(options->uri, false, &error);
    if (!host || options->words->len == 0)
        uprof_error_count(&tally, check_host(options, host, &helpers, recovered == UPROF_ERROR_NONE,
                                             error, &json));
    for (guint i = 0; host && i < options->words->len; i++)
        uprof_error_count(&tally, check_domain(options, host, g_ptr_array_index(options->words, i),
                                               &helpers, &json));
    if (options->push)
        uprof_error_count(&tally, check_destinations(options, &json));
    uprof_json_end(&json, UPROF_JSON_ARRAY);
    if (options->json)
        puts(out->str);
    int code = uprof_exit_worse(uprof_exit_of_code(recovered), uprof_exit_of_tally(&tally));
    if (fflush(stdout) != 0)
        code = uprof_exit_worse(code, UPROF_EXIT_FAILED);
    return uprof_exit_worse(
        code, uprof_exit_of_code(uprof_session_end_guardian(guardian, false, &notices)));
}
