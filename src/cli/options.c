/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The popt table, and nothing else. Every value is taken as text and parsed
 * whole: popt's own integers take "-5" for a rate and "010" for 8. popt's
 * configuration files are never read: a line in ~/.popt can run programs.
 */
#include "options-priv.h"

#include "domid-priv.h"
#include "exit-priv.h"
#include "moment-priv.h"
#include "uprof/scan.h"
#include "uprof/text.h"

#include <popt.h>
#include <stdio.h>
#include <string.h>

#include "commands-priv.h"

enum {
    ROUNDS_MAX = 1000 * 1000,
    ROWS_MAX = 1000 * 1000,
    MAX_PAUSE_NS_MAX = 1000 * 1000 * 1000,
};

enum {
    RECORD = 1 << 0,
    LIST = 1 << 1,
    DUMP = 1 << 2,
    CHECK = 1 << 3,
    REPORT = 1 << 4,
    DIFF = 1 << 5,
    TOP = 1 << 6,
    COLLECT = 1 << 7,
    ENABLE = 1 << 8,
    DISABLE = 1 << 9,
    CONFIGURE = 1 << 10,
    PRUNE = 1 << 11,
    SUMMARY = 1 << 12,
    MARK = ENABLE | DISABLE | CONFIGURE,
    ALL = RECORD | LIST | DUMP | CHECK | REPORT | DIFF | TOP | COLLECT | MARK | PRUNE | SUMMARY,
    LIVE = RECORD | DUMP | CHECK | TOP,
    FILES = REPORT | DIFF,
    STORED = REPORT | DIFF | PRUNE | SUMMARY,
};

/* clang-format off */
const UprofCommand uprof_commands[] = {
    { "record", RECORD, "DOMAIN...",   "sample, and write files (if no command is named)", uprof_record_run },
    { "list",   LIST,   "",            "every domain, and how it would be sampled", uprof_list_run },
    { "dump",   DUMP,   "DOMAIN...",   "one stack per vCPU, now",                   uprof_dump_run },
    { "check",  CHECK,  "[DOMAIN...]", "the doctor: what works, what does not, and what to do", uprof_check_run },
    { "report", REPORT, "FILE...",     "profiles again, as table, picture or files; --since: stored ones", uprof_report_run },
    { "diff",   DIFF,   "OLD NEW",     "what has changed between two profiles: files, or DOMAIN@DAY", uprof_diff_run },
    { "top",    TOP,    "DOMAIN...",   "the hottest functions as it runs, once a second", uprof_top_run },
    { "collect", COLLECT, "[DOMAIN...]", "one round over the domains that are enabled, into the store", uprof_collect_run },
    { "enable", ENABLE, "DOMAIN...",   "have collect sample it: says so in its metadata", uprof_mark_enable },
    { "disable", DISABLE, "DOMAIN...", "have collect leave it alone", uprof_mark_disable },
    { "configure", CONFIGURE, "DOMAIN...", "how it is sampled: show, or set in its metadata", uprof_mark_configure },
    { "prune",  PRUNE,  "",            "close the store's days: merge, summarize, delete what is old", uprof_prune_run },
    { "summary", SUMMARY, "[DAY]",     "what a day (yesterday) was like: functions, changes, cost", uprof_summary_run },
    { NULL,     0,      NULL,          NULL,                                        NULL },
};

typedef enum {
    OPTION_CONNECT = 1, OPTION_RATE, OPTION_DURATION, OPTION_OUTPUT, OPTION_FORMAT, OPTION_CAPTURE,
    OPTION_SYMBOLS, OPTION_DEBUG_DIR, OPTION_SYSROOT,
    OPTION_NO_DEMANGLE, OPTION_LINES, OPTION_ACCESS, OPTION_UNWIND, OPTION_VCPU, OPTION_PER_VCPU, OPTION_PIDS, OPTION_IDLE,
    OPTION_MAX_DEPTH, OPTION_MAX_PAUSE, OPTION_BUDGET, OPTION_NO_PAUSE, OPTION_ALL,
    OPTION_DOMID, OPTION_WAIT, OPTION_HEAL, OPTION_FOCUS, OPTION_INCLUDE, OPTION_EXCLUDE,
    OPTION_SORT, OPTION_BY, OPTION_BATCH, OPTION_ROUNDS, OPTION_SINCE, OPTION_UNTIL, OPTION_CONFIG, OPTION_STORE, OPTION_DRY_RUN,
    OPTION_ROWS, OPTION_QUIET, OPTION_VERBOSE, OPTION_JSON, OPTION_VERSION, OPTION_HELP,
} OptionId;

