/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * options.c - the table of options, and the rules for combinations of options
 *
 * popt gets every value as text, because popt's own integers accept "-5" as a rate and read "010"
 * as 8. popt does not read its configuration files, because a line in ~/.popt can run programs.
 */
#include "options-priv.h"

#include "uprof/domid.h"
#include "exit-priv.h"
#include "uprof/clock.h"
#include "uprof/number-text.h"
#include "uprof/output-request.h"
#include "uprof/scan.h"
#include "uprof/symbol-cache.h"
#include "uprof/text.h"
#include "uprof/time-text.h"
#include "uprof/watch-domains.h"
#include "uprof/word-distance.h"

#include <popt.h>
#include <stdio.h>
#include <string.h>

enum {
    ROUNDS_MAX = 1000 * 1000,
    SAMPLES_MAX = 1000 * 1000 * 1000,
    ROWS_MAX = 1000 * 1000,
};

#define DRAWING_MESSAGE "'%s' writes pictures (.svg), and its table to stdout"

/* Sets of commands, for the table of options. */
enum {
    RECORD = UPROF_COMMAND_RECORD,
    LIST = UPROF_COMMAND_LIST,
    DUMP = UPROF_COMMAND_DUMP,
    CHECK = UPROF_COMMAND_CHECK,
    REPORT = UPROF_COMMAND_REPORT,
    DIFF = UPROF_COMMAND_DIFF,
    TOP = UPROF_COMMAND_TOP,
    COLLECT = UPROF_COMMAND_COLLECT,
    PRUNE = UPROF_COMMAND_PRUNE,
    SUMMARY = UPROF_COMMAND_SUMMARY,
    METADATA = UPROF_COMMAND_ENABLE | UPROF_COMMAND_DISABLE | UPROF_COMMAND_CONFIGURE,
    WATCH = UPROF_COMMAND_WATCH,
    HISTORY = UPROF_COMMAND_HISTORY,
    PS = UPROF_COMMAND_PS,
    NAMING = RECORD | WATCH, /* commands that name the files of each domain */
    LIVE = RECORD | DUMP | CHECK | TOP | WATCH,
    COPY = UPROF_COMMAND_SYMBOLS,
    OPENING = LIVE | UPROF_COMMAND_DMESG | PS | COPY, /* commands that open guests */
    FILES = REPORT | DIFF,
    DRAWING = DIFF | HISTORY, /* write pictures alone */
    PUSH = UPROF_COMMAND_PUSH,
    STORED = REPORT | DIFF | PRUNE | SUMMARY | HISTORY | PUSH,
    ALL = OPENING | LIST | FILES | COLLECT | METADATA | STORED,
};

typedef struct _Option Option;

/* Checks @value and stores it in @options. Returns: false after a message if @value is bad */
typedef bool (*TakeFunc)(const Option *option, UprofOptions *options, const char *value);

/*
 * A row of the table. A row without help is another spelling of the row above it, and has only
 * names.
 */
struct _Option {
    const char *long_name;
    char short_name;      /* '\0' if the option has none */
    unsigned commands;    /* bits of the commands that take the option */
    const char *argument; /* NULL: none; "[=X]": optional, and must follow a "=" */
    const char *help;
    TakeFunc take;
    size_t member;     /* the offset in UprofOptions of the member that @take sets */
    size_t given;      /* the offset of a bool that says that the option was given; 0: none */
    unsigned min, max; /* the range of numbers */
    /* The values for completion, as in UprofOptionInfo; take_choice() allows no others. */
    const char *choices;
    const char *form;    /* the form of a good value, for messages */
    const char *heading; /* (nullable): in --help, of this row and the rows after it */
    bool (*parse)(const char *text, uint64_t *value); /* for take_value() */
};

/* ---- Usage errors ---- */

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
fail_value(const Option *option, const char *value, const char *form)
{
    g_autofree char *quoted = uprof_text_quote(value);

    return fail_usage("--%s '%s' is not %s", option->long_name, quoted, form);
}

/* ---- Values of options ---- */

static bool
take_nothing(const Option *option, UprofOptions *options, const char *value)
{
    return true;
}

static bool
take_flag(const Option *option, UprofOptions *options, const char *value)
{
    G_STRUCT_MEMBER(bool, options, option->member) = true;
    return true;
}

static bool
take_text(const Option *option, UprofOptions *options, const char *value)
{
    char **member = G_STRUCT_MEMBER_P(options, option->member);

    g_free(*member);
    *member = g_strdup(value);
    return true;
}

static bool
take_path(const Option *option, UprofOptions *options, const char *value)
{
    return take_text(option, options, value) &&
           (value[0] != '\0' || fail_usage("--%s is empty", option->long_name));
}

static bool
parse_number(const Option *option, const char *value, unsigned *number)
{
    uint64_t found;
    g_autofree char *form = g_strdup_printf("%u to %u", option->min, option->max);

    if (!uprof_slice_to_uint((UprofSlice){ value, strlen(value) }, 10, option->min, option->max,
                             &found))
        return fail_value(option, value, form);
    *number = (unsigned)found;
    return true;
}

static bool
take_number(const Option *option, UprofOptions *options, const char *value)
{
    return parse_number(option, value, G_STRUCT_MEMBER_P(options, option->member));
}

static bool
take_value(const Option *option, UprofOptions *options, const char *value)
{
    return option->parse(value, G_STRUCT_MEMBER_P(options, option->member)) ||
           fail_value(option, value, option->form);
}

static bool
take_max_pause(const Option *option, UprofOptions *options, const char *value)
{
    uint64_t *pause_ns = G_STRUCT_MEMBER_P(options, option->member);

    return (uprof_settings_parse_duration(value, pause_ns) && *pause_ns > 0 &&
            *pause_ns <= UPROF_PAUSE_MAX_MS * UPROF_NS_PER_MS) ||
           fail_value(option, value, option->form);
}

static bool
take_wait(const Option *option, UprofOptions *options, const char *value)
{
    return value[0] == '\0' || take_value(option, options, value);
}

static bool
take_vcpus(const Option *option, UprofOptions *options, const char *value)
{
    return uprof_settings_parse_vcpus(value, &options->settings.vcpus) ||
           fail_value(option, value, option->form);
}

static bool
take_idle(const Option *option, UprofOptions *options, const char *value)
{
    options->settings.idle_stacks = strcmp(value, "stack") == 0;
    return options->settings.idle_stacks || value[0] == '\0' ||
           fail_value(option, value, option->form);
}

