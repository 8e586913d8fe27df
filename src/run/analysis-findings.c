/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/analysis-findings.h"

#include "uprof/clock.h"
#include "uprof/kernel-log.h"
#include "uprof/number-text.h"
#include "uprof/run-facts.h"
#include "uprof/text.h"

#include <string.h>

enum {
    ONE_FRAME_PERCENT = 50, /* warn if at least this share of stacks has only one frame */
    CALLS_PERCENT = 90,     /* warn if a smaller share of calls agrees */
    MODULES_SHOWN = 5,
};

/* ---- Symbols ---- */

static void
describe_tables(UprofDiagnosis *diagnosis, const UprofSymSource *source)
{
    g_autofree char *path = uprof_text_quote(source->path);

    if (!source->cfi) {
        uprof_diagnosis_add(diagnosis, UPROF_LEVEL_NOTE, "unwind tables",
                            "'%s' has none: callers are found by code and frame pointers", path);
        return;
    }
    const UprofCfiSummary summary = uprof_cfi_summary(source->cfi);
    uprof_diagnosis_add(
        diagnosis, UPROF_LEVEL_OK, "unwind tables",
        "'%s': %zu entries for %zu functions, %zu KiB of memory; for code without an entry, "
        "callers are found by code and frame pointers",
        path, summary.n_fdes, source->n_symbols, summary.n_bytes / 1024);
    if (summary.n_dropped > 0)
        uprof_diagnosis_add(diagnosis, UPROF_LEVEL_WARN, "unwind tables",
                            "'%s': %zu entries are damaged and are ignored", path,
                            summary.n_dropped);
}

static void
count_memory(UprofDiagnosis *diagnosis, unsigned n_named, unsigned n_rules)
{
    if (n_named > 0)
        uprof_diagnosis_add(diagnosis, UPROF_LEVEL_OK, "symbols",
                            "%u files of the guest's processes, from the guest's memory; unwind "
                            "tables of %u",
                            n_named, n_rules);
}

static void
count_generated(UprofDiagnosis *diagnosis, const UprofSym *sym)
{
    unsigned n_processes;
    const size_t n = uprof_sym_count_generated(sym, &n_processes);

    if (n > 0)
        uprof_diagnosis_add(diagnosis, UPROF_LEVEL_OK, "symbols",
                            "%zu functions that JIT compilers generated, from the perf maps of %u "
                            "processes",
                            n, n_processes);
}

/* Lists the files of guest processes that occur in samples, but whose functions have no names. */
static void
describe_modules(UprofDiagnosis *diagnosis, const UprofSym *sym)
{
    UprofSymModule module;
    unsigned n_files = 0, n_memory = 0, n_rules = 0, n_bare = 0;

    for (unsigned i = 1; uprof_sym_module(sym, i, &module); i++) {
        const bool is_memory = !module.path && module.n_symbols > 0;
        n_files += module.path != NULL;
        n_memory += is_memory;
        n_rules += is_memory && module.cfi;
        if (module.path || is_memory || n_bare++ >= MODULES_SHOWN)
            continue;
        uprof_diagnosis_add(
            diagnosis, UPROF_LEVEL_NOTE, "symbols",
            "no symbol file for %s, build-id %s, and no names in memory: its frames will be "
            "addresses; give the file with -s, or the guest's files with --sysroot",
            module.label, module.build_id ? module.build_id : "unknown");
    }
    if (n_bare > MODULES_SHOWN)
        uprof_diagnosis_add(diagnosis, UPROF_LEVEL_NOTE, "symbols",
                            "no symbol files for %u more files", n_bare - MODULES_SHOWN);
    if (n_files > 0)
        uprof_diagnosis_add(diagnosis, UPROF_LEVEL_OK, "symbols",
                            "%u files of the guest's processes, found by build-id", n_files);
    count_memory(diagnosis, n_memory, n_rules);
    count_generated(diagnosis, sym);
}

