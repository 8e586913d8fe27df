/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The popt table, and nothing else. Every value is taken as text and parsed
 * whole: popt's own integers take "-5" for a rate and "010" for 8. popt's
 * configuration files are never read: a line in ~/.popt can run programs.
 */
#include "options-priv.h"

#include "exit-priv.h"
#include "uprof/scan.h"
#include "uprof/text.h"

#include <popt.h>
#include <stdio.h>
#include <string.h>

#include "commands-priv.h"

enum {
    ROWS_DEFAULT = 15,
    ROWS_MAX = 1000 * 1000,
    MAX_PAUSE_NS_MAX = 1000 * 1000 * 1000,
};

enum {
    RECORD = 1 << 0,
    LIST = 1 << 1,
    DUMP = 1 << 2,
    CHECK = 1 << 3,
    REPORT = 1 << 4,
    ALL = RECORD | LIST | DUMP | CHECK | REPORT,
    LIVE = RECORD | DUMP | CHECK,
};

/* clang-format off */
const UprofCommand uprof_commands[] = {
    { "record", RECORD, "DOMAIN...",   "sample, and write files (if no command is named)", uprof_record_run },
    { "list",   LIST,   "",            "every domain, and how it would be sampled", uprof_list_run },
    { "dump",   DUMP,   "DOMAIN...",   "one stack per vCPU, now",                   uprof_dump_run },
    { "check",  CHECK,  "[DOMAIN...]", "the doctor: what works, what does not, and what to do", uprof_check_run },
    { "report", REPORT, "FILE...",     "a capture again, as table or files",        uprof_report_run },
    { NULL,     0,      NULL,          NULL,                                        NULL },
};

typedef enum {
    OPTION_CONNECT = 1, OPTION_RATE, OPTION_DURATION, OPTION_OUTPUT, OPTION_FORMAT, OPTION_CAPTURE,
    OPTION_SYMBOLS, OPTION_ACCESS, OPTION_UNWIND, OPTION_VCPU, OPTION_PER_VCPU, OPTION_IDLE,
    OPTION_MAX_DEPTH, OPTION_MAX_PAUSE, OPTION_BUDGET, OPTION_NO_PAUSE, OPTION_ALL, OPTION_HEAL,
    OPTION_ROWS, OPTION_QUIET, OPTION_VERBOSE, OPTION_JSON, OPTION_VERSION, OPTION_HELP,
} OptionId;

