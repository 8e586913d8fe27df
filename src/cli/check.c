/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * check: the doctor. One line per finding, and what to do about it. With a
 * domain it takes a few samples, so that what it says was measured; without one
 * it looks at the host only.
 */
#include "commands-priv.h"

#include "domid-priv.h"
#include "exit-priv.h"
#include "module-priv.h"
#include "session-priv.h"
#include "summary-priv.h"
#include "uprof/clock.h"
#include "uprof/text.h"

#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

enum {
    PROBES = 16,
    PROBE_PAUSE_US = 15 * 1000,
    PROBE_PAUSE_MAX_US = 500 * 1000,
    ONE_FRAME_PERCENT = 50,
    CALLS_PERCENT = 90,
    MODULES_SHOWN = 5,
};

typedef enum { LEVEL_OK, LEVEL_NOTE, LEVEL_WARN, LEVEL_FAIL } Level;

static const char *const level_names[] = { "ok", "note", "warn", "FAIL" };

typedef struct {
    Level level;
    const char *topic;
    char *text;
} Finding;

/* What is said about one domain, or about the host. */
typedef struct {
    char *title;
    GArray *findings; /* of Finding */
    int code;
} Diagnosis;

static void
clear_finding(gpointer data)
{
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

static void find(Diagnosis *diagnosis, Level level, const char *topic, const char *format, ...)
    G_GNUC_PRINTF(4, 5);

static void
find(Diagnosis *diagnosis, Level level, const char *topic, const char *format, ...)
{
    Finding finding = { .level = level, .topic = topic };
    va_list arguments;

    va_start(arguments, format);
    finding.text = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    g_array_append_val(diagnosis->findings, finding);
}

static void
find_error(Diagnosis *diagnosis, const char *topic, const GError *error)
{
    find(diagnosis, LEVEL_FAIL, topic, "%s", error->message);
    diagnosis->code = uprof_exit_worse(diagnosis->code, uprof_exit_code(error));
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
append_json(GString *out, const Diagnosis *diagnosis)
{
    g_string_append(out, "{\"title\": \"");
    uprof_text_append_json(out, diagnosis->title);
    g_string_append_printf(out, "\", \"exit\": %d, \"findings\": [", diagnosis->code);
    for (guint i = 0; i < diagnosis->findings->len; i++) {
        const Finding *finding = &g_array_index(diagnosis->findings, Finding, i);
        g_string_append_printf(out, "%s\n  {\"level\": \"%s\", \"topic\": \"%s\", \"text\": \"",
                               i > 0 ? "," : "", level_names[finding->level], finding->topic);
        uprof_text_append_json(out, finding->text);
        g_string_append(out, "\"}");
    }
    g_string_append(out, "]}");
}

static bool
is_qemu(const UprofSession *session)
{
    return strcmp(session->domain->driver, "QEMU") == 0;
}

static void
find_access(Diagnosis *diagnosis, const UprofSession *session)
{
    const UprofRun *run = session->run;
    UprofGuestFacts facts;

    uprof_guest_facts(session->guest, &facts);
    if (run->hold.count > 0) {
        g_autofree char *p50 = uprof_format_ns(uprof_histogram_percentile(&run->hold, 50));
        g_autofree char *max = uprof_format_ns(run->hold.max_ns);
        find(diagnosis, LEVEL_OK, "access",
             "%s: %" G_GUINT64_FORMAT " probe holds of %s, median %s, longest %s", run->access,
             run->hold.count,
             session->guest->grain == UPROF_GRAIN_VCPU ? "one vCPU each" : "the whole guest", p50,
             max);
    } else {
        find(diagnosis, LEVEL_OK, "access", "%s: nothing was held", run->access);
    }
    find(diagnosis, LEVEL_NOTE, "access", "why: %s", session->why);
    if (facts.why_slow)
        find(diagnosis, LEVEL_WARN, "memory", "read by %s, milliseconds a piece: %s", facts.reads,
             facts.why_slow);
    else if (facts.pid == 0)
        find(diagnosis, LEVEL_OK, "memory", "read by %s: %" G_GUINT64_FORMAT " MiB", facts.reads,
             facts.ram_bytes / 1048576);
    else
        find(diagnosis, LEVEL_OK, "memory",
             "read by %s from QEMU's process %d: %u ranges, %" G_GUINT64_FORMAT " MiB", facts.reads,
             facts.pid, facts.n_ranges, facts.ram_bytes / 1048576);
    if (is_qemu(session))
        find(diagnosis, LEVEL_NOTE, "taint",
             "monitor queries mark the domain 'custom-monitor' in libvirt until it stops");
}

/*
 * libvirt saves the state of a domain with each query of its monitor (it marks
 * the domain as tainted), and syncs it: on a disk that takes most of a hold.
 */
static void
find_state_folder(Diagnosis *diagnosis, const UprofSession *session)
{
    static const char folder[] = "/run/libvirt/qemu";
    struct statfs info;

    if (is_qemu(session) && session->guest->grain != UPROF_GRAIN_VCPU &&
        session->domain->is_local && g_str_has_suffix(session->domain->uri, "/system") &&
        statfs(folder, &info) == 0 && info.f_type != TMPFS_MAGIC)
        find(diagnosis, LEVEL_WARN, "libvirt",
             "%s is on a disk, to which each sample makes libvirt write several times: mount a "
             "tmpfs on /run",
             folder);
}

static void
find_rate(Diagnosis *diagnosis, const UprofSession *session)
{
    const UprofHistogram *hold = &session->run->hold;
    const uint64_t p50_ns = uprof_histogram_percentile(hold, 50);
    const uint64_t budget_ppm = uprof_session_budget_ppm(session);

    if (hold->count == 0 || p50_ns == 0)
        return;
    const uint64_t max_mhz = budget_ppm * (UPROF_NS_PER_S / 1000) / p50_ns;
    g_autofree char *rate = uprof_format_hz(MAX(max_mhz, 1));
    g_autofree char *budget = uprof_format_budget(budget_ppm);
    find(diagnosis, LEVEL_NOTE, "rate",
         "up to %s Hz within --budget %s: each sample stops %s for so long", rate, budget,
         session->guest->grain == UPROF_GRAIN_VCPU ? "its vCPU" : "the guest");
}

static void
find_mode(Diagnosis *diagnosis, const UprofSession *session, const UprofRegs *regs)
{
    find(diagnosis, LEVEL_OK, "guest", "%s, %u-bit code, paging %s, %u vCPU%s", session->run->arch,
         regs->word_bytes * 8, uprof_mem_mode_name(uprof_mem_mode(regs)),
         (unsigned)session->run->vcpus, session->run->vcpus == 1 ? "" : "s");
}

/* What callers are found by where this image's code runs. */
static void
find_tables(Diagnosis *diagnosis, const UprofSymSource *source)
{
    g_autofree char *path = uprof_text_quote(source->path);

    if (!source->cfi) {
        find(diagnosis, LEVEL_NOTE, "unwind tables",
             "'%s' has none: callers are found by its code and frame pointers", path);
        return;
    }
    const UprofCfiSummary summary = uprof_cfi_summary(source->cfi);
    find(diagnosis, LEVEL_OK, "unwind tables",
         "'%s': %zu entries for %zu functions, %zu KiB of memory; by its code and frame pointers "
         "where there are none",
         path, summary.n_fdes, source->n_symbols, summary.n_bytes / 1024);
    if (summary.n_dropped > 0)
        find(diagnosis, LEVEL_WARN, "unwind tables",
             "'%s': %zu entries are broken, and as if they were not there", path,
             summary.n_dropped);
}

/* Of what processes have mapped, as far as samples lay in it: what nobody here has. */
static void
find_modules(Diagnosis *diagnosis, const UprofSym *sym)
{
    UprofSymModule module;
    unsigned n_named = 0, n_bare = 0;

    for (unsigned i = 1; uprof_sym_module(sym, i, &module); i++) {
        n_named += module.path != NULL;
        if (module.path || n_bare++ >= MODULES_SHOWN)
            continue;
        find(diagnosis, LEVEL_NOTE, "symbols",
             "no file for %s, build-id %s: its frames will be addresses; give it with -s, or the "
             "guest's files with --sysroot",
             module.label, module.build_id ? module.build_id : "not known");
    }
    if (n_bare > MODULES_SHOWN)
        find(diagnosis, LEVEL_NOTE, "symbols", "no files for %u more", n_bare - MODULES_SHOWN);
    if (n_named > 0)
        find(diagnosis, LEVEL_OK, "symbols", "of %u files of its processes, by their build-ids",
             n_named);
}

/* Where members are in the kernel's structures, and what that is needed for. */
static void
find_types(Diagnosis *diagnosis, const UprofLinuxFacts *facts)
{
    if (!facts->has_btf) {
        find(diagnosis, LEVEL_WARN, "kernel types",
             "none (BTF): no processes, and no symbols of modules");
        return;
    }
    if (facts->has_types && facts->has_module_types)
        find(diagnosis, LEVEL_OK, "kernel types", "by its own description (BTF)");
    if (!facts->has_types)
        find(diagnosis, LEVEL_WARN, "kernel types",
             "its description (BTF) lacks members of tasks, or is unusual: no processes");
    if (!facts->has_module_types)
        find(diagnosis, LEVEL_WARN, "kernel types",
             "its description (BTF) lacks members of modules: none of their symbols");
}

/* Returns: whether the guest's kernel gives names */
static bool
find_linux(Diagnosis *diagnosis, const UprofSession *session)
{
    UprofLinuxFacts facts;

    uprof_linux_facts(session->pipeline->kernel, &facts);
    g_autofree char *took = uprof_format_ns(facts.attach_ns);
    if (facts.state != UPROF_LINUX_FOUND) {
        if (facts.attach_ns > 0)
            find(diagnosis, LEVEL_NOTE, "linux", "not found, in %s: %s", took,
                 facts.why ? facts.why : "no 64-bit kernel is where Linux has its own");
        return false;
    }
    find(diagnosis, LEVEL_OK, "linux", "release %s, %s%s%sfound in memory in %s", facts.release,
         facts.build_id ? "build-id " : "", facts.build_id ? facts.build_id : "",
         facts.build_id ? ", " : "", took);
    find(diagnosis, LEVEL_OK, "kernel symbols",
         "%zu, %s, digest %016" G_GINT64_MODIFIER "x; at %" G_GINT64_MODIFIER "x", facts.n_symbols,
         facts.layout, facts.digest, facts.base);
    if (facts.n_modules > 0)
        find(diagnosis, LEVEL_OK, "kernel symbols", "and those of %u modules", facts.n_modules);
    find_types(diagnosis, &facts);
    if (facts.n_rules > 0)
        find(diagnosis, LEVEL_OK, "kernel stacks",
             "by the kernel's own tables, %zu rules (ORC as of Linux %s)", facts.n_rules,
             uprof_orc_version_name(facts.rules_version));
    else
        find(diagnosis, LEVEL_WARN, "kernel stacks",
             "by its code: the kernel has no unwind tables (ORC), or of a version that is not "
             "known");
    if (facts.has_tasks)
        find(diagnosis, LEVEL_OK, "processes", "their names, and what they have mapped");
    else
        find(diagnosis, LEVEL_WARN, "processes", "not known, nor what runs in user mode%s",
             facts.has_types ? ": no vCPU says yet what it runs" : "");
    find_modules(diagnosis, session->pipeline->sym);
    return true;
}

static void
find_symbols(Diagnosis *diagnosis, const UprofSession *session)
{
    const UprofSym *sym = session->pipeline->sym;
    const bool is_linux = find_linux(diagnosis, session);

    if (!is_linux && (uprof_sym_n_sources(sym) == 0 || session->symbols_hint))
        find(diagnosis, LEVEL_WARN, "symbols", "none, stacks will be addresses: %s",
             session->symbols_hint ? session->symbols_hint : "give them with -s");
    for (unsigned i = 0; i < uprof_sym_n_sources(sym); i++) {
        UprofSymSource source;
        uprof_sym_source(sym, i, &source);
        g_autofree char *path = uprof_text_quote(source.path);
        if (source.debug_path) {
            g_autofree char *debug = uprof_text_quote(source.debug_path);
            find(diagnosis, LEVEL_OK, "symbols", "'%s': with its debug file '%s'", path, debug);
        }
        if (strcmp(source.kind, "ELF") == 0)
            find_tables(diagnosis, &source);
        if (source.hint)
            find(diagnosis, LEVEL_WARN, "symbols", "'%s': %s", path, source.hint);
        if (source.match == UPROF_SYM_MATCHED) {
            find(diagnosis, LEVEL_OK, "symbols",
                 "'%s': %zu functions; its code is what the guest runs", path, source.n_symbols);
        } else if (source.match == UPROF_SYM_MISMATCHED) {
            find(diagnosis, LEVEL_FAIL, "symbols",
                 "'%s' is not what the guest runs and would be ignored: %s; give the right file "
                 "with -s",
                 path, source.mismatch);
            diagnosis->code = uprof_exit_worse(diagnosis->code, UPROF_EXIT_FAILED);
        } else if (source.n_seen == 0) {
            find(diagnosis, session->run->running > 0 ? LEVEL_WARN : LEVEL_NOTE, "symbols",
                 "'%s': %zu functions; no sample lay in its code just now: if it is the right "
                 "file, was it moved (FILE@BASE)?",
                 path, source.n_symbols);
        } else {
            find(diagnosis, LEVEL_NOTE, "symbols",
                 "'%s': %zu functions; too little of its code could be compared with the guest's",
                 path, source.n_symbols);
        }
    }
}

/* Of Linux: each of the two by itself, if there is any. */
static void
find_parts(Diagnosis *diagnosis, const UprofRunLinux *kernel)
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
            find(diagnosis, parts[i].complete * 2 >= parts[i].all ? LEVEL_OK : LEVEL_WARN,
                 parts[i].what, "%" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT " complete",
                 parts[i].complete, parts[i].all);
}

static void
find_stacks(Diagnosis *diagnosis, const UprofSession *session)
{
    const UprofPipeline *pipeline = session->pipeline;
    const UprofRun *run = session->run;

    if (run->running == 0) {
        find(diagnosis, LEVEL_NOTE, "stacks", "all of %" G_GUINT64_FORMAT " samples were idle",
             run->idles);
        return;
    }
    find(diagnosis, run->complete * 2 >= run->running ? LEVEL_OK : LEVEL_WARN, "stacks",
         "%" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT " complete, %" G_GUINT64_FORMAT
         " truncated, %" G_GUINT64_FORMAT " unknown, %" G_GUINT64_FORMAT " samples idle",
         run->complete, run->running, run->truncated, run->unknown, run->idles);
    for (unsigned end = 0; end < UPROF_N_ENDS; end++)
        if (end != UPROF_END_BASE && pipeline->ends[end] > 0)
            find(diagnosis, LEVEL_NOTE, "stacks", "%" G_GUINT64_FORMAT " end by: %s",
                 pipeline->ends[end], uprof_end_name(end));
    find_parts(diagnosis, &run->kernel);
    g_autofree char *quality = uprof_format_quality(run);
    const bool agree = run->calls_agreed * 100 >= run->calls_checked * CALLS_PERCENT;
    find(diagnosis, agree ? LEVEL_OK : LEVEL_WARN, "callers", "%s", quality);
    if (run->one_frame * 100 >= run->running * ONE_FRAME_PERCENT)
        find(diagnosis, LEVEL_WARN, "callers",
             "%" G_GUINT64_FORMAT " %% of stacks have one frame only: no unwind tables, or symbols "
             "without sizes?",
             run->one_frame * 100 / run->running);
}

/* A few samples, as a run would take them. Returns: false with the failure noted */
static bool
probe(Diagnosis *diagnosis, UprofSession *session)
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
        answer = uprof_sampler_shoot(session->sampler, slots, &n, &error);
        for (unsigned j = 0; answer == UPROF_OK && j < n; j++)
            uprof_pipeline_take(session->pipeline, slots[j], NULL);
        /* of a halted vCPU registers need not be known */
        if (answer == UPROF_OK && n > 0 && !has_mode && slots[0]->regs.word_bytes > 0) {
            find_mode(diagnosis, session, &slots[0]->regs);
            has_mode = true;
        }
        /* no more of the guest's time than a run would take */
        const uint64_t rest_us = session->run->hold.max_ns / UPROF_NS_PER_US * 1000000 /
                                 uprof_session_budget_ppm(session);
        g_usleep(MIN(MAX(rest_us, (uint64_t)PROBE_PAUSE_US), (uint64_t)PROBE_PAUSE_MAX_US) +
                 (gulong)g_random_int_range(0, PROBE_PAUSE_US));
    }
    g_free(pool);
    if (answer == UPROF_FAILED)
        find_error(diagnosis, "access", error);
    else if (answer != UPROF_OK)
        find(diagnosis, LEVEL_FAIL, "access", "%s",
             answer == UPROF_GONE    ? "the domain has just ended"
             : answer == UPROF_STUCK ? "no vCPU has stopped within --max-pause"
                                     : "somebody else stops, moves or saves the domain");
    if (answer != UPROF_OK && answer != UPROF_FAILED)
        diagnosis->code = uprof_exit_worse(diagnosis->code, UPROF_EXIT_DOMAIN);
    return answer == UPROF_OK;
}