static void
describe_types(UprofDiagnosis *diagnosis, const UprofLinuxFacts *facts)
{
    if (!facts->has_btf) {
        uprof_diagnosis_add(
            diagnosis, UPROF_LEVEL_WARN, "kernel types",
            "the kernel has no type information (BTF): processes and symbols of modules "
            "are unknown");
        return;
    }
    if (facts->has_types && facts->has_module_types)
        uprof_diagnosis_add(diagnosis, UPROF_LEVEL_OK, "kernel types",
                            "from the kernel's type information (BTF)");
    if (!facts->has_types)
        uprof_diagnosis_add(
            diagnosis, UPROF_LEVEL_WARN, "kernel types",
            "the type information (BTF) lacks members of tasks, or is unusual: processes "
            "are unknown");
    if (!facts->has_module_types)
        uprof_diagnosis_add(
            diagnosis, UPROF_LEVEL_WARN, "kernel types",
            "the type information (BTF) lacks members of modules: their symbols are unknown");
}

/* Shows the newest record of the kernel's log that tells of a crash, a hang or a lack of memory. */
static void
describe_log(UprofDiagnosis *diagnosis, const UprofPipeline *pipeline)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofKernelLog) log = uprof_kernel_log_read(pipeline->kernel, pipeline->mem, &error);
    UprofKernelTrouble trouble;

    if (!log) {
        uprof_diagnosis_add(diagnosis, UPROF_LEVEL_NOTE, "kernel log", "%s", error->message);
        return;
    }
    const unsigned n = uprof_kernel_log_records(log)->len;
    if (!uprof_kernel_log_find_trouble(log, &trouble)) {
        uprof_diagnosis_add(diagnosis, UPROF_LEVEL_OK, "kernel log",
                            "%u records; none tells of a crash or a hang", n);
        return;
    }
    g_autofree char *text = uprof_text_quote_slice(trouble.record->text);
    g_autofree char *age = uprof_format_ns(trouble.age_ns);
    uprof_diagnosis_add(diagnosis, trouble.is_old ? UPROF_LEVEL_NOTE : UPROF_LEVEL_WARN,
                        "kernel log",
                        "tells of %s, %.6f s after the boot and %s before the newest record: '%s'; "
                        "see: virt-uprof dmesg",
                        trouble.what, (double)trouble.record->time_ns / UPROF_NS_PER_S, age, text);
}

/* Returns: true if the guest's Linux kernel was found, so that its symbols are known */
static bool
describe_linux(UprofDiagnosis *diagnosis, const UprofAnalysis *analysis)
{
    UprofLinuxFacts facts;

    uprof_linux_facts(analysis->pipeline->kernel, &facts);
    g_autofree char *took = uprof_format_ns(facts.attach_ns);
    if (facts.state != UPROF_LINUX_FOUND) {
        if (facts.attach_ns > 0)
            uprof_diagnosis_add(
                diagnosis, UPROF_LEVEL_NOTE, "linux", "not found after %s: %s", took,
                facts.why ? facts.why : "there is no 64-bit kernel at the addresses of Linux");
        return false;
    }
    uprof_diagnosis_add(diagnosis, UPROF_LEVEL_OK, "linux",
                        "release %s, %s%s%sfound in memory in %s", facts.release,
                        facts.build_id ? "build-id " : "", facts.build_id ? facts.build_id : "",
                        facts.build_id ? ", " : "", took);
    uprof_diagnosis_add(diagnosis, UPROF_LEVEL_OK, "kernel symbols",
                        "%zu, %s, digest %016" G_GINT64_MODIFIER "x; kernel at %" G_GINT64_MODIFIER
                        "x",
                        facts.n_symbols, facts.layout, facts.digest, facts.base);
    if (facts.n_modules > 0)
        uprof_diagnosis_add(diagnosis, UPROF_LEVEL_OK, "kernel symbols", "also those of %u modules",
                            facts.n_modules);
    describe_types(diagnosis, &facts);
    if (facts.n_rules > 0)
        uprof_diagnosis_add(
            diagnosis, UPROF_LEVEL_OK, "kernel stacks",
            "callers are found by the kernel's own tables, %zu rules (ORC as of Linux %s)",
            facts.n_rules, uprof_orc_version_name(facts.rules_version));
    else
        uprof_diagnosis_add(
            diagnosis, UPROF_LEVEL_WARN, "kernel stacks",
            "callers are found by code: the kernel has no unwind tables (ORC), or tables of an "
            "unknown version");
    if (facts.has_tasks)
        uprof_diagnosis_add(diagnosis, UPROF_LEVEL_OK, "processes",
                            "names and mapped files are known");
    else
        uprof_diagnosis_add(diagnosis, UPROF_LEVEL_WARN, "processes",
                            "unknown: frames in user mode have no names%s",
                            facts.has_types ? "; no vCPU has shown yet which task it runs" : "");
    describe_modules(diagnosis, analysis->pipeline->sym);
    describe_log(diagnosis, analysis->pipeline);
    return true;
}