static const struct {
    const char *long_name;
    char short_name;
    OptionId id;
    unsigned commands;
    const char *argument; /* NULL: none; "[=": it may be left out, and stands behind a "=" */
    const char *help;     /* NULL: another spelling of the row above */
    const char *bare;     /* without its argument, if that may be left out */
} rows[] = {
    { "connect",   'c',  OPTION_CONNECT,   LIVE | LIST | COLLECT | MARK, "URI", "libvirt connection, as virsh (LIBVIRT_DEFAULT_URI); collect takes several" },
    { "rate",      'F',  OPTION_RATE,      RECORD | TOP | COLLECT | MARK, "HZ",   "samples per second of each vCPU: 1 to 20000 (99)" },
    { "frequency", '\0', OPTION_RATE,      RECORD | TOP | COLLECT | MARK, "HZ",   NULL },
    { "duration",  'd',  OPTION_DURATION,  RECORD | COLLECT | MARK, "T",    "10, 500ms, 2m, 1h; 0: until Ctrl-C (10s)" },
    { "time",      'T',  OPTION_DURATION,  RECORD | COLLECT | MARK, "T",    NULL },
    { "output",    'o',  OPTION_OUTPUT,    RECORD | FILES,  "FILE", "repeatable; %d domain, %t time, %u UUID; -: stdout" },
    { "format",    'f',  OPTION_FORMAT,    RECORD | FILES,  "NAME", "folded[.gz], svg, pprof, speedscope, perf, meta, capture (by the ending)" },
    { "capture",   '\0', OPTION_CAPTURE,   RECORD,          "FILE", "keep what was sampled, for report: -f capture -o FILE" },
    { "symbols",   's',  OPTION_SYMBOLS,   LIVE | FILES | COLLECT | MARK, "FILE[@BASE]", "repeatable; ELF, or text as nm, System.map, kallsyms" },
    { "debug-dir", '\0', OPTION_DEBUG_DIR, LIVE | FILES,  "DIR",  "repeatable; separate debug files (/usr/lib/debug)" },
    { "sysroot",   '\0', OPTION_SYSROOT,   LIVE | FILES,  "DIR",  "repeatable; files of a Linux guest, as it has them" },
    { "no-demangle", '\0', OPTION_NO_DEMANGLE, LIVE | FILES, NULL, "names of C++, Rust, D and OCaml as they are in the file" },
    { "lines",     '\0', OPTION_LINES,     LIVE | FILES,   NULL,   "file and line of the source in each frame, from DWARF" },
    { "access",    '\0', OPTION_ACCESS,    LIVE | COLLECT,  "WAY",  "auto, direct, monitor or xen (auto)" },
    { "unwind",    '\0', OPTION_UNWIND,    LIVE | FILES | COLLECT | MARK, "WAY",  "auto, cfi or fp (auto)" },
    { "vcpu",      '\0', OPTION_VCPU,      LIVE,            "LIST", "vCPUs to sample, such as 0,2-3 (all)" },
    { "per-vcpu",  '\0', OPTION_PER_VCPU,  RECORD | REPORT, NULL,   "a level per vCPU" },
    { "pids",      '\0', OPTION_PIDS,      RECORD | REPORT | TOP | COLLECT, NULL, "processes of a Linux guest with their numbers: nginx-812" },
    { "idle",      '\0', OPTION_IDLE,      RECORD | REPORT, "[=stack]", "show halted vCPUs, or their last stack; they are always counted", "--idle=" },
    { "max-depth", '\0', OPTION_MAX_DEPTH, LIVE | FILES,    "N",    "frames of a stack: 1 to 1024 (127)" },
    { "max-pause", '\0', OPTION_MAX_PAUSE, LIVE,            "T",    "copy nothing more in a hold this old (50ms)" },
    { "budget",    '\0', OPTION_BUDGET,    RECORD | CHECK | TOP | COLLECT | MARK, "PCT",  "percent of time a vCPU may be held (5; monitor: 10)" },
    { "no-pause",  '\0', OPTION_NO_PAUSE,  LIVE,            NULL,   "KVM: read without stopping; torn stacks count as truncated" },
    { "all",       '\0', OPTION_ALL,       RECORD | TOP,    NULL,   "all running domains" },
    { "domid",     '\0', OPTION_DOMID,     LIVE,            "N",    "a domain by Xen's own number, also one made by xl; repeatable" },
    { "wait",      '\0', OPTION_WAIT,      RECORD,          "[=T]", "wait for a domain to start, and sample it from then on", "--wait=" },
    { "heal",      '\0', OPTION_HEAL,      CHECK,           NULL,   "resume what a dead run left stopped" },
    { "focus",     '\0', OPTION_FOCUS,     REPORT,          "NAME", "who calls a function, and whom it calls" },
    { "include",   '\0', OPTION_INCLUDE,   FILES,           "RE",   "keep stacks with a name that matches" },
    { "exclude",   '\0', OPTION_EXCLUDE,   FILES,           "RE",   "drop stacks with a name that matches" },
    { "since",     '\0', OPTION_SINCE,     REPORT,          "T",    "stored profiles: today, 2026-11-20, 2026-11-20T09:15, 3d, 12h (UTC)" },
    { "until",     '\0', OPTION_UNTIL,     REPORT,          "T",    "of what began before" },
    { "sort",      '\0', OPTION_SORT,      TOP,             "KEY",  "self or total (self)" },
    { "by",        '\0', OPTION_BY,        TOP | REPORT,    "KEY",  "function, or process of a Linux guest (function)" },
    { "batch",     '\0', OPTION_BATCH,     TOP,             NULL,   "for scripts: plain text, no screen" },
    { "rounds",    '\0', OPTION_ROUNDS,    TOP,             "N",    "end after so many seconds" },
    { "config",    '\0', OPTION_CONFIG,    COLLECT | MARK | STORED, "FILE", "configuration (" UPROF_CONFIG_FILE ")" },
    { "store",     '\0', OPTION_STORE,     COLLECT | STORED, "DIR",  "where profiles are kept (as configured)" },
    { "dry-run",   '\0', OPTION_DRY_RUN,   COLLECT | PRUNE, NULL,   "say what would be done, and do nothing" },
    { "rows",      'n',  OPTION_ROWS,      RECORD | FILES | TOP, "N", "rows of tables (15; of record's 10)" },
    { "json",      '\0', OPTION_JSON,      ALL & ~(TOP | MARK | PRUNE | SUMMARY), NULL, "for machines; with record: the sidecar on stdout" },
    { "quiet",     'q',  OPTION_QUIET,     ALL,             NULL,   "errors only" },
    { "verbose",   'v',  OPTION_VERBOSE,   ALL,             NULL,   "more" },
    { "version",   'V',  OPTION_VERSION,   ALL,             NULL,   "print the version" },
    { "help",      'h',  OPTION_HELP,      ALL,             NULL,   "print this" },
    { NULL,        '?',  OPTION_HELP,      ALL,             NULL,   NULL },
};
/* clang-format on */