static void
diagnose_domain(Diagnosis *diagnosis, UprofHost *host, UprofDomain *domain,
                const UprofOptions *options, UprofGuardian *guardian)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *about = uprof_host_describe(host);
    const char *job = uprof_host_job(host, domain);
    bool locked = false;

    find(diagnosis, job ? LEVEL_WARN : LEVEL_OK, "connection", "%s; %s", about,
         job ? job : "no job, no migration");
    g_autoptr(UprofSession) session =
        uprof_session_open(domain, options, guardian, false, false, &locked, &error);
    if (!session || !uprof_session_prepare(session, options, NULL, NULL, NULL, &error)) {
        find_error(diagnosis, session ? "symbols" : "access", error);
        if (locked)
            diagnosis->code = UPROF_EXIT_LOCKED;
        return;
    }
    uprof_linux_want_digest(session->pipeline->kernel);
    if (!probe(diagnosis, session))
        return;
    find_access(diagnosis, session);
    find_state_folder(diagnosis, session);
    find_symbols(diagnosis, session);
    find_stacks(diagnosis, session);
    find_rate(diagnosis, session);
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
find_xen(Diagnosis *diagnosis)
{
    g_autoptr(GError) error = NULL;

    if (uprof_module_xen(&error))
        find(diagnosis, LEVEL_OK, "module", "the module for domains of Xen is there");
    else
        find_error(diagnosis, "module", error);
}