static void
describe_match(UprofDiagnosis *diagnosis, const UprofAnalysis *analysis,
               const UprofSymSource *source)
{
    g_autofree char *path = uprof_text_quote(source->path);

    if (source->match == UPROF_SYM_MATCHED) {
        uprof_diagnosis_add(diagnosis, UPROF_LEVEL_OK, "symbols",
                            "'%s': %zu functions; its code is equal to the guest's", path,
                            source->n_symbols);
    } else if (source->match == UPROF_SYM_MISMATCHED) {
        uprof_diagnosis_add(
            diagnosis, UPROF_LEVEL_FAIL, "symbols",
            "'%s' does not match the guest's code and would be ignored: %s; give the right "
            "file with -s",
            path, source->mismatch);
        diagnosis->code = uprof_error_merge(diagnosis->code, UPROF_ERROR_FAILED);
    } else if (source->n_seen == 0) {
        uprof_diagnosis_add(
            diagnosis, analysis->run->running > 0 ? UPROF_LEVEL_WARN : UPROF_LEVEL_NOTE, "symbols",
            "'%s': %zu functions, but no sample was in its code; if the file is right, its "
            "load address may be missing (-s FILE@BASE)",
            path, source->n_symbols);
    } else {
        uprof_diagnosis_add(
            diagnosis, UPROF_LEVEL_NOTE, "symbols",
            "'%s': %zu functions; too little of its code was read to compare it with the "
            "guest's",
            path, source->n_symbols);
    }
}

static void
describe_symbols(UprofDiagnosis *diagnosis, const UprofAnalysis *analysis)
{
    const UprofSym *sym = analysis->pipeline->sym;
    const bool is_linux = describe_linux(diagnosis, analysis);

    if (!is_linux && (uprof_sym_n_sources(sym) == 0 || analysis->symbols_hint))
        uprof_diagnosis_add(diagnosis, UPROF_LEVEL_WARN, "symbols",
                            "none, so frames will be addresses: %s",
                            analysis->symbols_hint ? analysis->symbols_hint : "give them with -s");
    for (unsigned i = 0; i < uprof_sym_n_sources(sym); i++) {
        UprofSymSource source;
        uprof_sym_source(sym, i, &source);
        g_autofree char *path = uprof_text_quote(source.path);
        if (source.debug_path) {
            g_autofree char *debug = uprof_text_quote(source.debug_path);
            uprof_diagnosis_add(diagnosis, UPROF_LEVEL_OK, "symbols",
                                "'%s': uses its debug file '%s'", path, debug);
        }
        if (source.match == UPROF_SYM_MISMATCHED)
            uprof_diagnosis_add(diagnosis, UPROF_LEVEL_NOTE, "unwind tables",
                                "'%s': not checked, because the guest runs other code", path);
        else if (strcmp(source.kind, "ELF") == 0)
            describe_tables(diagnosis, &source);
        if (source.hint)
            uprof_diagnosis_add(diagnosis, UPROF_LEVEL_WARN, "symbols", "'%s': %s", path,
                                source.hint);
        describe_match(diagnosis, analysis, &source);
    }
}

