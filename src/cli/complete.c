/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * --complete WORD...: what a shell may offer for the last of the words that stand
 * behind the program's name. A candidate a line, in place of that whole word and
 * unquoted: quoting is the shell's business. No candidate begins with '/'; a line
 * that does says what the shell is to look for itself:
 *     /files HEAD      names of files, behind HEAD of the word
 *     /folders HEAD    names of folders
 *
 * Silent, whatever goes wrong, and over after a second at most: a daemon that does
 * not answer shall not take a prompt with it.
 */
#include "commands-priv.h"

#include "exit-priv.h"
#include "uprof/host.h"
#include "uprof/text.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum {
    SECONDS_MAX = 1,
    WORDS_MAX = 4096,
};

typedef enum {
    VALUE_OTHER, /* nobody can guess it */
    VALUE_CHOICES,
    VALUE_FILES,
    VALUE_FOLDERS,
} ValueKind;

#define DAYS "today yesterday"

/* clang-format off */
static const struct {
    const char *option;
    ValueKind kind;
    const char *choices; /* NULL: the formats */
} values[] = {
    { "connect",   VALUE_CHOICES, "qemu:///system qemu:///session xen:///system test:///default" },
    { "output",    VALUE_FILES,   NULL },
    { "format",    VALUE_CHOICES, NULL },
    { "capture",   VALUE_FILES,   NULL },
    { "symbols",   VALUE_FILES,   NULL },
    { "debug-dir", VALUE_FOLDERS, NULL },
    { "sysroot",   VALUE_FOLDERS, NULL },
    { "access",    VALUE_CHOICES, "auto direct monitor xen" },
    { "unwind",    VALUE_CHOICES, "auto cfi fp" },
    { "idle",      VALUE_CHOICES, "stack" },
    { "sort",      VALUE_CHOICES, "self total" },
    { "by",        VALUE_CHOICES, "function process" },
    { "config",    VALUE_FILES,   NULL },
    { "store",     VALUE_FOLDERS, NULL },
    { "since",     VALUE_CHOICES, DAYS },
    { "until",     VALUE_CHOICES, DAYS },
};
/* clang-format on */

/*
 * Line: what the words say up to the last one
 * @option: (nullable): whose argument the last word is, from @head on
 * @head: of the last word, what stands before that argument
 */
typedef struct {
    const UprofCommand *command;
    const char *uri; /* (nullable): borrowed */
    const char *option;
    const char *word;
    size_t head;
    bool has_command, is_behind_dashes, waits, is_by_date;
    unsigned n_words;
} Line;

static const UprofCommand *
find_command(const char *name)
{
    for (const UprofCommand *command = uprof_commands; command->name; command++)
        if (strcmp(command->name, name) == 0)
            return command;
    return NULL;
}

/* @name: of @len bytes, a long option's, or a short one's letter */
static bool
find_option(const char *name, size_t len, bool is_short, UprofOptionInfo *info)
{
    for (size_t i = 0; uprof_options_describe(i, info); i++) {
        if (is_short ? info->short_name == name[0]
                     : info->long_name && strlen(info->long_name) == len &&
                           strncmp(info->long_name, name, len) == 0)
            return true;
    }
    return false;
}

static void
note_option(Line *line, const UprofOptionInfo *info, const char *argument)
{
    const char *name = info->long_name ? info->long_name : "";

    line->waits |= strcmp(name, "wait") == 0;
    line->is_by_date |= strcmp(name, "since") == 0 || strcmp(name, "until") == 0;
    if (strcmp(name, "connect") == 0 && argument)
        line->uri = argument;
}

/* Of a word with options. Returns: whether the next word is the argument of @info */
static bool
read_options(Line *line, const char *word, bool is_last, UprofOptionInfo *info)
{
    const bool is_long = word[1] == '-';
    const char *equals = is_long ? strchr(word, '=') : NULL;
    const char *name = is_long ? word + 2 : word + 1;

    do {
        const size_t len = !is_long ? 1 : equals ? (size_t)(equals - name) : strlen(name);
        if (!find_option(name, len, !is_long, info))
            return false;
        const bool wants = info->argument && !(info->is_optional && !equals);
        const char *rest = is_long ? (equals ? equals + 1 : NULL) : (name[1] ? name + 1 : NULL);
        if (rest && !is_long && rest[0] == '=') /* as popt takes it */
            rest++;
        note_option(line, info, is_last ? NULL : rest);
        if (wants && rest && is_last) {
            line->option = info->long_name;
            line->head = (size_t)(rest - word);
        }
        if (wants)
            return !rest;
    } while (!is_long && *++name);
    return false;
}

static void
read_line(Line *line, const char *const *words, int n)
{
    UprofOptionInfo info;
    bool is_argument = false;

    *line = (Line){ .command = &uprof_commands[0], .word = words[n - 1] };
    for (int i = 0; i < n; i++) {
        const bool is_last = i == n - 1;
        const char *word = words[i];
        if (is_argument) {
            note_option(line, &info, is_last ? NULL : word);
            line->option = is_last ? info.long_name : NULL;
            is_argument = false;
        } else if (!line->is_behind_dashes && strcmp(word, "--") == 0 && !is_last) {
            line->is_behind_dashes = true;
        } else if (!line->is_behind_dashes && word[0] == '-' && word[1]) {
            is_argument = read_options(line, word, is_last, &info);
        } else if (!is_last && line->n_words++ == 0 && find_command(word)) {
            line->command = find_command(word);
            line->has_command = true;
        }
    }
}

