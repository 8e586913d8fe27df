/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * check.c - the command check: what works, what does not, and what to do about it
 *
 * The command prints one line per finding. The findings about a domain come from a few samples.
 * Without a domain, the command checks the host.
 */
#include "commands-priv.h"

#include "uprof/domid.h"
#include "exit-priv.h"
#include "uprof/json-writer.h"
#include "uprof/xen-loader.h"
#include "uprof/session.h"
#include "run-summary-priv.h"
#include "uprof/clock.h"
#include "uprof/text.h"
#include "uprof/worker.h"

#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

enum {
    PROBES = 16,
    PROBE_PAUSE_US = 15 * 1000,      /* the shortest pause after a probe */
    PROBE_PAUSE_MAX_US = 500 * 1000, /* the longest one, whatever the budget is */
    ONE_FRAME_PERCENT = 50,          /* a larger share of stacks with one frame gets a warning */
    CALLS_PERCENT = 90,              /* a smaller share of calls that agree gets a warning */
    MODULES_SHOWN = 5,
};

typedef enum { LEVEL_OK, LEVEL_NOTE, LEVEL_WARN, LEVEL_FAIL } Level;

static const char *const level_names[] = { "ok", "note", "warn", "FAIL" };

typedef struct {
    Level level;
    char *topic; /* owned */
    char *text;  /* owned */
} Finding;

/* The findings about one domain, or about the host. */
typedef struct {
    char *title;         /* owned */
    GArray *findings;    /* of Finding; owned */
    UprofErrorCode code; /* of the worst finding */
} Diagnosis;

static void
clear_finding(gpointer data)
{
    g_free(((Finding *)data)->topic);
    g_free(((Finding *)data)->text);
}

static void
init_diagnosis(Diagnosis *diagnosis, const char *title)
{
    *diagnosis = (Diagnosis){
        .title = g_strdup(title),
        .findings = g_array_new(FALSE, FALSE, sizeof(Finding)),
    };
    g_array_set_clear_func(diagnosis->findings, clear_finding);
}

static void
clear_diagnosis(Diagnosis *diagnosis)
{
    g_free(diagnosis->title);
    g_array_unref(diagnosis->findings);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Diagnosis, clear_diagnosis)

static void add_finding(Diagnosis *diagnosis, Level level, const char *topic, const char *format,
                        ...) G_GNUC_PRINTF(4, 5);

static void
add_finding(Diagnosis *diagnosis, Level level, const char *topic, const char *format, ...)
{
    Finding finding = { .level = level, .topic = g_strdup(topic) };
    va_list arguments;

    va_start(arguments, format);
    finding.text = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    g_array_append_val(diagnosis->findings, finding);
}

static void
add_error(Diagnosis *diagnosis, const char *topic, const GError *error)
{
    add_finding(diagnosis, LEVEL_FAIL, topic, "%s", error->message);
    diagnosis->code = uprof_error_merge(diagnosis->code, uprof_error_code_of(error));
}

static void
print_text(const Diagnosis *diagnosis, bool quiet)
{
    bool has_title = false;

    for (guint i = 0; i < diagnosis->findings->len; i++) {
        const Finding *finding = &g_array_index(diagnosis->findings, Finding, i);
        if (quiet && finding->level != LEVEL_FAIL)
            continue;
        if (!has_title)
            printf("%s\n", diagnosis->title);
        has_title = true;
        printf("  %-5s %-14s %s\n", level_names[finding->level], finding->topic, finding->text);
    }
}

static void
write_json(UprofJsonWriter *json, const Diagnosis *diagnosis)
{
    uprof_json_begin(json, NULL, UPROF_JSON_OBJECT);
    uprof_json_string(json, "title", diagnosis->title);
    uprof_json_int(json, "exit", uprof_exit_of_code(diagnosis->code));
    uprof_json_begin(json, "findings", UPROF_JSON_ARRAY);
    for (guint i = 0; i < diagnosis->findings->len; i++) {
        const Finding *finding = &g_array_index(diagnosis->findings, Finding, i);
        uprof_json_break_line(json, "\n  ");
        uprof_json_begin(json, NULL, UPROF_JSON_OBJECT);
        uprof_json_string(json, "level", level_names[finding->level]);
        uprof_json_string(json, "topic", finding->topic);
        uprof_json_string(json, "text", finding->text);
        uprof_json_end(json, UPROF_JSON_OBJECT);
    }
    uprof_json_end(json, UPROF_JSON_ARRAY);
    uprof_json_end(json, UPROF_JSON_OBJECT);
}