/* For the cleanup attribute: poptFreeContext() wants the context itself. */
static void
free_context(poptContext *context)
{
    poptFreeContext(*context);
}

static void
free_wanted(gpointer data)
{
    UprofWanted *wanted = data;

    g_free(wanted->path);
    g_free(wanted);
}

static void
free_symbols(gpointer data)
{
    UprofSymbolFile *file = data;

    g_free(file->path);
    g_free(file);
}

void
uprof_options_free(UprofOptions *options)
{
    if (!options)
        return;
    g_free(options->uri);
    g_ptr_array_unref(options->uris);
    g_free(options->access);
    g_free(options->focus);
    g_free(options->sort);
    g_free(options->config_path);
    g_free(options->store);
    g_clear_pointer(&options->include, g_regex_unref);
    g_clear_pointer(&options->exclude, g_regex_unref);
    uprof_settings_clear(&options->settings);
    uprof_config_free(options->config);
    g_ptr_array_unref(options->outputs);
    g_ptr_array_unref(options->symbols);
    g_ptr_array_unref(options->debug_folders);
    g_ptr_array_unref(options->sysroots);
    g_ptr_array_unref(options->words);
    g_free(options);
}

static UprofOptions *
new_options(void)
{
    UprofOptions *options = g_new0(UprofOptions, 1);

    options->access = g_strdup("auto");
    options->uris = g_ptr_array_new_with_free_func(g_free);
    options->until_s = INT64_MAX;
    options->outputs = g_ptr_array_new_with_free_func(free_wanted);
    options->symbols = g_ptr_array_new_with_free_func(free_symbols);
    options->debug_folders = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(options->debug_folders, NULL);
    options->sysroots = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(options->sysroots, NULL);
    options->words = g_ptr_array_new_with_free_func(g_free);
    uprof_settings_init(&options->settings);
    return options;
}