static bool
check_choice(const Option *option, const char *value)
{
    g_auto(GStrv) choices = g_strsplit(option->choices, " ", -1);

    return g_strv_contains((const char *const *)choices, value) ||
           fail_value(option, value, option->form);
}

/* Sets a member of type const char * to an interned string, which is never freed. */
static bool
take_choice(const Option *option, UprofOptions *options, const char *value)
{
    G_STRUCT_MEMBER(const char *, options, option->member) = g_intern_string(value);
    return check_choice(option, value);
}

/* perf calls the method of unwind tables "dwarf". */
static bool
take_unwind(const Option *option, UprofOptions *options, const char *value)
{
    return take_choice(option, options, strcmp(value, "dwarf") == 0 ? "cfi" : value);
}

static bool
take_by(const Option *option, UprofOptions *options, const char *value)
{
    options->by = uprof_rows_by_find(value);
    options->settings.cgroups |= options->by == UPROF_BY_CGROUP;
    return check_choice(option, value);
}

static bool
take_format(const Option *option, UprofOptions *options, const char *value)
{
    options->format = uprof_format_by_name(value);
    if (options->format)
        return true;
    g_autofree char *names = uprof_format_names();
    g_autofree char *form =
        g_strdup_printf("one of: %s%s", names,
                        strpbrk(value, "./") ? " (-f is the format, and -o names the file)" : "");
    return fail_value(option, value, form);
}

static bool
take_regex(const Option *option, UprofOptions *options, const char *value)
{
    GRegex **regex = G_STRUCT_MEMBER_P(options, option->member);

    g_clear_pointer(regex, g_regex_unref);
    if (g_utf8_validate(value, -1, NULL))
        *regex = g_regex_new(value, G_REGEX_OPTIMIZE, 0, NULL);
    return *regex || fail_value(option, value, option->form);
}

/* @value: ""; or letters */
static bool
take_states(const Option *option, UprofOptions *options, const char *value)
{
    return (value[0] == '\0' && option->argument[0] == '[') ||
           uprof_task_choice_set_states(&options->tasks, value) ||
           fail_value(option, value, option->form);
}

static bool
take_process(const Option *option, UprofOptions *options, const char *value)
{
    return uprof_task_choice_set_pattern(&options->tasks, value) ||
           fail_value(option, value, option->form);
}

static bool
take_moment(const Option *option, UprofOptions *options, const char *value)
{
    return uprof_time_parse(value, uprof_clock_utc_s(),
                            G_STRUCT_MEMBER_P(options, option->member)) ||
           fail_value(option, value, option->form);
}

static bool
take_item(const Option *option, UprofOptions *options, const char *value)
{
    g_ptr_array_add(G_STRUCT_MEMBER(GPtrArray *, options, option->member), g_strdup(value));
    return true;
}

static bool
take_uri(const Option *option, UprofOptions *options, const char *value)
{
    take_item(option, options, value);
    options->uri = options->uris->pdata[options->uris->len - 1];
    return true;
}

static bool
add_wanted(const Option *option, UprofOptions *options, const char *path, const UprofFormat *format)
{
    UprofWanted *wanted = g_new0(UprofWanted, 1);

    wanted->path = g_strdup(path);
    wanted->format = format;
    g_ptr_array_add(options->outputs, wanted);
    return path[0] != '\0' || fail_usage("--%s needs a file name", option->long_name);
}

static bool
take_output(const Option *option, UprofOptions *options, const char *value)
{
    return add_wanted(option, options, value, NULL);
}

static bool
take_capture(const Option *option, UprofOptions *options, const char *value)
{
    return add_wanted(option, options, value, uprof_format_by_name("capture"));
}

/* @value: "", or a destination */
static bool
take_push(const Option *option, UprofOptions *options, const char *value)
{
    options->push = true;
    return value[0] == '\0' || take_item(option, options, value);
}

/* Adds a folder in front of the NULL at the end of the list. */
static bool
take_folder(const Option *option, UprofOptions *options, const char *value)
{
    GPtrArray *folders = G_STRUCT_MEMBER(GPtrArray *, options, option->member);

    g_ptr_array_insert(folders, (gint)folders->len - 1, g_strdup(value));
    return g_file_test(value, G_FILE_TEST_IS_DIR) || fail_value(option, value, option->form);
}

/* @value: FILE or FILE@BASE. If a file with the name @value exists, @value is a FILE. */
static bool
take_symbols(const Option *option, UprofOptions *options, const char *value)
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
           fail_value(option, value, option->form);
}

static bool
parse_after(const char *text, uint64_t *value)
{
    return uprof_settings_parse_duration(text, value) &&
           *value <= UPROF_WATCH_KEEP_S_MAX * UPROF_NS_PER_S;
}

static bool
take_rule(const Option *option, UprofOptions *options, const char *value)
{
    g_autoptr(GError) error = NULL;
    UprofWatchRule *rule = uprof_watch_rule_new(value, &error);

    if (rule)
        g_ptr_array_add(options->rules, rule);
    return rule ? options->rules->len <= UPROF_WATCH_RULES_MAX ||
                      fail_usage("more than %d times --when", UPROF_WATCH_RULES_MAX)
                : fail_usage("%s", error->message);
}

static bool
parse_keep(const char *text, uint64_t *value)
{
    return parse_after(text, value) && *value >= UPROF_WATCH_KEEP_S_MIN * UPROF_NS_PER_S;
}

/* Adds the domain to the words, so that all domains keep the order of the command line. */
static bool
take_domid(const Option *option, UprofOptions *options, const char *value)
{
    unsigned domid;

    if (!parse_number(option, value, &domid))
        return false;
    g_ptr_array_add(options->words, uprof_domid_word(domid));
    return true;
}

/* ---- The table ---- */

#define MEMBER(name) .member = G_STRUCT_OFFSET(UprofOptions, name)
#define GIVEN(name) .given = G_STRUCT_OFFSET(UprofOptions, name)
#define DAYS "today yesterday"
#define STATES_FORM "letters of states, of " UPROF_TASK_STATES