static bool
is_qemu(const UprofSession *session)
{
    return strcmp(session->domain->driver, "QEMU") == 0;
}

static void
describe_access(Diagnosis *diagnosis, const UprofSession *session)
{
    const UprofRun *run = session->run;
    UprofGuestFacts facts;

    uprof_guest_facts(session->guest, &facts);
    if (run->hold.count > 0) {
        g_autofree char *p50 = uprof_format_ns(uprof_histogram_percentile(&run->hold, 50));
        g_autofree char *max = uprof_format_ns(run->hold.max_ns);
        add_finding(diagnosis, LEVEL_OK, "access",
                    "%s: %" G_GUINT64_FORMAT " test holds of %s, median %s, longest %s",
                    run->access, run->hold.count,
                    session->guest->grain == UPROF_GRAIN_VCPU ? "one vCPU" : "the complete guest",
                    p50, max);
    } else {
        add_finding(diagnosis, LEVEL_OK, "access", "%s: no hold was needed", run->access);
    }
    add_finding(diagnosis, LEVEL_NOTE, "access", "why: %s", session->why);
    if (facts.why_slow)
        add_finding(diagnosis, LEVEL_WARN, "memory",
                    "read by %s, which takes milliseconds for each read: %s", facts.reads,
                    facts.why_slow);
    else if (facts.pid == 0)
        add_finding(diagnosis, LEVEL_OK, "memory", "read by %s: %" G_GUINT64_FORMAT " MiB",
                    facts.reads, facts.ram_bytes / 1048576);
    else
        add_finding(diagnosis, LEVEL_OK, "memory",
                    "read by %s from QEMU's process %d: %u ranges, %" G_GUINT64_FORMAT " MiB",
                    facts.reads, facts.pid, facts.n_ranges, facts.ram_bytes / 1048576);
    if (is_qemu(session))
        add_finding(diagnosis, LEVEL_NOTE, "taint",
                    "queries of QEMU's monitor make libvirt mark the domain as 'custom-monitor' "
                    "until it stops");
}

/*
 * Each query of the monitor makes libvirt mark the domain as tainted, save the domain's state
 * and sync the file. On a disk, the sync takes most of a hold.
 */
static void
describe_state_folder(Diagnosis *diagnosis, const UprofSession *session)
{
    static const char folder[] = "/run/libvirt/qemu";
    struct statfs info;

    if (is_qemu(session) && session->guest->grain != UPROF_GRAIN_VCPU &&
        session->domain->is_local && g_str_has_suffix(session->domain->uri, "/system") &&
        statfs(folder, &info) == 0 && info.f_type != TMPFS_MAGIC)
        add_finding(
            diagnosis, LEVEL_WARN, "libvirt",
            "%s is on a disk, and each sample makes libvirt write there several times: mount a "
            "tmpfs on /run",
            folder);
}

static void
describe_rate(Diagnosis *diagnosis, const UprofSession *session)
{
    const UprofHistogram *hold = &session->run->hold;
    const uint64_t p50_ns = uprof_histogram_percentile(hold, 50);
    const uint64_t budget_ppm = uprof_session_budget_ppm(session);

    if (hold->count == 0 || p50_ns == 0)
        return;
    const uint64_t max_mhz = budget_ppm * (UPROF_NS_PER_S / 1000) / p50_ns;
    g_autofree char *rate = uprof_format_hz(MAX(max_mhz, 1));
    g_autofree char *budget = uprof_format_budget(budget_ppm);
    add_finding(diagnosis, LEVEL_NOTE, "rate",
                "up to %s Hz within --budget %s: each sample stops %s for the median hold time",
                rate, budget, session->guest->grain == UPROF_GRAIN_VCPU ? "its vCPU" : "the guest");
}

static void
describe_mode(Diagnosis *diagnosis, const UprofSession *session, const UprofRegs *regs)
{
    add_finding(diagnosis, LEVEL_OK, "guest", "%s, %u-bit code, paging %s, %u vCPU%s",
                session->run->arch, regs->word_bytes * 8,
                uprof_paging_mode_name(uprof_paging_mode(regs)), (unsigned)session->run->vcpus,
                session->run->vcpus == 1 ? "" : "s");
}