static bool fail_usage(const char *format, ...) G_GNUC_PRINTF(1, 2);

static bool
fail_usage(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    g_autofree char *text = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    uprof_say("virt-uprof: %s; try: virt-uprof --help", text);
    return false;
}

static bool
fail_value(const char *option, const char *value, const char *form)
{
    g_autofree char *quoted = uprof_text_quote(value);

    return fail_usage("--%s '%s' is not %s", option, quoted, form);
}

static bool
is_optional(size_t row)
{
    return rows[row].argument && rows[row].argument[0] == '[';
}

bool
uprof_options_describe(size_t i, UprofOptionInfo *info)
{
    if (i >= G_N_ELEMENTS(rows))
        return false;
    *info = (UprofOptionInfo){
        .long_name = rows[i].long_name,
        .short_name = rows[i].short_name,
        .commands = rows[i].commands,
        .argument = rows[i].argument,
        .is_optional = is_optional(i),
    };
    return true;
}

static void
print_help(void)
{
    printf("virt-uprof [COMMAND] [OPTION...] DOMAIN...\n"
           "Samples the call stacks of a running virtual machine from its host.\n\nCommands:\n");
    for (const UprofCommand *command = uprof_commands; command->name; command++)
        printf("  %-9s %-12s %s\n", command->name, command->arguments, command->summary);
    printf("\nOptions:\n");
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *spelling = NULL;
        if (!rows[i].help)
            continue;
        spelling = g_strdup_printf("%s%c%s --%s%s%s", rows[i].short_name ? "-" : " ",
                                   rows[i].short_name ? rows[i].short_name : ' ',
                                   rows[i].short_name ? "," : " ", rows[i].long_name,
                                   rows[i].argument && !is_optional(i) ? "=" : "",
                                   rows[i].argument ? rows[i].argument : "");
        printf("  %-22s %s\n", spelling, rows[i].help);
    }
    printf("\nExit codes:\n");
    for (int code = 0; code <= UPROF_EXIT_LOCKED; code++)
        if (uprof_exit_text(code))
            printf("  %-3d %s\n", code, uprof_exit_text(code));
}

static void
add_wanted(UprofOptions *options, const char *path, const UprofFormat *format)
{
    UprofWanted *wanted = g_new0(UprofWanted, 1);

    wanted->path = g_strdup(path);
    wanted->format = format;
    g_ptr_array_add(options->outputs, wanted);
}

static bool
take_number(const char *option, const char *value, uint64_t min, uint64_t max, unsigned *number)
{
    uint64_t found;
    g_autofree char *form =
        g_strdup_printf("%" G_GUINT64_FORMAT " to %" G_GUINT64_FORMAT, min, max);

    if (!uprof_slice_to_uint((UprofSlice){ value, strlen(value) }, 10, min, max, &found))
        return fail_value(option, value, form);
    *number = (unsigned)found;
    return true;
}

static bool
take_text(const char *option, const char *value, char **text)
{
    g_free(*text);
    *text = g_strdup(value);
    return value[0] != '\0' || fail_usage("--%s is empty", option);
}

static bool
take_choice(const char *option, const char *value, const char *const *choices, size_t n,
            const char **chosen, const char *form)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(value, choices[i]) == 0) {
            *chosen = choices[i];
            return true;
        }
    }
    return fail_value(option, value, form);
}

