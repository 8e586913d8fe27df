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
#include "uprof/domid.h"
#include "uprof/json-writer.h"
#include "uprof/probes.h"
#include "uprof/session-findings.h"
#include "uprof/xen-loader.h"
#include "uprof/session.h"
#include "uprof/clock.h"
#include "uprof/number-text.h"
#include "uprof/text.h"
#include "uprof/worker.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void
print_text(const UprofDiagnosis *diagnosis, bool quiet)
{
    bool has_title = false;

    for (guint i = 0; i < diagnosis->findings->len; i++) {
        const UprofFinding *finding = &g_array_index(diagnosis->findings, UprofFinding, i);
        if (quiet && finding->level != UPROF_LEVEL_FAIL)
            continue;
        if (!has_title)
            printf("%s\n", diagnosis->title);
        has_title = true;
        printf("  %-5s %-14s %s\n", uprof_level_name(finding->level), finding->topic,
               finding->text);
    }
}

static void
write_json(UprofJsonWriter *json, const UprofDiagnosis *diagnosis)
{
    uprof_json_begin(json, NULL, UPROF_JSON_OBJECT);
    uprof_json_string(json, "title", diagnosis->title);
    uprof_json_int(json, "exit", uprof_exit_of_code(diagnosis->code));
    uprof_json_begin(json, "findings", UPROF_JSON_ARRAY);
    for (guint i = 0; i < diagnosis->findings->len; i++) {
        const UprofFinding *finding = &g_array_index(diagnosis->findings, UprofFinding, i);
        uprof_json_break_line(json, "\n  ");
        uprof_json_begin(json, NULL, UPROF_JSON_OBJECT);
        uprof_json_string(json, "level", uprof_level_name(finding->level));
        uprof_json_string(json, "topic", finding->topic);
        uprof_json_string(json, "text", finding->text);
        uprof_json_end(json, UPROF_JSON_OBJECT);
    }
    uprof_json_end(json, UPROF_JSON_ARRAY);
    uprof_json_end(json, UPROF_JSON_OBJECT);
}

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
    const UprofProbesPlan plan = {
        .sampler = session->sampler,
        .n_vcpus = session->guest->n_vcpus,
        .budget_ppm = uprof_session_budget_ppm(session),
        .max_pause_ns = session->settings.max_pause_ns,
        .hold = &session->run->hold,
        .take = take_probe,
        .data = &probing,
    };

    return uprof_probes_take(&plan, diagnosis);
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

static char *
describe_title(UprofHost *host, const UprofDomain *domain)
{
    g_autofree char *name = uprof_text_quote(domain->name);

    return g_strdup_printf("%s: %s, %s/%s, %s, %u vCPU%s, on %s", name, domain->state_name,
                           domain->driver, domain->xml->type,
                           domain->xml->arch ? domain->xml->arch : "?", domain->xml->vcpus,
                           domain->xml->vcpus == 1 ? "" : "s", uprof_host_uri(host));
}

static void
describe_xen(UprofDiagnosis *diagnosis)
{
    g_autoptr(GError) error = NULL;

    if (uprof_xen_loader_load(&error))
        uprof_diagnosis_add(diagnosis, UPROF_LEVEL_OK, "module",
                            "the module for domains of Xen can be loaded");
    else
        uprof_diagnosis_add_error(diagnosis, "module", error);
}

/* Reports the rights of the analysis's processes that this host does not allow to drop. */
static void
describe_confinement(UprofDiagnosis *diagnosis, const UprofConfined *confined)
{
    if (confined->why_same_user)
        uprof_diagnosis_add(diagnosis, UPROF_LEVEL_WARN, "analysis",
                            "the processes that read foreign bytes keep the user root: %s",
                            confined->why_same_user);
    if (confined->why_same_view)
        uprof_diagnosis_add(
            diagnosis, UPROF_LEVEL_NOTE, "analysis",
            "the processes that read foreign bytes have no namespaces of their own: %s; "
            "they cannot open files or sockets even so",
            confined->why_same_view);
    if (!confined->why_same_user && !confined->why_same_view)
        uprof_diagnosis_add(diagnosis, UPROF_LEVEL_OK, "analysis",
                            "foreign bytes are read by processes without rights");
}