static void
describe_tables(Diagnosis *diagnosis, const UprofSymSource *source)
{
    g_autofree char *path = uprof_text_quote(source->path);

    if (!source->cfi) {
        add_finding(diagnosis, LEVEL_NOTE, "unwind tables",
                    "'%s' has none: callers are found by code and frame pointers", path);
        return;
    }
    const UprofCfiSummary summary = uprof_cfi_summary(source->cfi);
    add_finding(
        diagnosis, LEVEL_OK, "unwind tables",
        "'%s': %zu entries for %zu functions, %zu KiB of memory; for code without an entry, "
        "callers are found by code and frame pointers",
        path, summary.n_fdes, source->n_symbols, summary.n_bytes / 1024);
    if (summary.n_dropped > 0)
        add_finding(diagnosis, LEVEL_WARN, "unwind tables",
                    "'%s': %zu entries are damaged and are ignored", path, summary.n_dropped);
}

/* Lists the files of guest processes that samples were in and that have no symbol file. */
static void
describe_modules(Diagnosis *diagnosis, const UprofSym *sym)
{
    UprofSymModule module;
    unsigned n_named = 0, n_bare = 0;

    for (unsigned i = 1; uprof_sym_module(sym, i, &module); i++) {
        n_named += module.path != NULL;
        if (module.path || n_bare++ >= MODULES_SHOWN)
            continue;
        add_finding(
            diagnosis, LEVEL_NOTE, "symbols",
            "no symbol file for %s, build-id %s: its frames will be addresses; give the file with "
            "-s, or the guest's files with --sysroot",
            module.label, module.build_id ? module.build_id : "unknown");
    }
    if (n_bare > MODULES_SHOWN)
        add_finding(diagnosis, LEVEL_NOTE, "symbols", "no symbol files for %u more files",
                    n_bare - MODULES_SHOWN);
    if (n_named > 0)
        add_finding(diagnosis, LEVEL_OK, "symbols",
                    "%u files of the guest's processes, found by build-id", n_named);
}

static void
describe_types(Diagnosis *diagnosis, const UprofLinuxFacts *facts)
{
    if (!facts->has_btf) {
        add_finding(diagnosis, LEVEL_WARN, "kernel types",
                    "the kernel has no type information (BTF): processes and symbols of modules "
                    "are unknown");
        return;
    }
    if (facts->has_types && facts->has_module_types)
        add_finding(diagnosis, LEVEL_OK, "kernel types",
                    "from the kernel's type information (BTF)");
    if (!facts->has_types)
        add_finding(diagnosis, LEVEL_WARN, "kernel types",
                    "the type information (BTF) lacks members of tasks, or is unusual: processes "
                    "are unknown");
    if (!facts->has_module_types)
        add_finding(
            diagnosis, LEVEL_WARN, "kernel types",
            "the type information (BTF) lacks members of modules: their symbols are unknown");
}

/* Returns: true if the guest's Linux kernel was found, so that its symbols are known */
static bool
describe_linux(Diagnosis *diagnosis, const UprofAnalysis *analysis)
{
    UprofLinuxFacts facts;

    uprof_linux_facts(analysis->pipeline->kernel, &facts);
    g_autofree char *took = uprof_format_ns(facts.attach_ns);
    if (facts.state != UPROF_LINUX_FOUND) {
        if (facts.attach_ns > 0)
            add_finding(diagnosis, LEVEL_NOTE, "linux", "not found after %s: %s", took,
                        facts.why ? facts.why
                                  : "there is no 64-bit kernel at the addresses of Linux");
        return false;
    }
    add_finding(diagnosis, LEVEL_OK, "linux", "release %s, %s%s%sfound in memory in %s",
                facts.release, facts.build_id ? "build-id " : "",
                facts.build_id ? facts.build_id : "", facts.build_id ? ", " : "", took);
    add_finding(diagnosis, LEVEL_OK, "kernel symbols",
                "%zu, %s, digest %016" G_GINT64_MODIFIER "x; kernel at %" G_GINT64_MODIFIER "x",
                facts.n_symbols, facts.layout, facts.digest, facts.base);
    if (facts.n_modules > 0)
        add_finding(diagnosis, LEVEL_OK, "kernel symbols", "also those of %u modules",
                    facts.n_modules);
    describe_types(diagnosis, &facts);
    if (facts.n_rules > 0)
        add_finding(diagnosis, LEVEL_OK, "kernel stacks",
                    "callers are found by the kernel's own tables, %zu rules (ORC as of Linux %s)",
                    facts.n_rules, uprof_orc_version_name(facts.rules_version));
    else
        add_finding(
            diagnosis, LEVEL_WARN, "kernel stacks",
            "callers are found by code: the kernel has no unwind tables (ORC), or tables of an "
            "unknown version");
    if (facts.has_tasks)
        add_finding(diagnosis, LEVEL_OK, "processes", "names and mapped files are known");
    else
        add_finding(diagnosis, LEVEL_WARN, "processes",
                    "unknown: frames in user mode have no names%s",
                    facts.has_types ? "; no vCPU has shown yet which task it runs" : "");
    describe_modules(diagnosis, analysis->pipeline->sym);
    return true;
}