/* clang-format off */
static const Option table[] = {
    { "connect", 'c', OPENING | LIST | COLLECT | METADATA, "URI",
      "libvirt URI (default: LIBVIRT_DEFAULT_URI); collect takes several",
      take_uri, MEMBER(uris), .choices = "qemu:///system qemu:///session xen:///system test:///default",
      .heading = "What to sample" },
    { "all", '\0', RECORD | DUMP | PS | UPROF_COMMAND_DMESG | TOP | LIST | WATCH | COPY, NULL,
      "use all running domains; list shows all without this option",
      take_flag, MEMBER(all) },
    { "domid", '\0', OPENING, "N",
      "use a domain by its number in Xen, even if xl made it (repeatable)",
      take_domid, .min = 0, .max = UPROF_DOMID_MAX },
    { "wait", '\0', RECORD, "[=T]",
      "wait for a domain to start (at most T), then sample it",
      take_wait, MEMBER(wait_ns), GIVEN(wait),
      .parse = uprof_settings_parse_duration, .form = UPROF_DURATION_FORM },
    { "vcpu", '\0', LIVE, "LIST",
      "vCPUs to sample, such as 0,2-3 (default: all)",
      take_vcpus, .form = UPROF_VCPUS_FORM },
    { "rate", 'F', RECORD | TOP | COLLECT | METADATA | WATCH, "HZ",
      "samples per second of each vCPU, 1 to 20000 (default: 99; watch: 49)",
      take_value, MEMBER(settings.rate_mhz), GIVEN(settings.given.rate),
      .parse = uprof_settings_parse_rate, .form = UPROF_RATE_FORM,
      .heading = "How often and how" },
    { .long_name = "frequency" },
    { "duration", 'd', RECORD | COLLECT | METADATA, "T",
      "time: 10, 500ms, 1.5h or 2d; 0: until Ctrl-C (10s; periodic 20s)",
      take_value, MEMBER(settings.duration_ns), GIVEN(settings.given.duration),
      .parse = uprof_settings_parse_duration, .form = UPROF_DURATION_FORM },
    { "samples", '\0', RECORD, "N",
      "end after N samples of running vCPUs, or after -d if it is given",
      take_number, MEMBER(samples), .min = 1, .max = SAMPLES_MAX },
    { "budget", '\0', RECORD | CHECK | TOP | COLLECT | METADATA | WATCH, "PCT",
      "percent of time to hold a vCPU (5; monitor, xen 10; periodic 1; watch 0.5)",
      take_value, MEMBER(settings.budget_ppm), GIVEN(settings.given.budget),
      .parse = uprof_settings_parse_budget, .form = UPROF_BUDGET_FORM },
    { "max-pause", '\0', OPENING, "T",
      "stop copying when a hold is as old as T, up to 1s (default: 50ms)",
      take_max_pause, MEMBER(settings.max_pause_ns), GIVEN(given_max_pause),
      .form = "a duration such as 50ms, up to 1s; with --pause up to 10s" },
    { "pause", '\0', DUMP | PS, NULL,
      "hold the whole guest while its tasks are read, up to --max-pause (or 1s)",
      take_flag, MEMBER(pauses) },
    { "no-pause", '\0', OPENING, NULL,
      "KVM: read without stopping the guest; changed stacks count as truncated",
      take_flag, MEMBER(settings.no_pause) },
    { "access", '\0', OPENING | COLLECT, "METHOD",
      "how to read the guest: auto, direct, monitor or xen (default: auto)",
      take_choice, MEMBER(access), .choices = "auto direct monitor xen",
      .form = "auto, direct, monitor or xen" },
    { "unwind", '\0', LIVE | FILES | COLLECT | METADATA, "METHOD",
      "how to find callers: auto, cfi or fp (default: auto)",
      take_unwind, MEMBER(settings.unwind), GIVEN(settings.given.unwind),
      .choices = "auto cfi fp", .form = "auto, cfi or fp" },
    { "heal", '\0', CHECK, NULL,
      "resume guests that a dead run left stopped",
      take_nothing }, /* every command that holds guests does this first */
    { "output", 'o', NAMING | FILES | HISTORY, "FILE",
      "write to FILE (repeatable); %d: domain, %t: time, %u: UUID; -: stdout",
      take_output, .choices = UPROF_COMPLETE_FILES,
      .heading = "Output" },
    { "format", 'f', NAMING | FILES, "NAME",
      "folded[.gz], svg, pprof, speedscope, perf, meta, capture (default: by FILE)",
      take_format, .choices = UPROF_COMPLETE_FORMATS },
    { "capture", '\0', RECORD, "FILE", "save the raw samples to FILE, for report",
      take_capture, .choices = UPROF_COMPLETE_FILES },
    { "push", '\0', RECORD | CHECK, "[=TARGET]",
      "send the run to a destination (default: all); check: only try them",
      take_push, MEMBER(targets) },
    { "rows", 'n', RECORD | FILES | TOP, "N",
      "rows of a table (default: 15; record: 10)",
      take_number, MEMBER(rows), .min = 1, .max = ROWS_MAX },
    { "per-vcpu", '\0', NAMING | REPORT, NULL, "show each vCPU separately",
      take_flag, MEMBER(settings.per_vcpu) },
    { "pids", '\0', NAMING | REPORT | TOP | COLLECT, NULL,
      "show the process ids of a Linux guest, as in nginx-812",
      take_flag, MEMBER(settings.pids) },
    { "cgroups", '\0', NAMING | REPORT | TOP | COLLECT, NULL,
      "show the service or the container of each process of a Linux guest",
      take_flag, MEMBER(settings.cgroups) },
    { "native", '\0', NAMING | REPORT | TOP | COLLECT, NULL,
      "show the interpreter's own frames beside functions of Python",
      take_flag, MEMBER(settings.native) },
    { "idle", '\0', NAMING | REPORT, "[=stack]",
      "show halted vCPUs, or their last stack (both are always counted)",
      take_idle, GIVEN(settings.idle), .choices = "stack", .form = "'stack'" },
    { "waits", '\0', RECORD, NULL,
      "also count where a Linux guest's tasks wait: FILE.waits.svg or FILE.pb.gz",
      take_flag, MEMBER(settings.waits) },
    { "lines", '\0', (LIVE & ~WATCH) | FILES, NULL,
      "show the source file and line of each frame (DWARF, Go, Python)",
      take_flag, MEMBER(lines) },
    { "no-demangle", '\0', LIVE | FILES, NULL,
      "show names of C++, Rust, D and OCaml as the symbol file spells them",
      take_flag, MEMBER(no_demangle) },
    { "max-depth", '\0', LIVE | FILES, "N",
      "frames of a stack, 1 to 1024 (default: 127)",
      take_number, MEMBER(settings.max_depth), GIVEN(given_depth),
      .min = 1, .max = UPROF_DEPTH_MAX },
    { "json", '\0', ALL & ~(TOP | METADATA | PRUNE | SUMMARY | WATCH | COPY), NULL,
      "print JSON; with record: the facts of the run, on stdout",
      take_flag, MEMBER(json) },
    { "symbols", 's', LIVE | FILES | COLLECT | METADATA, "FILE[@BASE]",
      "ELF file, or text as nm, System.map or kallsyms (repeatable)",
      take_symbols, .choices = UPROF_COMPLETE_FILES,
      .form = "FILE, or FILE@BASE with BASE in hexadecimal",
      .heading = "Symbols" },
    { "sysroot", '\0', LIVE | FILES | COPY, "DIR",
      "folder with the files of a Linux guest (repeatable)",
      take_folder, MEMBER(sysroots), .choices = UPROF_COMPLETE_FOLDERS, .form = "a folder" },
    { "debug-dir", '\0', LIVE | FILES | COPY, "DIR",
      "folder of separate debug files (repeatable; default: /usr/lib/debug)",
      take_folder, MEMBER(debug_folders), .choices = UPROF_COMPLETE_FOLDERS, .form = "a folder" },
    { "memory", '\0', LIVE | FILES | COLLECT, "MIB",
      "memory for the symbols of a domain, 16 to 65536 (default: 256)",
      take_number, MEMBER(memory_mib),
      .min = UPROF_CONFIG_MEMORY_MIN, .max = UPROF_CONFIG_MEMORY_MAX },
    { "focus", '\0', REPORT, "NAME",
      "show the callers and callees of the function NAME",
      take_text, MEMBER(focus),
      .heading = "Which part" },
    { "annotate", '\0', REPORT, "NAME",
      "show the instructions and lines of the function NAME, from a capture",
      take_text, MEMBER(annotate) },
    { "include", '\0', FILES, "RE",
      "keep only stacks with a name that matches RE",
      take_regex, MEMBER(include), .form = "a regular expression" },
    { "exclude", '\0', FILES, "RE",
      "drop stacks with a name that matches RE",
      take_regex, MEMBER(exclude), .form = "a regular expression" },
    { "since", '\0', REPORT | HISTORY | PUSH, "T",
      "use stored profiles since T (UTC): today, 2026-11-20T09:15, 3d or 12h",
      take_moment, MEMBER(since_s), GIVEN(is_stored), .choices = DAYS, .form = UPROF_TIME_FORMS },
    { "until", '\0', REPORT | HISTORY, "T",
      "use stored profiles of runs that began before T",
      take_moment, MEMBER(until_s), .choices = DAYS, .form = UPROF_TIME_FORMS },
    { "by", '\0', TOP | REPORT, "KEY",
      "a row per function or vcpu, or per process or cgroup of a Linux guest",
      take_by, .choices = "function vcpu process cgroup",
      .form = "function, vcpu, process or cgroup" },
    { "sort", '\0', TOP | PS, "KEY",
      "sort by self or total (default: self); ps: by pid, cpu or wait (pid)",
      take_choice, MEMBER(sort), .choices = "self total pid cpu wait",
      .form = "self or total; for ps: pid, cpu or wait" },
    { "tasks", '\0', DUMP, "[=STATES]",
      "show the stacks of Linux tasks that do not run, or only of those in STATES",
      take_states, GIVEN(shows_tasks), .choices = "D S R T", .form = STATES_FORM },
    { "blocked", '\0', DUMP, NULL,
      "as --tasks; tasks that cannot be interrupted first, longest wait first",
      take_flag, MEMBER(is_blocked) },
    { "state", '\0', PS, "STATES",
      "show only tasks in these states, such as D, or DR",
      take_states, .choices = "D S R T", .form = STATES_FORM },
    { "process", '\0', DUMP | PS, "RE",
      "show only tasks whose name matches RE",
      take_process, .form = "a regular expression" },
    { "batch", '\0', TOP, NULL,
      "print plain text, for scripts",
      take_flag, MEMBER(batch) },
    { "rounds", '\0', TOP, "N",
      "stop after N screens (one a second)",
      take_number, MEMBER(rounds), .min = 1, .max = ROUNDS_MAX },
    { "when", '\0', WATCH, "RULE",
      "a trigger: 'busy > 80 %', 'function NAME > 30 % for 5s', crash (repeatable)",
      take_rule,
      .heading = "When to write what is kept" },
    { "keep", '\0', WATCH, "T",
      "how much time before a trigger is written, 10s to 1h (default: 5m)",
      take_value, MEMBER(keep_ns), .parse = parse_keep, .form = UPROF_WATCH_KEEP_FORM },
    { "after", '\0', WATCH, "T",
      "how much time after a trigger is written (default: 10s)",
      take_value, MEMBER(after_ns), .parse = parse_after, .form = "a time of up to 1h" },
    { "rest", '\0', WATCH, "T",
      "the least time between two triggers of a domain (default: 10m)",
      take_value, MEMBER(rest_ns), .parse = parse_after, .form = "a time of up to 1h" },
    { "keep-memory", '\0', WATCH, "MIB",
      "memory for the kept samples of a domain, 1 to 1024 (default: 16)",
      take_number, MEMBER(keep_mib), .min = 1, .max = UPROF_WATCH_MIB_MAX },
    { "now", '\0', WATCH, NULL,
      "ask the watch that is running to write what it keeps of DOMAIN",
      take_flag, MEMBER(now) },
    { "config", '\0', RECORD | CHECK | LIST | COLLECT | METADATA | STORED | WATCH, "FILE",
      "configuration (default: " UPROF_CONFIG_FILE ")",
      take_path, MEMBER(config_path), .choices = UPROF_COMPLETE_FILES,
      .heading = "Periodic runs" },
    { "store", '\0', LIST | COLLECT | STORED | WATCH, "DIR",
      "folder of stored profiles (default: as configured)",
      take_path, MEMBER(store), .choices = UPROF_COMPLETE_FOLDERS },
    { "to", '\0', PUSH, "TARGET",
      "a destination of the configuration, or a URL (repeatable; default: all)",
      take_item, MEMBER(targets) },
    { "spread", '\0', PUSH, "T",
      "wait for a random time of up to T first, so that hosts do not send together",
      take_value, MEMBER(spread_ns), .parse = parse_after, .form = "a time of up to 1h" },
    { "dry-run", '\0', COLLECT | PRUNE | PUSH, NULL,
      "show what would be done, and change nothing",
      take_flag, MEMBER(dry_run) },
    { "quiet", 'q', ALL, NULL,
      "print errors only",
      take_flag, MEMBER(quiet),
      .heading = "General" },
    { "verbose", 'v', ALL, NULL,
      "print more, such as why stacks end",
      take_flag, MEMBER(verbose) },
    { "version", 'V', ALL, NULL,
      "print the version",
      take_nothing },
    { "help", 'h', ALL, NULL,
      "print this text",
      take_nothing },
    { .short_name = '?' },
};
/* clang-format on */