static bool
take_regex(const char *option, const char *value, GRegex **regex)
{
    g_autoptr(GError) error = NULL;

    g_clear_pointer(regex, g_regex_unref);
    if (g_utf8_validate(value, -1, NULL))
        *regex = g_regex_new(value, G_REGEX_OPTIMIZE, 0, &error);
    return *regex || fail_value(option, value, "a regular expression");
}

static bool
take_format(UprofOptions *options, const char *value)
{
    options->format = uprof_format_by_name(value);
    if (options->format)
        return true;
    g_autofree char *names = uprof_format_names();
    g_autofree char *form = g_strdup_printf("one of: %s", names);
    return fail_value("format", value, form);
}

/* FILE or FILE@BASE; a file that is called like that is one. */
static bool
take_symbols(UprofOptions *options, const char *value)
{
    UprofSymbolFile *file = g_new0(UprofSymbolFile, 1);
    const char *at = strrchr(value, '@');

    g_ptr_array_add(options->symbols, file);
    if (!at || g_file_test(value, G_FILE_TEST_EXISTS)) {
        file->path = g_strdup(value);
        return true;
    }
    const char *digits = g_str_has_prefix(at + 1, "0x") ? at + 3 : at + 1;
    file->path = g_strndup(value, (gsize)(at - value));
    file->is_moved = true;
    return uprof_slice_to_uint((UprofSlice){ digits, strlen(digits) }, 16, 0, UINT64_MAX,
                               &file->base) ||
           fail_value("symbols", value, "FILE, or FILE@BASE with BASE in hexadecimal");
}

static bool
take_settings(UprofOptions *options, OptionId id, const char *value)
{
    static const char *const ways[] = { "auto", "cfi", "fp" };
    UprofSettings *settings = &options->settings;

    switch (id) {
    case OPTION_RATE:
        settings->given.rate = true;
        return uprof_settings_parse_rate(value, &settings->rate_mhz) ||
               fail_value("rate", value, UPROF_RATE_FORM);
    case OPTION_DURATION:
        settings->given.duration = true;
        return uprof_settings_parse_duration(value, &settings->duration_ns) ||
               fail_value("duration", value, UPROF_DURATION_FORM);
    case OPTION_BUDGET:
        settings->given.budget = true;
        return uprof_settings_parse_budget(value, &settings->budget_ppm) ||
               fail_value("budget", value, UPROF_BUDGET_FORM);
    case OPTION_VCPU:
        return uprof_settings_parse_vcpus(value, &settings->vcpus) ||
               fail_value("vcpu", value, UPROF_VCPUS_FORM);
    case OPTION_MAX_PAUSE:
        return (uprof_settings_parse_duration(value, &settings->max_pause_ns) &&
                settings->max_pause_ns > 0 && settings->max_pause_ns <= MAX_PAUSE_NS_MAX) ||
               fail_value("max-pause", value, "a duration of up to 1s, such as 50ms");
    case OPTION_MAX_DEPTH:
        return take_number("max-depth", value, 1, 1024, &settings->max_depth);
    case OPTION_UNWIND:
        settings->given.unwind = true;
        return take_choice("unwind", value, ways, G_N_ELEMENTS(ways), &settings->unwind,
                           "auto, cfi or fp");
    case OPTION_PER_VCPU:
        settings->per_vcpu = true;
        return true;
    case OPTION_PIDS:
        settings->pids = true;
        return true;
    case OPTION_IDLE:
        settings->idle = true;
        settings->idle_stacks = strcmp(value, "stack") == 0;
        return settings->idle_stacks || value[0] == '\0' || fail_value("idle", value, "'stack'");
    default:
        settings->no_pause = true;
        return true;
    }
}