static void
describe_match(Diagnosis *diagnosis, const UprofAnalysis *analysis, const UprofSymSource *source)
{
    g_autofree char *path = uprof_text_quote(source->path);

    if (source->match == UPROF_SYM_MATCHED) {
        add_finding(diagnosis, LEVEL_OK, "symbols",
                    "'%s': %zu functions; its code is equal to the guest's", path,
                    source->n_symbols);
    } else if (source->match == UPROF_SYM_MISMATCHED) {
        add_finding(diagnosis, LEVEL_FAIL, "symbols",
                    "'%s' does not match the guest's code and would be ignored: %s; give the right "
                    "file with -s",
                    path, source->mismatch);
        diagnosis->code = uprof_error_merge(diagnosis->code, UPROF_ERROR_FAILED);
    } else if (source->n_seen == 0) {
        add_finding(diagnosis, analysis->run->running > 0 ? LEVEL_WARN : LEVEL_NOTE, "symbols",
                    "'%s': %zu functions, but no sample was in its code; if the file is right, its "
                    "load address may be missing (-s FILE@BASE)",
                    path, source->n_symbols);
    } else {
        add_finding(diagnosis, LEVEL_NOTE, "symbols",
                    "'%s': %zu functions; too little of its code was read to compare it with the "
                    "guest's",
                    path, source->n_symbols);
    }
}

static void
describe_symbols(Diagnosis *diagnosis, const UprofAnalysis *analysis)
{
    const UprofSym *sym = analysis->pipeline->sym;
    const bool is_linux = describe_linux(diagnosis, analysis);

    if (!is_linux && (uprof_sym_n_sources(sym) == 0 || analysis->symbols_hint))
        add_finding(diagnosis, LEVEL_WARN, "symbols", "none, so frames will be addresses: %s",
                    analysis->symbols_hint ? analysis->symbols_hint : "give them with -s");
    for (unsigned i = 0; i < uprof_sym_n_sources(sym); i++) {
        UprofSymSource source;
        uprof_sym_source(sym, i, &source);
        g_autofree char *path = uprof_text_quote(source.path);
        if (source.debug_path) {
            g_autofree char *debug = uprof_text_quote(source.debug_path);
            add_finding(diagnosis, LEVEL_OK, "symbols", "'%s': uses its debug file '%s'", path,
                        debug);
        }
        if (strcmp(source.kind, "ELF") == 0)
            describe_tables(diagnosis, &source);
        if (source.hint)
            add_finding(diagnosis, LEVEL_WARN, "symbols", "'%s': %s", path, source.hint);
        describe_match(diagnosis, analysis, &source);
    }
}

/* Shows for a Linux guest how many stacks are complete in the kernel and in user mode. */
static void
describe_parts(Diagnosis *diagnosis, const UprofRunLinux *kernel)
{
    const struct {
        const char *what;
        uint64_t complete, all;
    } parts[] = {
        { "kernel stacks", kernel->kernel_complete, kernel->kernel_stacks },
        { "user stacks", kernel->user_complete, kernel->user_stacks },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(parts); i++)
        if (parts[i].all > 0)
            add_finding(diagnosis, parts[i].complete * 2 >= parts[i].all ? LEVEL_OK : LEVEL_WARN,
                        parts[i].what, "%" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT " complete",
                        parts[i].complete, parts[i].all);
}