static void
diagnose_host(Diagnosis *diagnosis, UprofHost *host, bool healed)
{
    g_autofree char *about = uprof_host_describe(host);
    g_autoptr(GPtrArray) markers = uprof_marker_list();
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) domains = uprof_host_list(host, &error);
    unsigned n_running = 0;

    find(diagnosis, LEVEL_OK, "connection", "%s, on %s", about, uprof_host_uri(host));
    for (guint i = 0; domains && i < domains->len; i++)
        n_running += ((UprofDomain *)g_ptr_array_index(domains, i))->state == UPROF_DOMAIN_RUNNING;
    if (domains)
        find(diagnosis, LEVEL_OK, "domains",
             "%u, of which %u run; for one of them: "
             "virt-uprof check DOMAIN",
             domains->len, n_running);
    else
        find_error(diagnosis, "domains", error);
    if (g_str_has_prefix(uprof_host_uri(host), "xen:"))
        find_xen(diagnosis);
    else if (geteuid() == 0)
        find(diagnosis, LEVEL_OK, "rights", "root: guest memory is read from QEMU's process");
    else
        find(diagnosis, LEVEL_NOTE, "rights",
             "not root: guest memory of system domains is read through libvirt, which is slower");
    if (healed)
        find(diagnosis, LEVEL_OK, "markers", "%u in %s, none of a dead run", markers->len,
             uprof_marker_folder());
    else
        find(diagnosis, LEVEL_FAIL, "markers",
             "a dead run may have left a guest stopped, see above");
}