/* A candidate is a line, and must not pass for more than a word. */
static void
offer(const Line *line, const char *head, const char *tail)
{
    g_autofree char *all = g_strconcat(head, tail, NULL);

    if (g_str_has_prefix(all, line->word))
        printf("%s\n", all);
}

static void
offer_words(const Line *line, const char *head, const char *words)
{
    g_auto(GStrv) each = g_strsplit(words, " ", -1);

    for (char **word = each; *word; word++)
        offer(line, head, *word);
}

static void
offer_values(const Line *line)
{
    g_autofree char *head = g_strndup(line->word, line->head);

    for (size_t i = 0; i < G_N_ELEMENTS(values); i++) {
        if (strcmp(values[i].option, line->option) != 0)
            continue;
        if (values[i].kind == VALUE_FILES)
            printf("/files %s\n", head);
        else if (values[i].kind == VALUE_FOLDERS)
            printf("/folders %s\n", head);
        else if (values[i].choices)
            offer_words(line, head, values[i].choices);
        else {
            g_autofree char *formats = uprof_format_names();
            offer_words(line, head, formats);
        }
    }
}

static void
offer_options(const Line *line)
{
    UprofOptionInfo info;

    for (size_t i = 0; uprof_options_describe(i, &info); i++) {
        if (!info.long_name || !(info.commands & line->command->bit))
            continue;
        offer(line, "--", info.long_name);
        if (strcmp(info.long_name, "idle") == 0)
            offer(line, "--", "idle=stack");
    }
}

static void
end_at_once(int signal)
{
    _exit(UPROF_EXIT_OK);
}

/* From here on the program ends by itself. */
static void
limit_time(void)
{
    const struct sigaction action = { .sa_handler = end_at_once };
    const struct itimerval limit = { .it_value = { .tv_sec = SECONDS_MAX } };

    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &limit, NULL);
}

/*
 * The name, or what stands for it: one that acts in a terminal, or is no text, cannot
 * be offered, and one that begins with a dash only where no option may stand.
 */
static void
offer_domain(const Line *line, const UprofDomain *domain)
{
    g_autofree char *shown = uprof_text_quote(domain->name);
    const bool is_option = domain->name[0] == '-' && !line->is_behind_dashes;
    const bool is_command = line->n_words == 0 && find_command(domain->name);

    if (strcmp(shown, domain->name) != 0 || is_option || is_command || !domain->name[0])
        offer(line, "", domain->uuid);
    else
        offer(line, "", domain->name);
}

static void
offer_domains(const Line *line)
{
    const char *uri = line->uri ? line->uri : g_getenv("LIBVIRT_DEFAULT_URI");
    const bool wants_running = strcmp(line->command->name, "record") == 0 ||
                               strcmp(line->command->name, "dump") == 0 ||
                               strcmp(line->command->name, "top") == 0;

    /* another host may ask for a password, and takes its time */
    if (uri && uri[0] && !uprof_host_uri_is_local(uri))
        return;
    fflush(stdout);
    limit_time();
    /* nothing starts a daemon because somebody has pressed a key */
    g_setenv("LIBVIRT_AUTOSTART", "0", TRUE);
    uprof_host_init();
    g_autoptr(UprofHost) host = uprof_host_open(uri, true, NULL);
    g_autoptr(GPtrArray) domains = host ? uprof_host_names(host, NULL) : NULL;
    for (guint i = 0; domains && i < domains->len; i++) {
        const UprofDomain *domain = g_ptr_array_index(domains, i);
        if (domain->id >= 0 || !wants_running || line->waits)
            offer_domain(line, domain);
    }
}

static void
offer_arguments(const Line *line)
{
    const char *takes = line->command->arguments;
    const bool takes_files = strstr(takes, "FILE") || strstr(takes, "OLD");
    const char *at = strchr(line->word, '@');

    if (!line->has_command && line->n_words == 0 && !line->is_behind_dashes)
        for (const UprofCommand *command = uprof_commands; command->name; command++)
            offer(line, "", command->name);
    if (strstr(takes, "OLD") && at) {
        /* a day of the store */
        g_autofree char *head = g_strndup(line->word, (size_t)(at + 1 - line->word));
        offer_words(line, head, DAYS);
    } else if (takes_files && !line->is_by_date) {
        printf("/files \n");
    } else if (takes_files || strstr(takes, "DOMAIN")) {
        offer_domains(line);
    } else if (strstr(takes, "DAY")) {
        offer_words(line, "", DAYS);
    }
}

int
uprof_complete_run(int n, const char *const *words)
{
    static const char *const nothing[] = { "" };
    Line line;

    if (n > WORDS_MAX)
        return UPROF_EXIT_OK;
    read_line(&line, n > 0 ? words : nothing, MAX(n, 1));
    if (line.option)
        offer_values(&line);
    else if (line.word[0] == '-' && !line.is_behind_dashes)
        offer_options(&line);
    else
        offer_arguments(&line);
    fflush(stdout);
    return UPROF_EXIT_OK;
}