static void
describe_stacks(Diagnosis *diagnosis, const UprofAnalysis *analysis)
{
    const UprofPipeline *pipeline = analysis->pipeline;
    const UprofRun *run = analysis->run;

    if (run->running == 0) {
        add_finding(diagnosis, LEVEL_NOTE, "stacks", "all %" G_GUINT64_FORMAT " samples were idle",
                    run->idles);
        return;
    }
    add_finding(diagnosis, run->complete * 2 >= run->running ? LEVEL_OK : LEVEL_WARN, "stacks",
                "%" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT " are complete, %" G_GUINT64_FORMAT
                " truncated, %" G_GUINT64_FORMAT " unknown, %" G_GUINT64_FORMAT " samples idle",
                run->complete, run->running, run->truncated, run->unknown, run->idles);
    for (unsigned end = 0; end < UPROF_N_ENDS; end++)
        if (end != UPROF_END_BASE && pipeline->ends[end] > 0)
            add_finding(diagnosis, LEVEL_NOTE, "stacks", "%" G_GUINT64_FORMAT " are cut off: %s",
                        pipeline->ends[end], uprof_end_name(end));
    describe_parts(diagnosis, &run->kernel);
    g_autofree char *quality = uprof_format_quality(run);
    const bool agree = run->calls_agreed * 100 >= run->calls_checked * CALLS_PERCENT;
    add_finding(diagnosis, agree ? LEVEL_OK : LEVEL_WARN, "callers", "%s", quality);
    if (run->one_frame * 100 >= run->running * ONE_FRAME_PERCENT)
        add_finding(diagnosis, LEVEL_WARN, "callers",
                    "%" G_GUINT64_FORMAT
                    " %% of stacks have only one frame; unwind tables or the sizes of "
                    "symbols may be missing",
                    run->one_frame * 100 / run->running);
}

/* ---- Findings of a worker ---- */

/* In the worker: the first line of a finding's bytes; its topic, NUL, its text and NUL follow. */
typedef struct {
    uint32_t level;               /* Level */
    uint32_t topic_len, text_len; /* bytes without NUL */
} FindingHead;