/* Shows for a Linux guest how many stacks are complete in the kernel and in user mode. */
static void
describe_parts(UprofDiagnosis *diagnosis, const UprofRunLinux *kernel)
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
            uprof_diagnosis_add(
                diagnosis,
                parts[i].complete * 2 >= parts[i].all ? UPROF_LEVEL_OK : UPROF_LEVEL_WARN,
                parts[i].what, "%" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT " complete",
                parts[i].complete, parts[i].all);
}

/* Is no symbol file right, and at least one wrong? */
static bool
rests_on_mismatch(const UprofSym *sym)
{
    bool any_wrong = false;

    for (unsigned i = 0; i < uprof_sym_n_sources(sym); i++) {
        UprofSymSource source;
        uprof_sym_source(sym, i, &source);
        if (source.match == UPROF_SYM_MATCHED)
            return false;
        any_wrong |= source.match == UPROF_SYM_MISMATCHED;
    }
    return any_wrong;
}

static void
describe_stacks(UprofDiagnosis *diagnosis, const UprofAnalysis *analysis)
{
    const UprofPipeline *pipeline = analysis->pipeline;
    const UprofRun *run = analysis->run;

    if (run->running == 0) {
        uprof_diagnosis_add(diagnosis, UPROF_LEVEL_NOTE, "stacks",
                            "all %" G_GUINT64_FORMAT " samples were idle", run->idles);
        return;
    }
    uprof_diagnosis_add(
        diagnosis, run->complete * 2 >= run->running ? UPROF_LEVEL_OK : UPROF_LEVEL_WARN, "stacks",
        "%" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT " are complete, %" G_GUINT64_FORMAT
        " truncated, %" G_GUINT64_FORMAT " unknown, %" G_GUINT64_FORMAT " samples idle",
        run->complete, run->running, run->truncated, run->unknown, run->idles);
    for (unsigned end = 0; end < UPROF_N_ENDS; end++)
        if (end != UPROF_END_BASE && pipeline->ends[end] > 0)
            uprof_diagnosis_add(diagnosis, UPROF_LEVEL_NOTE, "stacks",
                                "%" G_GUINT64_FORMAT " are cut off: %s", pipeline->ends[end],
                                uprof_end_name(end));
    describe_parts(diagnosis, &run->kernel);
    /* Without names nobody can say whether the callers are right. */
    if (rests_on_mismatch(pipeline->sym)) {
        uprof_diagnosis_add(diagnosis, UPROF_LEVEL_NOTE, "callers",
                            "not checked, because the symbol files do not match the guest");
        return;
    }
    g_autofree char *quality = uprof_format_quality(run);
    const bool agree = run->calls_agreed * 100 >= run->calls_checked * CALLS_PERCENT;
    uprof_diagnosis_add(diagnosis, agree ? UPROF_LEVEL_OK : UPROF_LEVEL_WARN, "callers", "%s",
                        quality);
    if (run->one_frame * 100 >= run->running * ONE_FRAME_PERCENT)
        uprof_diagnosis_add(diagnosis, UPROF_LEVEL_WARN, "callers",
                            "%" G_GUINT64_FORMAT
                            " %% of stacks have only one frame; unwind tables or the sizes of "
                            "symbols may be missing",
                            run->one_frame * 100 / run->running);
}

void
uprof_analysis_findings_add(UprofDiagnosis *diagnosis, const UprofAnalysis *analysis)
{
    describe_symbols(diagnosis, analysis);
    describe_stacks(diagnosis, analysis);
}