/* Returns: the option that row @i spells */
static const Option *
find_option(size_t i)
{
    while (!table[i].help)
        i--;
    return &table[i];
}

static bool
has_optional_argument(const Option *option)
{
    return option->argument && option->argument[0] == '[';
}

bool
uprof_options_describe(size_t i, UprofOptionInfo *info)
{
    if (i >= G_N_ELEMENTS(table))
        return false;
    const Option *option = find_option(i);
    *info = (UprofOptionInfo){
        .long_name = table[i].long_name,
        .short_name = table[i].short_name,
        .commands = option->commands,
        .argument = option->argument,
        .is_optional = has_optional_argument(option),
        .choices = option->choices,
    };
    return true;
}

static void
print_option(const Option *option)
{
    g_autofree char *spelling = g_strdup_printf(
        "%s%c%s --%s%s%s", option->short_name ? "-" : " ",
        option->short_name ? option->short_name : ' ', option->short_name ? "," : " ",
        option->long_name, option->argument && !has_optional_argument(option) ? "=" : "",
        option->argument ? option->argument : "");

    printf("  %-22s %s\n", spelling, option->help);
}

static void
print_options(const UprofCommand *command)
{
    const char *heading = NULL;

    for (size_t i = 0; i < G_N_ELEMENTS(table); i++) {
        const Option *option = &table[i];
        if (option->heading)
            heading = option->heading;
        if (!option->help || !(option->commands & command->bit))
            continue;
        if (heading)
            printf("\n%s:\n", heading);
        heading = NULL;
        print_option(option);
    }
}