/* In the worker: what it has found of the guest's symbols and stacks. */
static void
make_findings(UprofAnalysis *analysis, UprofSlice argument, GByteArray *reply)
{
    g_auto(Diagnosis) diagnosis = { 0 };

    init_diagnosis(&diagnosis, "");
    describe_symbols(&diagnosis, analysis);
    describe_stacks(&diagnosis, analysis);
    for (guint i = 0; i < diagnosis.findings->len; i++) {
        const Finding *finding = &g_array_index(diagnosis.findings, Finding, i);
        const FindingHead head = {
            .level = finding->level,
            .topic_len = (uint32_t)strlen(finding->topic),
            .text_len = (uint32_t)strlen(finding->text),
        };
        g_byte_array_append(reply, (const guint8 *)&head, sizeof(head));
        g_byte_array_append(reply, (const guint8 *)finding->topic, head.topic_len);
        g_byte_array_append(reply, (const guint8 *)finding->text, head.text_len);
    }
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

/* Returns: false at the end of the worker's reply, or if the rest of it is malformed */
static bool
read_finding(Diagnosis *diagnosis, UprofBytes *bytes)
{
    UprofSlice raw, topic, text;
    FindingHead head;

    if (!uprof_bytes_take(bytes, sizeof(head), &raw))
        return false;
    memcpy(&head, raw.data, sizeof(head));
    if (head.level > LEVEL_FAIL || !uprof_bytes_take(bytes, head.topic_len, &topic) ||
        !uprof_bytes_take(bytes, head.text_len, &text))
        return false;
    const Finding finding = {
        .level = (Level)head.level,
        .topic = uprof_text_quote_slice(topic),
        .text = uprof_text_quote_slice(text),
    };
    g_array_append_val(diagnosis->findings, finding);
    if (finding.level == LEVEL_FAIL)
        diagnosis->code = uprof_error_merge(diagnosis->code, UPROF_ERROR_FAILED);
    return true;
}

static void
take_findings(Diagnosis *diagnosis, const UprofSession *session)
{
    g_autoptr(GByteArray) reply = NULL;
    g_autoptr(GError) error = NULL;

    if (!uprof_worker_call(session->worker, CALL_FINDINGS, (UprofSlice){ 0 }, &reply, &error)) {
        add_error(diagnosis, "symbols", error);
        return;
    }
    UprofBytes bytes = { .name = "findings", .all = { reply->data, reply->len } };
    while (read_finding(diagnosis, &bytes))
        ;
}

/* ---- A domain ---- */

/* Counts the holds of a probe: one hold can give several snapshots. */
static void
count_holds(UprofSession *session, UprofSnapshot *const *slots, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (slots[i]->hold_ns > 0 && (i == 0 || slots[i]->hold != slots[i - 1]->hold))
            uprof_histogram_add(&session->run->hold, slots[i]->hold_ns);
}

/* Takes a few samples, as a run does. Returns: false if that failed; a finding says why */
static bool
take_probes(Diagnosis *diagnosis, UprofSession *session)
{
    g_autofree UprofSnapshot **slots = g_new0(UprofSnapshot *, session->guest->n_vcpus);
    UprofSnapshot *pool = g_new0(UprofSnapshot, session->guest->n_vcpus);
    g_autoptr(GError) error = NULL;
    UprofAnswer answer = UPROF_OK;
    bool has_mode = false;

    for (unsigned i = 0; i < session->guest->n_vcpus; i++)
        slots[i] = &pool[i];
    for (unsigned i = 0; i < PROBES && answer == UPROF_OK; i++) {
        unsigned n = 0;
        answer = uprof_sampler_sample_once(session->sampler, slots, &n, &error);
        for (unsigned j = 0; answer == UPROF_OK && j < n; j++)
            uprof_worker_take(session->worker, slots[j]);
        if (answer == UPROF_OK)
            count_holds(session, slots, n);
        /* The registers of a halted vCPU may be unknown. */
        if (answer == UPROF_OK && n > 0 && !has_mode && slots[0]->regs.word_bytes > 0) {
            describe_mode(diagnosis, session, &slots[0]->regs);
            has_mode = true;
        }
        /* The pause keeps the probes within the budget of a run. */
        const uint64_t rest_us = session->run->hold.max_ns / UPROF_NS_PER_US * 1000000 /
                                 uprof_session_budget_ppm(session);
        g_usleep(MIN(MAX(rest_us, (uint64_t)PROBE_PAUSE_US), (uint64_t)PROBE_PAUSE_MAX_US) +
                 (gulong)g_random_int_range(0, PROBE_PAUSE_US));
    }
    g_free(pool);
    if (answer == UPROF_FAILED)
        add_error(diagnosis, "access", error);
    else if (answer != UPROF_OK)
        add_finding(diagnosis, LEVEL_FAIL, "access", "%s",
                    answer == UPROF_GONE ? "the domain has just ended"
                    : answer == UPROF_STUCK
                        ? "no vCPU stopped within --max-pause; try a longer one"
                        : "somebody else stops, migrates or saves the domain; try again later");
    if (answer != UPROF_OK && answer != UPROF_FAILED)
        diagnosis->code = uprof_error_merge(diagnosis->code, UPROF_ERROR_NOT_FOUND);
    return answer == UPROF_OK;
}

/* Processes that help with all domains. */
typedef struct {
    UprofGuardian *guardian;
    UprofWorkers *workers;
} Helpers;

static void
diagnose_domain(Diagnosis *diagnosis, UprofHost *host, UprofDomain *domain,
                const UprofOptions *options, const Helpers *helpers)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GByteArray) reply = NULL;
    g_autofree char *about = uprof_host_describe(host);
    const char *job = uprof_host_job(host, domain);
    const UprofNotices notices = uprof_options_notices(options);
    const UprofSessionSettings settings = uprof_options_session(options, &notices);

    add_finding(diagnosis, job ? LEVEL_WARN : LEVEL_OK, "connection", "%s; %s", about,
                job ? job : "no job or migration");
    g_autoptr(UprofSession) session =
        uprof_session_open(domain, &settings, helpers->guardian, UPROF_SESSION_PLAIN, &error);
    if (!session || !uprof_session_prepare(session, helpers->workers, NULL, NULL, &error)) {
        add_error(diagnosis, session ? "symbols" : "access", error);
        return;
    }
    uprof_worker_call(session->worker, CALL_WANT_DIGEST, (UprofSlice){ 0 }, &reply, NULL);
    if (!take_probes(diagnosis, session))
        return;
    describe_access(diagnosis, session);
    describe_state_folder(diagnosis, session);
    take_findings(diagnosis, session);
    describe_rate(diagnosis, session);
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
describe_xen(Diagnosis *diagnosis)
{
    g_autoptr(GError) error = NULL;

    if (uprof_xen_loader_load(&error))
        add_finding(diagnosis, LEVEL_OK, "module", "the module for domains of Xen can be loaded");
    else
        add_error(diagnosis, "module", error);
}