static void
diagnose_host(UprofDiagnosis *diagnosis, UprofHost *host, const UprofWorkers *workers, bool healed)
{
    g_autofree char *about = uprof_host_describe(host);
    g_autoptr(GPtrArray) markers = uprof_marker_list();
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) domains = uprof_host_list(host, &error);
    unsigned n_running = 0;

    uprof_diagnosis_add(diagnosis, UPROF_LEVEL_OK, "connection", "%s, on %s", about,
                        uprof_host_uri(host));
    for (guint i = 0; domains && i < domains->len; i++)
        n_running += ((UprofDomain *)g_ptr_array_index(domains, i))->state == UPROF_DOMAIN_RUNNING;
    if (domains)
        uprof_diagnosis_add(diagnosis, UPROF_LEVEL_OK, "domains",
                            "%u, of which %u run; to check one: "
                            "virt-uprof check DOMAIN",
                            domains->len, n_running);
    else
        uprof_diagnosis_add_error(diagnosis, "domains", error);
    if (g_str_has_prefix(uprof_host_uri(host), "xen:"))
        describe_xen(diagnosis);
    else if (geteuid() == 0)
        uprof_diagnosis_add(diagnosis, UPROF_LEVEL_OK, "rights",
                            "root: guest memory can be read from QEMU's process");
    else
        uprof_diagnosis_add(
            diagnosis, UPROF_LEVEL_NOTE, "rights",
            "not root: guest memory of system domains is read through libvirt, which is slower");
    describe_confinement(diagnosis, uprof_workers_confined(workers));
    if (healed)
        uprof_diagnosis_add(diagnosis, UPROF_LEVEL_OK, "markers", "%u in %s, none from a dead run",
                            markers->len, uprof_marker_folder());
    else
        uprof_diagnosis_add(diagnosis, UPROF_LEVEL_FAIL, "markers",
                            "a dead run may have left a guest stopped; see the messages on stderr");
}

static UprofErrorCode
print_diagnosis(const UprofDiagnosis *diagnosis, const UprofOptions *options, UprofJsonWriter *json)
{
    if (options->json) {
        write_json(json, diagnosis);
        uprof_json_break_line(json, "\n ");
    } else {
        print_text(diagnosis, options->quiet);
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
        diagnose_host(&diagnosis, host, helpers->workers, healed);
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
    g_autofree char *title = domain ? describe_title(host, domain) : uprof_text_quote(word);

    uprof_diagnosis_init(&diagnosis, title);
    if (domain)
        diagnose_domain(&diagnosis, host, domain, options, helpers);
    else
        uprof_diagnosis_add_error(&diagnosis, "domain", error);
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
    };
    UprofGuardian *guardian = uprof_guardian_start(uprof_access_find, &error);
    g_autoptr(UprofWorkers) workers = guardian ? uprof_workers_new(&plan, &error) : NULL;
    const Helpers helpers = { guardian, workers };
    g_autoptr(GString) out = g_string_new(NULL);
    UprofJsonWriter json = { .out = out };
    UprofErrorTally tally = { 0 };

    if (!workers) {
        uprof_guardian_end(guardian, NULL);
        return uprof_say_error(error);
    }
    uprof_host_init();
    uprof_json_begin(&json, NULL, UPROF_JSON_ARRAY);
    const UprofErrorCode recovered = uprof_session_recover(&notices);
    g_autoptr(UprofHost) host = uprof_host_open(options->uri, false, &error);
    if (!host || options->words->len == 0)
        uprof_error_count(&tally, check_host(options, host, &helpers, recovered == UPROF_ERROR_NONE,
                                             error, &json));
    for (guint i = 0; host && i < options->words->len; i++)
        uprof_error_count(&tally, check_domain(options, host, g_ptr_array_index(options->words, i),
                                               &helpers, &json));
    uprof_json_end(&json, UPROF_JSON_ARRAY);
    if (options->json)
        puts(out->str);
    int code = uprof_exit_worse(uprof_exit_of_code(recovered), uprof_exit_of_tally(&tally));
    if (fflush(stdout) != 0)
        code = uprof_exit_worse(code, UPROF_EXIT_FAILED);
    return uprof_exit_worse(
        code, uprof_exit_of_code(uprof_session_end_guardian(guardian, false, &notices)));
}