static void
print_exit_codes(void)
{
    printf("\nExit codes:\n");
    for (int code = 0; code <= UPROF_EXIT_LOCKED; code++)
        if (uprof_exit_text(code))
            printf("  %-3d %s\n", code, uprof_exit_text(code));
}

/* @command: (nullable): %NULL: the help of the program. Returns: an exit code */
static int
print_help(const UprofCommand *commands, const UprofCommand *command)
{
    if (command) {
        printf("virt-uprof %s [OPTION...] %s\n%s\n", command->name, command->arguments,
               command->summary);
        print_options(command);
        return fflush(stdout) == 0 ? UPROF_EXIT_OK : UPROF_EXIT_FAILED;
    }
    printf("virt-uprof [COMMAND] [OPTION...] DOMAIN...\n"
           "Samples the call stacks of a running virtual machine from its host.\n\nCommands:\n");
    for (command = commands; command->name; command++)
        printf("  %-9s %-12s %s\n", command->name, command->arguments, command->summary);
    printf("\nOptions of a command: virt-uprof help COMMAND\n"
           "Options of record, the default command:\n");
    print_options(commands);
    print_exit_codes();
    return fflush(stdout) == 0 ? UPROF_EXIT_OK : UPROF_EXIT_FAILED;
}

/* Returns: (nullable): the command called @name */
static const UprofCommand *
find_command(const UprofCommand *commands, const char *name)
{
    for (const UprofCommand *command = commands; command->name; command++)
        if (strcmp(command->name, name) == 0)
            return command;
    return NULL;
}

/* Returns: (nullable): the command whose name @word almost is */
static const char *
suggest_command(const UprofCommand *commands, const char *word)
{
    unsigned nearest = UPROF_WORD_FAR;
    const char *meant = NULL;

    for (const UprofCommand *command = commands; command->name; command++)
        if (uprof_word_is_closer(word, command->name, &nearest))
            meant = command->name;
    return meant;
}

int
uprof_options_help_run(UprofOptions *options)
{
    const char *name = options->words->len > 0 ? g_ptr_array_index(options->words, 0) : NULL;
    const UprofCommand *command = name ? find_command(options->commands, name) : NULL;
    const char *meant = name ? suggest_command(options->commands, name) : NULL;

    if (!name || command)
        return print_help(options->commands, command);
    g_autofree char *quoted = uprof_text_quote(name);
    fail_usage("no command '%s'%s%s%s", quoted, meant ? " (did you mean '" : "", meant ? meant : "",
               meant ? "'?)" : "");
    return UPROF_EXIT_USAGE;
}

/* ---- Memory ---- */

/* poptFreeContext() takes the context; the cleanup attribute passes a pointer to it. */
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
    g_ptr_array_unref(options->uris);
    g_free(options->focus);
    g_free(options->annotate);
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
    g_ptr_array_unref(options->child);
    g_ptr_array_unref(options->rules);
    g_ptr_array_unref(options->targets);
    g_free(options);
}

static UprofOptions *
new_options(void)
{
    UprofOptions *options = g_new0(UprofOptions, 1);

    options->access = "auto";
    options->uris = g_ptr_array_new_with_free_func(g_free);
    options->until_s = INT64_MAX;
    options->outputs = g_ptr_array_new_with_free_func(free_wanted);
    options->symbols = g_ptr_array_new_with_free_func(free_symbols);
    options->debug_folders = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(options->debug_folders, NULL);
    options->sysroots = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(options->sysroots, NULL);
    options->words = g_ptr_array_new_with_free_func(g_free);
    options->child = g_ptr_array_new_with_free_func(g_free);
    options->rules = g_ptr_array_new_with_free_func((GDestroyNotify)uprof_watch_rule_free);
    options->targets = g_ptr_array_new_with_free_func(g_free);
    options->keep_ns = UPROF_WATCH_KEEP_S * UPROF_NS_PER_S;
    options->after_ns = UPROF_WATCH_AFTER_S * UPROF_NS_PER_S;
    options->rest_ns = UPROF_WATCH_REST_S * UPROF_NS_PER_S;
    options->keep_mib = UPROF_WATCH_MIB;
    uprof_settings_init(&options->settings);
    return options;
}

/* ---- Rules for combinations of options ---- */

/* Returns: the option of the command that does what @option does elsewhere */
static const char *
suggest_other(const UprofOptions *options, const Option *option)
{
    return options->command->bit & TOP && strcmp(option->long_name, "duration") == 0
               ? " (did you mean --rounds?)"
               : "";
}

static bool
check_commands(const UprofOptions *options, const bool *given)
{
    for (size_t i = 0; i < G_N_ELEMENTS(table); i++)
        if (given[i] && !(table[i].commands & options->command->bit))
            return fail_usage("--%s does not belong to '%s'%s", table[i].long_name,
                              options->command->name, suggest_other(options, &table[i]));
    return true;
}

static bool
fail_capture(void)
{
    return fail_usage("a capture is written by 'record', to a file");
}