static int
print(const Diagnosis *diagnosis, const UprofOptions *options, GString *json)
{
    if (options->json) {
        g_string_append(json, json->len > 1 ? ",\n " : "");
        append_json(json, diagnosis);
    } else {
        print_text(diagnosis, options->quiet);
    }
    return diagnosis->code;
}

static int
check_host(const UprofOptions *options, UprofHost *host, bool healed, const GError *error,
           GString *json)
{
    g_auto(Diagnosis) diagnosis = { 0 };

    init_diagnosis(&diagnosis, "host");
    if (host)
        diagnose_host(&diagnosis, host, healed);
    else
        find_error(&diagnosis, "connection", error);
    return print(&diagnosis, options, json);
}

static int
check_domain(const UprofOptions *options, UprofHost *host, const char *word,
             UprofGuardian *guardian, GString *json)
{
    g_autoptr(GError) error = NULL;
    g_auto(Diagnosis) diagnosis = { 0 };
    UprofDomain *domain = uprof_domid_find(host, word, options->quiet, &error);
    g_autofree char *title = domain ? describe_title(host, domain) : uprof_text_quote(word);

    init_diagnosis(&diagnosis, title);
    if (domain)
        diagnose_domain(&diagnosis, host, domain, options, guardian);
    else
        find_error(&diagnosis, "domain", error);
    return print(&diagnosis, options, json);
}

int
uprof_check_run(UprofOptions *options)
{
    g_autoptr(GError) error = NULL;
    UprofGuardian *guardian = uprof_guardian_start(uprof_access_find, &error);
    GString *json = g_string_new("[");
    UprofExitTally tally = { 0 };

    if (!guardian)
        return uprof_say_error(error);
    uprof_host_init();
    int code = uprof_session_heal(options->quiet);
    g_autoptr(UprofHost) host = uprof_host_open(options->uri, false, &error);
    if (!host || options->words->len == 0)
        uprof_exit_count(&tally, check_host(options, host, code == UPROF_EXIT_OK, error, json));
    for (guint i = 0; host && i < options->words->len; i++)
        uprof_exit_count(&tally, check_domain(options, host, g_ptr_array_index(options->words, i),
                                              guardian, json));
    if (options->json)
        printf("%s]\n", json->str);
    g_string_free(json, TRUE);
    code = uprof_exit_worse(code, uprof_exit_of(&tally));
    if (fflush(stdout) != 0)
        code = uprof_exit_worse(code, UPROF_EXIT_FAILED);
    return uprof_exit_worse(code, uprof_session_end_guardian(guardian, false, options->quiet));
}