static bool
take_option(UprofOptions *options, OptionId id, const char *value)
{
    static const char *const accesses[] = { "auto", "direct", "monitor", "xen" };
    static const char *const keys[] = { "self", "total" };
    static const char *const rows_of[] = { "function", "process" };
    const char *chosen = NULL;
    unsigned domid;

    switch (id) {
    case OPTION_CONNECT:
        g_free(options->uri);
        options->uri = g_strdup(value);
        g_ptr_array_add(options->uris, g_strdup(value));
        return true;
    case OPTION_OUTPUT:
        add_wanted(options, value, NULL);
        return value[0] != '\0' || fail_usage("--output needs a file name");
    case OPTION_CAPTURE:
        add_wanted(options, value, uprof_format_by_name("capture"));
        return value[0] != '\0' || fail_usage("--capture needs a file name");
    case OPTION_FORMAT:
        return take_format(options, value);
    case OPTION_SYMBOLS:
        return take_symbols(options, value);
    case OPTION_DEBUG_DIR:
        g_ptr_array_insert(options->debug_folders, (gint)options->debug_folders->len - 1,
                           g_strdup(value));
        return g_file_test(value, G_FILE_TEST_IS_DIR) || fail_value("debug-dir", value, "a folder");
    case OPTION_SYSROOT:
        g_ptr_array_insert(options->sysroots, (gint)options->sysroots->len - 1, g_strdup(value));
        return g_file_test(value, G_FILE_TEST_IS_DIR) || fail_value("sysroot", value, "a folder");
    case OPTION_NO_DEMANGLE:
        options->no_demangle = true;
        return true;
    case OPTION_LINES:
        options->lines = true;
        return true;
    case OPTION_ACCESS:
        if (!take_choice("access", value, accesses, G_N_ELEMENTS(accesses), &chosen,
                         "auto, direct, monitor or xen"))
            return false;
        g_free(options->access);
        options->access = g_strdup(chosen);
        return true;
    case OPTION_ROWS:
        return take_number("rows", value, 1, ROWS_MAX, &options->rows);
    case OPTION_SORT:
        if (!take_choice("sort", value, keys, G_N_ELEMENTS(keys), &chosen, "self or total"))
            return false;
        g_free(options->sort);
        options->sort = g_strdup(chosen);
        return true;
    case OPTION_BY:
        if (!take_choice("by", value, rows_of, G_N_ELEMENTS(rows_of), &chosen,
                         "function or process"))
            return false;
        options->by_process = strcmp(chosen, "process") == 0;
        return true;
    case OPTION_BATCH:
        options->batch = true;
        return true;
    case OPTION_ROUNDS:
        return take_number("rounds", value, 1, ROUNDS_MAX, &options->rounds);
    case OPTION_SINCE:
        options->is_stored = true;
        return uprof_moment_parse(value, uprof_moment_now(), &options->since_s) ||
               fail_value("since", value, UPROF_MOMENT_FORM);
    case OPTION_UNTIL:
        return uprof_moment_parse(value, uprof_moment_now(), &options->until_s) ||
               fail_value("until", value, UPROF_MOMENT_FORM);
    case OPTION_FOCUS:
        g_free(options->focus);
        options->focus = g_strdup(value);
        return true;
    case OPTION_INCLUDE:
        return take_regex("include", value, &options->include);
    case OPTION_EXCLUDE:
        return take_regex("exclude", value, &options->exclude);
    case OPTION_ALL:
        options->all = true;
        return true;
    case OPTION_DOMID:
        if (!take_number("domid", value, 0, UPROF_DOMID_MAX, &domid))
            return false;
        g_ptr_array_add(options->words, uprof_domid_word(domid));
        return true;
    case OPTION_WAIT:
        options->wait = true;
        return value[0] == '\0' || uprof_settings_parse_duration(value, &options->wait_ns) ||
               fail_value("wait", value, UPROF_DURATION_FORM);
    case OPTION_CONFIG:
        return take_text("config", value, &options->config_path);
    case OPTION_STORE:
        return take_text("store", value, &options->store);
    case OPTION_DRY_RUN:
        options->dry_run = true;
        return true;
    case OPTION_HEAL:
        return true; /* every command that holds guests begins with it */
    case OPTION_JSON:
        options->json = true;
        return true;
    case OPTION_QUIET:
        options->quiet = true;
        return true;
    case OPTION_VERBOSE:
        options->verbose = true;
        return true;
    default:
        return take_settings(options, id, value);
    }
}

/* Options that were given, once the command is known. */
static bool
check_belonging(const UprofOptions *options, const bool *given)
{
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
        if (given[rows[i].id] && !(rows[i].commands & options->command->bit) && rows[i].help)
            return fail_usage("--%s does not belong to '%s'", rows[i].long_name,
                              options->command->name);
    return true;
}