/* Says what a name without a known ending may have meant. */
static bool
fail_ending(const UprofOptions *options, const char *path)
{
    g_autofree char *quoted = uprof_text_quote(path);
    g_autofree char *endings = uprof_format_endings();

    if (g_file_test(path, G_FILE_TEST_IS_DIR))
        return fail_usage("'%s' is a folder; for a file in it: -o '%s/%s.svg'", quoted, quoted,
                          options->command->bit & NAMING ? "%d" : "NAME");
    if (options->command->bit & HISTORY)
        return fail_usage(DRAWING_MESSAGE, options->command->name);
    if (g_str_has_suffix(path, ".html"))
        return fail_usage("'%s': there is no HTML; .svg is the interactive picture", quoted);
    if (g_str_has_suffix(path, ".pb"))
        return fail_usage("'%s': pprof is written compressed, as .pb.gz", quoted);
    uprof_say("virt-uprof: cannot tell the format of '%s'; use -f or one of %s", quoted, endings);
    return false;
}

/* Sets the format of an output, from the ending of its path, or from --format. */
static bool
choose_format(const UprofOptions *options, UprofWanted *wanted)
{
    const bool draws = options->command->bit & DRAWING;
    const UprofFormat *by_path = uprof_format_by_path(wanted->path);
    g_autofree char *quoted = uprof_text_quote(wanted->path);

    if (!wanted->format && options->format && by_path && by_path != options->format)
        return fail_usage("'%s' ends in %s, and -f says %s: leave out -f, or rename the file",
                          quoted, strrchr(quoted, '.'), options->format->name);
    if (!wanted->format)
        wanted->format = options->format ? options->format : by_path;
    if (!wanted->format && strcmp(wanted->path, "-") == 0)
        wanted->format = draws ? &uprof_format_svg : &uprof_format_folded;
    return wanted->format || fail_ending(options, wanted->path);
}

/* Only record knows domain and time of its files. Elsewhere "%%" alone has a meaning. */
static bool
check_letters(const UprofOptions *options, UprofWanted *wanted)
{
    const bool is_record = options->command->bit & NAMING;
    g_autofree char *quoted = uprof_text_quote(wanted->path);
    g_autoptr(GString) plain = g_string_new(NULL);

    for (const char *at = wanted->path; *at; at++) {
        g_string_append_c(plain, *at);
        if (*at != '%' || !at[1])
            continue;
        at++;
        if (!strchr("dtu%", *at))
            return fail_usage("-o '%s': of the letters after %%, only %%d, %%t, %%u and %%%% have "
                              "a meaning",
                              quoted);
        if (*at != '%' && !is_record)
            return fail_usage(
                "%%%c has no meaning for '%s': give a plain file name instead of '%s'", *at,
                options->command->name, quoted);
    }
    if (!is_record) {
        g_free(wanted->path);
        wanted->path = g_strdup(plain->str);
    }
    return true;
}

static bool
check_twice(const UprofOptions *options, guint n)
{
    const char *path = ((const UprofWanted *)g_ptr_array_index(options->outputs, n))->path;

    for (guint i = 0; i < n; i++) {
        const UprofWanted *other = g_ptr_array_index(options->outputs, i);
        if (strcmp(path, "-") != 0 && strcmp(path, other->path) == 0) {
            g_autofree char *quoted = uprof_text_quote(path);
            return fail_usage("'%s' is named twice", quoted);
        }
    }
    return true;
}

static bool
check_output(const UprofOptions *options, const UprofWanted *wanted)
{
    const unsigned bit = options->command->bit;
    const bool is_stdout = strcmp(wanted->path, "-") == 0;

    if (is_stdout && options->json && bit & RECORD)
        return fail_usage("--json and '-o -' both write to stdout");
    if (wanted->format->is_capture && (is_stdout || !(bit & RECORD)))
        return fail_capture();
    if (options->json && bit & HISTORY)
        return fail_usage("with --json, 'history' writes no picture: leave out -o");
    if (is_stdout && bit & WATCH)
        return fail_usage("'watch' writes files, not to stdout");
    return true;
}

static bool
check_outputs(UprofOptions *options)
{
    const UprofFormat *format = options->format;
    unsigned n_stdout = 0, n_captures = 0;
    bool are_pictures = !format || format == &uprof_format_svg;

    if (format && format->is_capture &&
        (!(options->command->bit & RECORD) || options->outputs->len == 0))
        return fail_capture();
    for (guint i = 0; i < options->outputs->len; i++) {
        UprofWanted *wanted = g_ptr_array_index(options->outputs, i);
        if (!check_letters(options, wanted) || !check_twice(options, i) ||
            !choose_format(options, wanted) || !check_output(options, wanted))
            return false;
        n_stdout += strcmp(wanted->path, "-") == 0;
        n_captures += wanted->format->is_capture;
        are_pictures = are_pictures && wanted->format == &uprof_format_svg;
    }
    if (n_stdout > 1)
        return fail_usage("only one output can go to stdout");
    if (n_captures > 1)
        return fail_usage("a run writes only one capture");
    if (options->command->bit & DRAWING && !are_pictures)
        return fail_usage(DRAWING_MESSAGE, options->command->name);
    return true;
}

/* Refuses output names that would be the same for several domains. */
static bool
check_output_names(const UprofOptions *options)
{
    if (!(options->command->bit & NAMING) || (!options->all && options->words->len <= 1))
        return true;
    for (guint i = 0; i < options->outputs->len; i++) {
        const UprofWanted *wanted = g_ptr_array_index(options->outputs, i);
        if (strcmp(wanted->path, "-") != 0 && !uprof_output_request_names_domain(wanted->path))
            return fail_usage("several domains need %%d or %%u in -o");
    }
    return true;
}

static bool
check_words(const UprofOptions *options)
{
    const UprofCommand *command = options->command;
    const guint n = options->words->len;

    if (options->all && options->now)
        return fail_usage("--now needs a DOMAIN");
    if (options->all)
        return n == 0 || fail_usage("--all takes no domains");
    return (n == 0 && options->is_stored) || (n >= command->min_words && n <= command->max_words) ||
           fail_usage("%s", command->words_message);
}

static bool
check_times(const UprofOptions *options)
{
    const UprofSettings *settings = &options->settings;

    if (options->until_s != INT64_MAX && !options->is_stored)
        return fail_usage("--until needs --since");
    if (options->is_stored && options->until_s <= options->since_s)
        return fail_usage("--until is not after --since");
    if (options->command->bit & RECORD && settings->duration_ns > 0 &&
        settings->duration_ns < UINT64_C(1000) * UPROF_NS_PER_S / settings->rate_mhz) {
        g_autofree char *time = uprof_format_ns(settings->duration_ns);
        g_autofree char *hz = uprof_format_hz(settings->rate_mhz);
        return fail_usage("no sample fits into %s at %s Hz: use a longer -d or a higher -F", time,
                          hz);
    }
    if (options->command->bit & (COLLECT | METADATA) && settings->given.duration &&
        settings->duration_ns == 0)
        return fail_usage("'%s' needs a duration longer than 0", options->command->name);
    return true;
}