static const struct {
    const char *long_name;
    char short_name;
    OptionId id;
    unsigned commands;
    const char *argument; /* NULL: none */
    const char *help;     /* NULL: another spelling of the row above */
} rows[] = {
    { "connect",   'c',  OPTION_CONNECT,   LIVE | LIST,     "URI",  "libvirt connection, as virsh; LIBVIRT_DEFAULT_URI is honored" },
    { "rate",      'F',  OPTION_RATE,      RECORD,          "HZ",   "samples per second of each vCPU: 1 to 20000 (99)" },
    { "frequency", '\0', OPTION_RATE,      RECORD,          "HZ",   NULL },
    { "duration",  'd',  OPTION_DURATION,  RECORD,          "T",    "10, 500ms, 2m, 1h; 0: until Ctrl-C (10s)" },
    { "time",      'T',  OPTION_DURATION,  RECORD,          "T",    NULL },
    { "output",    'o',  OPTION_OUTPUT,    RECORD | REPORT, "FILE", "repeatable; %d domain, %t time, %u UUID; -: stdout" },
    { "format",    'f',  OPTION_FORMAT,    RECORD | REPORT, "NAME", "folded, meta or capture (by the ending of FILE)" },
    { "capture",   '\0', OPTION_CAPTURE,   RECORD,          "FILE", "keep what was sampled, for report: -f capture -o FILE" },
    { "symbols",   's',  OPTION_SYMBOLS,   LIVE | REPORT,   "FILE", "repeatable; ELF, or text as nm, System.map, kallsyms" },
    { "access",    '\0', OPTION_ACCESS,    LIVE,            "WAY",  "auto or monitor (auto)" },
    { "unwind",    '\0', OPTION_UNWIND,    LIVE | REPORT,   "WAY",  "auto or fp (auto)" },
    { "vcpu",      '\0', OPTION_VCPU,      LIVE,            "LIST", "vCPUs to sample, such as 0,2-3 (all)" },
    { "per-vcpu",  '\0', OPTION_PER_VCPU,  RECORD | REPORT, NULL,   "a level per vCPU" },
    { "idle",      '\0', OPTION_IDLE,      RECORD | REPORT, NULL,   "show halted vCPUs; they are always counted" },
    { "max-depth", '\0', OPTION_MAX_DEPTH, LIVE | REPORT,   "N",    "frames of a stack: 1 to 1024 (127)" },
    { "max-pause", '\0', OPTION_MAX_PAUSE, LIVE,            "T",    "copy nothing more in a hold this old (50ms)" },
    { "budget",    '\0', OPTION_BUDGET,    RECORD | CHECK,  "PCT",  "percent of time a vCPU may be held (10)" },
    { "no-pause",  '\0', OPTION_NO_PAUSE,  LIVE,            NULL,   "KVM: read without stopping; torn stacks count as truncated" },
    { "all",       '\0', OPTION_ALL,       RECORD,          NULL,   "all running domains" },
    { "heal",      '\0', OPTION_HEAL,      CHECK,           NULL,   "resume what a dead run left stopped" },
    { "rows",      'n',  OPTION_ROWS,      RECORD | REPORT, "N",    "rows of the table (15)" },
    { "json",      '\0', OPTION_JSON,      ALL,             NULL,   "for machines; with record: the sidecar on stdout" },
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

void
uprof_options_free(UprofOptions *options)
{
    if (!options)
        return;
    g_free(options->uri);
    g_free(options->access);
    uprof_settings_clear(&options->settings);
    g_ptr_array_unref(options->outputs);
    g_ptr_array_unref(options->symbols);
    g_ptr_array_unref(options->words);
    g_free(options);
}

static UprofOptions *
new_options(void)
{
    UprofOptions *options = g_new0(UprofOptions, 1);

    options->access = g_strdup("auto");
    options->rows = ROWS_DEFAULT;
    options->outputs = g_ptr_array_new_with_free_func(free_wanted);
    options->symbols = g_ptr_array_new_with_free_func(g_free);
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

static void
print_help(void)
{
    printf("virt-uprof [COMMAND] [OPTION...] DOMAIN...\n"
           "Samples the call stacks of a running virtual machine from its host.\n\nCommands:\n");
    for (const UprofCommand *command = uprof_commands; command->name; command++)
        printf("  %-8s %-12s %s\n", command->name, command->arguments, command->summary);
    printf("\nOptions:\n");
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *spelling = NULL;
        if (!rows[i].help)
            continue;
        spelling =
            g_strdup_printf("%s%c%s --%s%s%s", rows[i].short_name ? "-" : " ",
                            rows[i].short_name ? rows[i].short_name : ' ',
                            rows[i].short_name ? "," : " ", rows[i].long_name,
                            rows[i].argument ? "=" : "", rows[i].argument ? rows[i].argument : "");
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
take_format(UprofOptions *options, const char *value)
{
    options->format = uprof_format_by_name(value);
    if (options->format)
        return true;
    g_autofree char *names = uprof_format_names();
    g_autofree char *form = g_strdup_printf("one of: %s", names);
    return fail_value("format", value, form);
}

static bool
take_settings(UprofOptions *options, OptionId id, const char *value)
{
    static const char *const ways[] = { "auto", "fp" };
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
                           "auto or fp (tables of unwind rules are not read yet)");
    case OPTION_PER_VCPU:
        settings->per_vcpu = true;
        return true;
    case OPTION_IDLE:
        settings->idle = true;
        return true;
    default:
        settings->no_pause = true;
        return true;
    }
}

static bool
take_option(UprofOptions *options, OptionId id, const char *value)
{
    static const char *const accesses[] = { "auto", "monitor" };
    const char *chosen = NULL;

    switch (id) {
    case OPTION_CONNECT:
        g_free(options->uri);
        options->uri = g_strdup(value);
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
        g_ptr_array_add(options->symbols, g_strdup(value));
        return true;
    case OPTION_ACCESS:
        if (!take_choice("access", value, accesses, G_N_ELEMENTS(accesses), &chosen,
                         "auto or monitor"))
            return false;
        g_free(options->access);
        options->access = g_strdup(chosen);
        return true;
    case OPTION_ROWS:
        return take_number("rows", value, 1, ROWS_MAX, &options->rows);
    case OPTION_ALL:
        options->all = true;
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
    const bool is_report = options->command->bit & REPORT;
    unsigned n_stdout = 0, n_captures = 0;

    if (options->format && options->format->is_capture && (is_report || options->outputs->len == 0))
        return fail_usage("a capture is written by 'record', to a file");
    for (guint i = 0; i < options->outputs->len; i++) {
        UprofWanted *wanted = g_ptr_array_index(options->outputs, i);
        const bool is_stdout = strcmp(wanted->path, "-") == 0;
        if (!wanted->format)
            wanted->format = options->format ? options->format : uprof_format_by_path(wanted->path);
        if (!wanted->format && is_stdout)
            wanted->format = &uprof_format_folded;
        if (!wanted->format) {
            g_autofree char *quoted = uprof_text_quote(wanted->path);
            uprof_say("virt-uprof: cannot tell the format of '%s'; use -f or one of .folded "
                      ".meta.json .capture",
                      quoted);
            return false;
        }
        if (is_stdout && ++n_stdout > 1)
            return fail_usage("only one output can go to stdout");
        if (is_stdout && options->json && (options->command->bit & RECORD))
            return fail_usage("--json and '-o -' both want stdout");
        if (wanted->format->is_capture && (is_stdout || is_report))
            return fail_usage("a capture is written by 'record', to a file");
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
    if (bit & LIST && n > 0)
        return fail_usage("'list' takes no domain: it lists them all");
    if (bit & REPORT && n == 0)
        return fail_usage("'report' needs a capture FILE");
    if (bit & (RECORD | DUMP) && n == 0 && !options->all)
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

UprofOptions *
uprof_options_parse(int argc, const char **argv, int *code)
{
    struct poptOption table[G_N_ELEMENTS(rows) + 1] = { 0 };
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
        poptGetContext(NULL, argc, argv, table, 0);

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
    if (!check_belonging(options, given) || !check_outputs(options) || !check_words(options))
        return NULL;
    return g_steal_pointer(&options);
}