static bool
check_outputs(UprofOptions *options)
{
    const bool is_report = options->command->bit & FILES;
    const bool is_diff = options->command->bit & DIFF;
    unsigned n_stdout = 0, n_captures = 0;

    if (is_diff && options->format && options->format != &uprof_format_svg)
        return fail_usage("'diff' writes pictures (.svg), and its table to stdout");
    if (options->format && options->format->is_capture && (is_report || options->outputs->len == 0))
        return fail_usage("a capture is written by 'record', to a file");
    for (guint i = 0; i < options->outputs->len; i++) {
        UprofWanted *wanted = g_ptr_array_index(options->outputs, i);
        const bool is_stdout = strcmp(wanted->path, "-") == 0;
        if (!wanted->format)
            wanted->format = options->format ? options->format : uprof_format_by_path(wanted->path);
        if (!wanted->format && is_stdout)
            wanted->format = is_diff ? &uprof_format_svg : &uprof_format_folded;
        if (!wanted->format) {
            g_autofree char *quoted = uprof_text_quote(wanted->path);
            g_autofree char *endings = uprof_format_endings();
            uprof_say("virt-uprof: cannot tell the format of '%s'; use -f or one of %s", quoted,
                      endings);
            return false;
        }
        if (is_stdout && ++n_stdout > 1)
            return fail_usage("only one output can go to stdout");
        if (is_stdout && options->json && (options->command->bit & RECORD))
            return fail_usage("--json and '-o -' both want stdout");
        if (wanted->format->is_capture && (is_stdout || is_report))
            return fail_usage("a capture is written by 'record', to a file");
        if (is_diff && wanted->format != &uprof_format_svg)
            return fail_usage("'diff' writes pictures (.svg), and its table to stdout");
        if (wanted->format->is_capture && ++n_captures > 1)
            return fail_usage("one run makes one capture");
    }
    return true;
}

/* Whether a path has %d or %u, and not just "%%d". */
static bool
names_domain(const char *path)
{
    for (const char *at = path; *at; at++) {
        if (*at != '%')
            continue;
        if (at[1] == 'd' || at[1] == 'u')
            return true;
        if (at[1])
            at++;
    }
    return false;
}

static bool
check_words(const UprofOptions *options)
{
    const unsigned bit = options->command->bit;
    const guint n = options->words->len;

    if (options->all && n > 0)
        return fail_usage("--all takes no domains");
    if (strcmp(options->access, "direct") == 0 && options->settings.no_pause)
        return fail_usage("--access direct holds a vCPU for each sample: leave out --no-pause");
    if (bit & LIST && n > 0)
        return fail_usage("'list' takes no domain: it lists them all");
    if (bit & PRUNE && n > 0)
        return fail_usage("'prune' takes no domain: it works on the whole store");
    if (bit & SUMMARY && n > 1)
        return fail_usage("'summary' takes one DAY");
    if (bit & REPORT && !options->is_stored && options->until_s != INT64_MAX)
        return fail_usage("--until needs --since");
    if (bit & REPORT && options->is_stored && options->until_s <= options->since_s)
        return fail_usage("--until is not after --since");
    if (bit & REPORT && n == 0)
        return fail_usage(options->is_stored
                              ? "'report --since' needs a DOMAIN whose profiles are stored"
                              : "'report' needs a FILE: a capture, or folded stacks");
    if (bit & REPORT && options->focus && options->by_process)
        return fail_usage("--focus is about a function: leave out --by process");
    if (options->by_process && g_strcmp0(options->sort, "self") == 0)
        return fail_usage("--sort self is about functions: leave out --by process");
    if (bit & DIFF && n != 2)
        return fail_usage("'diff' needs two files, OLD and NEW");
    if (bit & (COLLECT | MARK) && options->settings.given.duration &&
        options->settings.duration_ns == 0)
        return fail_usage("'%s' needs a duration that ends", options->command->name);
    if (bit & (RECORD | DUMP | TOP | MARK) && n == 0 && !options->all)
        return fail_usage("which DOMAIN? to see what there is: virt-uprof list");
    for (guint i = 0; i < options->outputs->len; i++) {
        const UprofWanted *wanted = g_ptr_array_index(options->outputs, i);
        if ((options->all || n > 1) && bit & RECORD && strcmp(wanted->path, "-") != 0 &&
            !names_domain(wanted->path))
            return fail_usage("several domains need %%d or %%u in -o");
    }
    return true;
}

