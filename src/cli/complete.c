/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * complete.c - the command `--complete WORD...`: prints candidates for the last word, for shells
 *
 * Each line of the output is a candidate that replaces the last word. Candidates are not
 * quoted, because quoting differs between shells. No candidate begins with '/'. A line that
 * begins with '/' asks the shell to complete names of files or folders itself:
 *
 *     /files HEAD      names of files, after the HEAD of the word
 *     /folders HEAD    names of folders, after the HEAD of the word
 *
 * The command prints no errors and ends after a second at most, because a daemon that does
 * not answer must not block a prompt.
 */
#include "commands-priv.h"

#include "exit-priv.h"
#include "uprof/domid.h"
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

#define DAYS "today yesterday"

/* The command line so far: complete words, and the word to complete. All pointers are borrowed. */
typedef struct {
    const UprofCommand *commands;
    const UprofCommand *command; /* the command that was named, or the default one */
    bool has_command;            /* a command was named */
    const char *uri;             /* (nullable): the argument of --connect */
    bool is_behind_dashes;       /* "--" has ended the options */
    bool waits;                  /* --wait is given: domains that are shut off are offered */
    bool is_by_date;             /* --since or --until is given: domains instead of files */
    unsigned n_words;            /* words that are neither options nor their arguments */
    const char *word;            /* the last word */
    bool is_value;               /* the last word ends with the argument of @option, or is it */
    UprofOptionInfo option;
    size_t head; /* the length of @word before that argument */
} Line;

static const UprofCommand *
find_command(const Line *line, const char *name)
{
    for (const UprofCommand *command = line->commands; command->name; command++)
        if (strcmp(command->name, name) == 0)
            return command;
    return NULL;
}

/* ---- Reading the words ---- */

static bool
find_long_option(const char *name, size_t len, UprofOptionInfo *info)
{
    for (size_t i = 0; uprof_options_describe(i, info); i++)
        if (info->long_name && strlen(info->long_name) == len &&
            strncmp(info->long_name, name, len) == 0)
            return true;
    return false;
}

static bool
find_short_option(char letter, UprofOptionInfo *info)
{
    for (size_t i = 0; uprof_options_describe(i, info); i++)
        if (info->short_name == letter)
            return true;
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

/* Notes that the last word ends with the argument of an option. @argument: points into the word */
static void
note_value(Line *line, const UprofOptionInfo *info, const char *argument)
{
    line->is_value = true;
    line->option = *info;
    line->head = (size_t)(argument - line->word);
}

/* @word: "--NAME" or "--NAME=ARGUMENT". Returns: true if the next word is the argument */
static bool
read_long_option(Line *line, const char *word, bool is_last, UprofOptionInfo *info)
{
    const char *name = word + 2;
    const char *equals = strchr(name, '=');

    if (!find_long_option(name, equals ? (size_t)(equals - name) : strlen(name), info))
        return false;
    note_option(line, info, equals && !is_last ? equals + 1 : NULL);
    if (equals && info->argument && is_last)
        note_value(line, info, equals + 1);
    return !equals && info->argument && !info->is_optional;
}

/*
 * @word: a dash and letters. After the letter of an option with an argument, the rest of the word
 *   is the argument.
 *
 * Returns: true if the next word is the argument
 */
static bool
read_short_options(Line *line, const char *word, bool is_last, UprofOptionInfo *info)
{
    for (const char *letter = word + 1; *letter; letter++) {
        if (!find_short_option(*letter, info))
            return false;
        if (!info->argument) {
            note_option(line, info, NULL);
            continue;
        }
        const char *rest = letter[1] == '=' ? letter + 2 : letter + 1; /* popt skips a "=" */
        const bool has_rest = letter[1] != '\0';
        note_option(line, info, has_rest && !is_last ? rest : NULL);
        if (has_rest && is_last)
            note_value(line, info, rest);
        return !has_rest;
    }
    return false;
}

static void
read_line(Line *line, const UprofCommand *commands, const char *const *words, int n)
{
    UprofOptionInfo info;
    bool is_argument = false;

    *line = (Line){ .commands = commands, .command = &commands[0], .word = words[n - 1] };
    for (int i = 0; i < n; i++) {
        const bool is_last = i == n - 1;
        const char *word = words[i];
        if (is_argument) {
            note_option(line, &info, is_last ? NULL : word);
            if (is_last)
                note_value(line, &info, word);
            is_argument = false;
        } else if (!line->is_behind_dashes && strcmp(word, "--") == 0 && !is_last) {
            line->is_behind_dashes = true;
        } else if (!line->is_behind_dashes && word[0] == '-' && word[1]) {
            is_argument = word[1] == '-' ? read_long_option(line, word, is_last, &info)
                                         : read_short_options(line, word, is_last, &info);
        } else if (!is_last && line->n_words++ == 0 && find_command(line, word)) {
            line->command = find_command(line, word);
            line->has_command = true;
        }
    }
}

/* ---- Offering candidates ---- */

static void
offer_candidate(const Line *line, const char *head, const char *tail)
{
    g_autofree char *candidate = g_strconcat(head, tail, NULL);

    if (g_str_has_prefix(candidate, line->word))
        printf("%s\n", candidate);
}

static void
offer_words(const Line *line, const char *head, const char *words)
{
    g_auto(GStrv) each = g_strsplit(words, " ", -1);

    for (char **word = each; *word; word++)
        offer_candidate(line, head, *word);
}

static void
offer_values(const Line *line)
{
    g_autofree char *head = g_strndup(line->word, line->head);
    const char *choices = line->option.choices;

    if (!choices)
        return;
    if (strcmp(choices, UPROF_COMPLETE_FORMATS) == 0) {
        g_autofree char *formats = uprof_format_names();
        offer_words(line, head, formats);
    } else if (choices[0] == '/') {
        printf("%s %s\n", choices, head);
    } else {
        offer_words(line, head, choices);
    }
}

static void
offer_options(const Line *line)
{
    UprofOptionInfo info;

    for (size_t i = 0; uprof_options_describe(i, &info); i++) {
        if (!info.long_name || !(info.commands & line->command->bit))
            continue;
        offer_candidate(line, "--", info.long_name);
        if (info.is_optional && info.choices) {
            g_autofree char *head = g_strdup_printf("--%s=", info.long_name);
            offer_words(line, head, info.choices);
        }
    }
}

/* ---- Domains ---- */

static void
end_at_once(int signal)
{
    _exit(UPROF_EXIT_OK);
}

static void
limit_time(void)
{
    const struct sigaction action = { .sa_handler = end_at_once };
    const struct itimerval limit = { .it_value = { .tv_sec = SECONDS_MAX } };

    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &limit, NULL);
}