static bool
check_rows(const UprofOptions *options)
{
    if (options->by != UPROF_BY_FUNCTION && options->focus)
        return fail_usage("--focus is about a function: leave out --by");
    if (options->by != UPROF_BY_FUNCTION && g_strcmp0(options->sort, "self") == 0)
        return fail_usage("--sort self is about functions: leave out --by");
    return true;
}

static bool
check_tasks(const UprofOptions *options)
{
    const unsigned bit = options->command->bit;
    const bool is_of_functions =
        g_strcmp0(options->sort, "self") == 0 || g_strcmp0(options->sort, "total") == 0;

    if (options->sort && is_of_functions == (bit == PS))
        return fail_usage("--sort %s does not belong to '%s'", options->sort,
                          options->command->name);
    if (bit == DUMP && options->tasks.pattern[0] && !options->shows_tasks && !options->is_blocked)
        return fail_usage("--process needs --tasks or --blocked");
    return !options->pauses || bit != DUMP || options->shows_tasks || options->is_blocked ||
           fail_usage("--pause needs --tasks or --blocked");
}

static bool
check_annotate(const UprofOptions *options)
{
    if (!options->annotate)
        return true;
    if (options->focus || options->by != UPROF_BY_FUNCTION || options->settings.per_vcpu)
        return fail_usage("--annotate shows one function: leave out --focus, --by and --per-vcpu");
    if (options->include || options->exclude)
        return fail_usage("--annotate counts all samples: leave out --include and --exclude");
    return (options->words->len == 1 && !options->is_stored) ||
           fail_usage("--annotate needs one FILE");
}

static bool
check_access(const UprofOptions *options)
{
    return strcmp(options->access, "direct") != 0 || !options->settings.no_pause ||
           fail_usage("--access direct holds a vCPU for each sample: leave out --no-pause");
}

/* The hold of --pause may be longer than a hold for a sample. */
static bool
check_pause(UprofOptions *options)
{
    UprofSettings *settings = &options->settings;
    const uint64_t max_ns = UPROF_MAX_PAUSE_MAX_MS * UPROF_NS_PER_MS;
    const uint64_t default_ns = UPROF_PAUSE_DEFAULT_MS * UPROF_NS_PER_MS;

    if (!options->pauses)
        return settings->max_pause_ns <= max_ns || fail_usage("--max-pause above 1s needs --pause");
    if (settings->no_pause || strcmp(options->access, "direct") == 0)
        return fail_usage("--pause holds the whole guest: leave out %s",
                          settings->no_pause ? "--no-pause" : "--access direct");
    settings->pause_ns = options->given_max_pause ? settings->max_pause_ns : default_ns;
    settings->max_pause_ns = MIN(settings->max_pause_ns, max_ns);
    return true;
}

/* ---- Parsing ---- */

static void
add_words(GPtrArray *list, char **words, guint n)
{
    for (guint i = 0; i < n; i++)
        g_ptr_array_add(list, g_strdup(words[i]));
}

/* Takes the command, if the first word is a command. Returns: the number of words that it takes */
static guint
take_command(UprofOptions *options, const char *first)
{
    const UprofCommand *command = first ? find_command(options->commands, first) : NULL;

    options->command = command ? command : &options->commands[0];
    if (first && !command)
        options->command_meant = suggest_command(options->commands, first);
    return command ? 1 : 0;
}

/*
 * Takes the words. If record has domains in front of "--", what follows is a command to run;
 * otherwise these words are domains, up to another "--".
 *
 * @behind: the words behind "--"; empty if there is none
 */
static void
take_words(UprofOptions *options, poptContext context, char **behind)
{
    char **words = (char **)poptGetArgs(context);
    const guint n = words ? g_strv_length(words) : 0;
    const guint n_behind = g_strv_length(behind);
    const bool is_behind = n == 0;
    const guint n_taken = take_command(options, is_behind ? behind[0] : words[0]);
    const bool is_record = options->command->bit & RECORD;
    guint n_more = n_behind; /* words of @behind, unless they are a command to run */

    if (!is_behind)
        add_words(options->words, words + n_taken, n - n_taken);
    if (is_record && (options->words->len > 0 || options->all))
        n_more = 0;
    for (guint i = 0; is_record && i < n_more; i++)
        if (strcmp(behind[i], "--") == 0)
            n_more = i;
    const guint n_first = is_behind ? MIN(n_taken, n_more) : 0;
    add_words(options->words, behind + n_first, n_more - n_first);
    const guint n_skipped =
        n_more < n_behind && strcmp(behind[n_more], "--") == 0 ? n_more + 1 : n_more;
    add_words(options->child, behind + n_skipped, n_behind - n_skipped);
    if ((options->child->len > 0 || options->samples > 0) && !options->settings.given.duration)
        options->settings.duration_ns = 0; /* something else says how long */
    g_ptr_array_add(options->child, NULL);
}

/* Is @word an option with an optional argument, but without this argument? */
static bool
lacks_argument(const char *word)
{
    for (size_t i = 0; g_str_has_prefix(word, "--") && i < G_N_ELEMENTS(table); i++)
        if (has_optional_argument(&table[i]) && strcmp(word + 2, table[i].long_name) == 0)
            return true;
    return false;
}

/*
 * Changes "--wait" to "--wait=". If an optional argument is missing, popt would take the next word,
 * which is a domain.
 *
 * Returns: (transfer full): ends with NULL
 */
static GStrv
complete_words(int argc, const char **argv)
{
    char **words = g_new0(char *, (gsize)argc + 1);

    for (int i = 0; i < argc; i++)
        words[i] = g_strconcat(argv[i], i > 0 && lacks_argument(argv[i]) ? "=" : NULL, NULL);
    return words;
}

/* Returns: the number of words up to "--", or all of them */
static int
count_options(int argc, const char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--") == 0)
            return i;
    return argc;
}