static void
take_words(UprofOptions *options, poptContext context)
{
    const char **words = poptGetArgs(context);

    options->command = &uprof_commands[0];
    for (size_t i = 0; words && words[i]; i++) {
        bool is_command = false;
        for (const UprofCommand *command = uprof_commands; i == 0 && command->name; command++) {
            if (strcmp(words[i], command->name) == 0) {
                options->command = command;
                is_command = true;
            }
        }
        if (!is_command)
            g_ptr_array_add(options->words, g_strdup(words[i]));
    }
}

/*
 * popt lets an option without its argument take the next word instead, which is
 * a domain: "--wait" becomes "--wait=". Returns: (transfer container): ends with NULL
 */
static const char **
complete_words(int argc, const char **argv)
{
    const char **words = g_new0(const char *, (gsize)argc + 1);
    bool is_end = false;

    for (int i = 0; i < argc; i++) {
        words[i] = argv[i];
        is_end |= strcmp(argv[i], "--") == 0;
        for (size_t row = 0; i > 0 && !is_end && row < G_N_ELEMENTS(rows); row++)
            if (is_optional(row) && g_str_has_prefix(argv[i], "--") &&
                strcmp(argv[i] + 2, rows[row].long_name) == 0)
                words[i] = rows[row].bare;
    }
    return words;
}

bool
uprof_options_add_symbols(const UprofOptions *options, UprofSym *sym, GError **error)
{
    for (guint i = 0; i < options->symbols->len; i++) {
        const UprofSymbolFile *file = g_ptr_array_index(options->symbols, i);
        if (!uprof_sym_add_file_at(sym, file->path, file->is_moved ? &file->base : NULL, true,
                                   error))
            return false;
    }
    return true;
}

UprofSymConfig
uprof_options_sym_config(const UprofOptions *options)
{
    return (UprofSymConfig){
        .debug_folders = (const char *const *)options->debug_folders->pdata,
        .sysroots = (const char *const *)options->sysroots->pdata,
        .raw_names = options->no_demangle,
        .lines = options->lines,
    };
}

UprofOptions *
uprof_options_parse(int argc, const char **argv, int *code)
{
    struct poptOption table[G_N_ELEMENTS(rows) + 1] = { 0 };
    g_autofree const char **words = complete_words(argc, argv);
    bool given[OPTION_HELP + 1] = { false };
    g_autoptr(UprofOptions) options = new_options();
    int id;

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
        table[i] = (struct poptOption){
            .longName = rows[i].long_name,
            .shortName = rows[i].short_name,
            .argInfo = rows[i].argument ? POPT_ARG_STRING : POPT_ARG_NONE,
            .val = rows[i].id,
        };
    __attribute__((cleanup(free_context))) poptContext context =
        poptGetContext(NULL, argc, words, table, 0);

    *code = UPROF_EXIT_USAGE;
    while ((id = poptGetNextOpt(context)) > 0) {
        g_autofree char *value = NULL;
        char *argument = poptGetOptArg(context);
        if (id == OPTION_HELP || id == OPTION_VERSION) {
            if (id == OPTION_HELP)
                print_help();
            else
                printf("virt-uprof %s\n", UPROF_VERSION);
            *code = fflush(stdout) == 0 ? UPROF_EXIT_OK : UPROF_EXIT_FAILED;
            return NULL;
        }
        value = g_strdup(argument ? argument : "");
        free(argument);
        given[id] = true;
        if (!take_option(options, (OptionId)id, value))
            return NULL;
    }
    options->given_depth = given[OPTION_MAX_DEPTH];
    if (id < -1) {
        g_autofree char *quoted = uprof_text_quote(poptBadOption(context, POPT_BADOPTION_NOALIAS));
        fail_usage("%s: %s", quoted, poptStrerror(id));
        return NULL;
    }
    take_words(options, context);
    options->is_top = options->command->bit & TOP;
    if (!check_belonging(options, given) || !check_outputs(options) || !check_words(options))
        return NULL;
    return g_steal_pointer(&options);
}