/*
 * Offers the name, or the UUID if the name is empty, has bytes that a terminal must not get, or
 * looks like an option or a command.
 */
static void
offer_domain(const Line *line, const UprofDomain *domain)
{
    g_autofree char *shown = uprof_text_quote(domain->name);
    const bool is_option = domain->name[0] == '-' && !line->is_behind_dashes;
    const bool is_command = line->n_words == 0 && find_command(line, domain->name);

    if (strcmp(shown, domain->name) != 0 || is_option || is_command || !domain->name[0])
        offer_candidate(line, "", domain->uuid);
    else
        offer_candidate(line, "", domain->name);
}

static void
offer_domains(const Line *line)
{
    const char *uri = line->uri ? line->uri : g_getenv("LIBVIRT_DEFAULT_URI");
    const bool needs_running =
        line->command->bit & (UPROF_COMMAND_RECORD | UPROF_COMMAND_DUMP | UPROF_COMMAND_DMESG |
                              UPROF_COMMAND_TOP | UPROF_COMMAND_PS);

    /* A remote host can ask for a password, and can be slow. */
    if (uri && uri[0] && !uprof_host_uri_is_local(uri))
        return;
    fflush(stdout);
    limit_time();
    /* Completion must not start a daemon. */
    g_setenv("LIBVIRT_AUTOSTART", "0", TRUE);
    g_autoptr(UprofHost) host = uprof_host_open(uri, true, NULL);
    g_autoptr(GPtrArray) domains = host ? uprof_domid_names(host, NULL) : NULL;
    for (guint i = 0; domains && i < domains->len; i++) {
        const UprofDomain *domain = g_ptr_array_index(domains, i);
        if (domain->id >= 0 || !needs_running || line->waits)
            offer_domain(line, domain);
    }
}

/* ---- Arguments of commands ---- */

static void
offer_arguments(const Line *line)
{
    const char *takes = line->command->arguments;
    const bool takes_files = strstr(takes, "FILE") || strstr(takes, "OLD");
    const char *at = strchr(line->word, '@');

    if (!line->has_command && line->n_words == 0 && !line->is_behind_dashes)
        for (const UprofCommand *command = line->commands; command->name; command++)
            offer_candidate(line, "", command->name);
    if (strstr(takes, "OLD") && at) {
        /* DOMAIN@DAY of the store */
        g_autofree char *head = g_strndup(line->word, (size_t)(at + 1 - line->word));
        offer_words(line, head, DAYS);
    } else if (takes_files && !line->is_by_date) {
        printf(UPROF_COMPLETE_FILES " \n");
    } else if (takes_files || strstr(takes, "DOMAIN")) {
        offer_domains(line);
    } else if (strcmp(takes, "[COMMAND]") == 0) {
        for (const UprofCommand *command = line->commands; command->name; command++)
            offer_candidate(line, "", command->name);
    } else if (strstr(takes, "DAY")) {
        offer_words(line, "", DAYS);
    }
}

int
uprof_complete_run(const UprofCommand *commands, int n, const char *const *words)
{
    static const char *const nothing[] = { "" };
    Line line;

    if (n > WORDS_MAX)
        return UPROF_EXIT_OK;
    read_line(&line, commands, n > 0 ? words : nothing, MAX(n, 1));
    if (line.is_value)
        offer_values(&line);
    else if (line.word[0] == '-' && !line.is_behind_dashes)
        offer_options(&line);
    else
        offer_arguments(&line);
    fflush(stdout);
    return UPROF_EXIT_OK;
}