/* Says which rights the processes of the analysis keep, because this host does not take them. */
static void
describe_confinement(Diagnosis *diagnosis, const UprofConfined *confined)
{
    if (confined->why_same_user)
        add_finding(diagnosis, LEVEL_WARN, "analysis",
                    "the processes that read foreign bytes keep the user root: %s",
                    confined->why_same_user);
    if (confined->why_same_view)
        add_finding(diagnosis, LEVEL_NOTE, "analysis",
                    "the processes that read foreign bytes have no name spaces of their own: %s; "
                    "they cannot open files or sockets even so",
                    confined->why_same_view);
    if (!confined->why_same_user && !confined->why_same_view)
        add_finding(diagnosis, LEVEL_OK, "analysis",
                    "foreign bytes are read by processes without rights");
}

static void
diagnose_host(Diagnosis *diagnosis, UprofHost *host, const UprofWorkers *workers, bool healed)
{
    g_autofree char *about = uprof_host_describe(host);
    g_autoptr(GPtrArray) markers = uprof_marker_list();
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) domains = uprof_host_list(host, &error);
    unsigned n_running = 0;

    add_finding(diagnosis, LEVEL_OK, "connection", "%s, on %s", about, uprof_host_uri(host));
    for (guint i = 0; domains && i < domains->len; i++)
        n_running += ((UprofDomain *)g_ptr_array_index(domains, i))->state == UPROF_DOMAIN_RUNNING;
    if (domains)
        add_finding(diagnosis, LEVEL_OK, "domains",
                    "%u, of which %u run; to check one: "
                    "virt-uprof check DOMAIN",
                    domains->len, n_running);
    else
        add_error(diagnosis, "domains", error);
    if (g_str_has_prefix(uprof_host_uri(host), "xen:"))
        describe_xen(diagnosis);
    else if (geteuid() == 0)
        add_finding(diagnosis, LEVEL_OK, "rights",
                    "root: guest memory can be read from QEMU's process");
    else
        add_finding(
            diagnosis, LEVEL_NOTE, "rights",
            "not root: guest memory of system domains is read through libvirt, which is slower");
    describe_confinement(diagnosis, uprof_workers_confined(workers));
    if (healed)
        add_finding(diagnosis, LEVEL_OK, "markers", "%u in %s, none from a dead run", markers->len,
                    uprof_marker_folder());
    else
        add_finding(diagnosis, LEVEL_FAIL, "markers",
                    "a dead run may have left a guest stopped; see the messages on stderr");
}

static UprofErrorCode
print_diagnosis(const Diagnosis *diagnosis, const UprofOptions *options, UprofJsonWriter *json)
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
    g_auto(Diagnosis) diagnosis = { 0 };

    init_diagnosis(&diagnosis, "host");
    if (host)
        diagnose_host(&diagnosis, host, helpers->workers, healed);
    else
        add_error(&diagnosis, "connection", error);
    return print_diagnosis(&diagnosis, options, json);
}

static UprofErrorCode
check_domain(const UprofOptions *options, UprofHost *host, const char *word, const Helpers *helpers,
             UprofJsonWriter *json)
{
    g_autoptr(GError) error = NULL;
    g_auto(Diagnosis) diagnosis = { 0 };
    const UprofNotices notices = uprof_options_notices(options);
    UprofDomain *domain = uprof_domid_find(host, word, &notices, &error);
    g_autofree char *title = domain ? describe_title(host, domain) : uprof_text_quote(word);

    init_diagnosis(&diagnosis, title);
    if (domain)
        diagnose_domain(&diagnosis, host, domain, options, helpers);
    else
        add_error(&diagnosis, "domain", error);
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