/* @command: (nullable): the command that the command line names */
static bool
print_answer(const Option *option, const UprofCommand *commands, const UprofCommand *command,
             int *code)
{
    const bool is_help = strcmp(option->long_name, "help") == 0;

    if (!is_help && strcmp(option->long_name, "version") != 0)
        return false;
    if (is_help) {
        *code = print_help(commands, command);
        return true;
    }
    printf("virt-uprof %s\n", UPROF_VERSION);
    *code = fflush(stdout) == 0 ? UPROF_EXIT_OK : UPROF_EXIT_FAILED;
    return true;
}

/* Options of other programs, and what they are here. A letter may have its value behind it. */
static const char *
explain_option(const char *name)
{
    static const struct {
        const char *name, *hint;
    } others[] = {
        { "-r", "rates are given with -F" },
        { "-t", "durations are given with -d" },
        { "-T", "durations are given with -d" },
        { "--time", "durations are given with -d" },
        { "-p", "a domain is given by its name, UUID or id" },
        { "-g", "call stacks are always taken" },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(others); i++)
        if (g_str_has_prefix(name, others[i].name))
            return others[i].hint;
    return NULL;
}

static bool
fail_unknown(const char *word)
{
    g_autofree char *quoted = uprof_text_quote(word);
    g_autofree char *name = g_strndup(quoted, strcspn(quoted, "="));
    const bool is_long = g_str_has_prefix(name, "--");
    unsigned nearest = UPROF_WORD_FAR;
    const char *meant = NULL;

    for (size_t i = 0; is_long && i < G_N_ELEMENTS(table); i++)
        if (table[i].long_name && uprof_word_is_closer(name + 2, table[i].long_name, &nearest))
            meant = table[i].long_name;
    if (meant)
        return fail_usage("unknown option '%s' (did you mean --%s?)", name, meant);
    const char *hint = explain_option(name);
    return fail_usage("unknown option '%s'%s%s", name, hint ? ": " : "", hint ? hint : "");
}

/*
 * @named: (nullable): the command that the command line names
 * @given: (out): by row of the table; another spelling sets the row of its option
 */
static bool
take_options(UprofOptions *options, const UprofCommand *named, poptContext context, bool *given,
             int *code)
{
    int row;

    while ((row = poptGetNextOpt(context)) > 0) {
        const Option *option = find_option((size_t)row - 1);
        char *argument = poptGetOptArg(context);
        g_autofree char *value = g_strdup(argument ? argument : "");
        free(argument);
        if (print_answer(option, options->commands, named, code))
            return false;
        given[option - table] = true;
        if (option->given)
            G_STRUCT_MEMBER(bool, options, option->given) = true;
        if (!option->take(option, options, value))
            return false;
    }
    if (row == -1)
        return true;
    if (row == POPT_ERROR_BADOPT)
        return fail_unknown(poptBadOption(context, POPT_BADOPTION_NOALIAS));
    g_autofree char *quoted = uprof_text_quote(poptBadOption(context, POPT_BADOPTION_NOALIAS));
    return fail_usage("%s: %s", quoted, poptStrerror(row));
}

/* Returns: (nullable): the command that the command line names, for --help */
static const UprofCommand *
find_named(const UprofCommand *commands, int argc, const char **argv)
{
    const UprofCommand *found = NULL;

    for (int i = 1; i < argc && !found; i++)
        found = find_command(commands, argv[i]);
    return found;
}

UprofOptions *
uprof_options_parse(int argc, const char **argv, const UprofCommand *commands, int *code)
{
    struct poptOption rows[G_N_ELEMENTS(table) + 1] = { 0 };
    bool given[G_N_ELEMENTS(table)] = { false };
    const int n_words = count_options(argc, argv);
    g_auto(GStrv) words = complete_words(n_words, argv);
    g_autoptr(UprofOptions) options = new_options();

    for (size_t i = 0; i < G_N_ELEMENTS(table); i++)
        rows[i] = (struct poptOption){
            .longName = table[i].long_name,
            .shortName = table[i].short_name,
            .argInfo = find_option(i)->argument ? POPT_ARG_STRING : POPT_ARG_NONE,
            .val = (int)i + 1,
        };
    __attribute__((cleanup(free_context))) poptContext context =
        poptGetContext(NULL, n_words, (const char **)words, rows, 0);

    *code = UPROF_EXIT_USAGE;
    options->commands = commands;
    if (!take_options(options, find_named(commands, n_words, argv), context, given, code))
        return NULL;
    take_words(options, context, (char **)argv + MIN(n_words + 1, argc));
    return check_commands(options, given) && check_outputs(options) && check_access(options) &&
                   check_pause(options) && check_times(options) && check_words(options) &&
                   check_rows(options) && check_tasks(options) && check_annotate(options) &&
                   check_output_names(options)
               ? g_steal_pointer(&options)
               : NULL;
}

/* ---- Settings of the libraries, made from the options ---- */

UprofSymbolSettings
uprof_options_symbols(const UprofOptions *options)
{
    const uint64_t configured_mib = options->config ? options->config->symbols_megabytes : 0;
    const uint64_t memory_mib = options->memory_mib > 0 ? options->memory_mib : configured_mib;

    return (UprofSymbolSettings){
        .files = options->symbols,
        .config = {
            .debug_folders = (const char *const *)options->debug_folders->pdata,
            .sysroots = (const char *const *)options->sysroots->pdata,
            .cache_folder = uprof_symbol_cache_used(),
            .raw_names = options->no_demangle,
            .lines = options->lines,
            .bytes_max = memory_mib << 20,
        },
    };
}

static void
show_notice(UprofNoticeKind kind, const char *text, void *data)
{
    const UprofOptions *options = data;

    if (options->quiet && kind != UPROF_NOTICE_WARNING)
        return;
    uprof_say("%s%s", kind == UPROF_NOTICE_INFO ? "" : "virt-uprof: ", text);
}

UprofNotices
uprof_options_notices(const UprofOptions *options)
{
    return (UprofNotices){ show_notice, (void *)options };
}

UprofSessionSettings
uprof_options_session(const UprofOptions *options, const UprofNotices *notices)
{
    return (UprofSessionSettings){
        .program = "virt-uprof " UPROF_VERSION,
        .uri = options->uri,
        .access = options->access,
        .run = &options->settings,
        .config = options->config,
        .symbols = uprof_options_symbols(options),
        .notices = notices,
    };
}

UprofRecordSettings
uprof_options_record(const UprofOptions *options, const UprofNotices *notices)
{
    return (UprofRecordSettings){
        .session = uprof_options_session(options, notices),
        .words = options->words,
        .command_meant = options->command_meant,
        .all = options->all,
        .wait = options->wait,
        .wait_ns = options->wait_ns,
        .samples = options->samples,
        .waits_for_lock = true,
        .recovers = true,
    };
}
