/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * top.c - the command top: the hottest functions of running domains, once a second
 *
 * On a terminal the command uses the alternate screen, and restores the terminal at the end. With
 * --batch the command prints plain text, round after round.
 */
#include "commands-priv.h"

#include "exit-priv.h"
#include "uprof/busy-share.h"
#include "uprof/hot-rows.h"
#include "uprof/run-lines.h"
#include "uprof/record-domains.h"
#include "terminal-priv.h"
#include "uprof/clock.h"
#include "uprof/processes.h"
#include "uprof/row-list.h"
#include "uprof/text.h"

#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

/* Control sequences of ECMA-48; the alternate screen is an extension of xterm's. */
/* alternate screen, no cursor, no wrapping of long lines */
#define TAKE_SCREEN "\x1b[?1049h\x1b[?25l\x1b[?7l"
#define GIVE_SCREEN "\x1b[?7h\x1b[?25h\x1b[?1049l"
#define HOME "\x1b[H"
#define CLEAR_LINE "\x1b[K"
#define CLEAR_BELOW "\x1b[J"
#define BOLD "\x1b[1m"
#define PLAIN "\x1b[0m"

enum {
    ROUND_NS = 1000 * 1000 * 1000,
    ROWS_USUAL = 15,
    DOMAINS_MAX = 8,  /* domains at the top of the screen */
    SAID_MAX = 100,   /* messages that are kept for the end */
    SAID_SHOWN = 2,   /* messages at the bottom of the screen */
    PATTERN_MAX = 64, /* bytes that a row must contain */
};

typedef struct {
    const UprofOptions *options;
    bool is_screen;        /* shows a screen on the terminal; false with --batch */
    bool has_screen;       /* the alternate screen is on; false in the background */
    struct termios before; /* the terminal's settings at the start */
    GPtrArray *said;       /* of char: messages that arrived while the screen was on; owned */
    UprofHotRows *rows;    /* owned */
    GArray *shares;        /* of UprofBusyShare, by domain; owned */
    bool by_total;         /* sort by total, not by self */
    UprofRowsBy by;        /* what is shown */
    bool keeps_all;        /* rows do not fade */
    bool is_paused;        /* the screen stays until a key is pressed; samples are still counted */
    bool shows_help;
    bool reads_pattern;            /* keys are added to @pattern */
    char pattern[PATTERN_MAX + 1]; /* only rows with this text are shown; in lower case */
    uint64_t next_ns;              /* when the next round is shown; 0 before the first */
    unsigned n_rounds;             /* rounds that were shown */
} Top;

static bool
has_cgroups(const Top *top)
{
    return top->options->settings.cgroups;
}

/* ---- The screen ---- */

static void
write_stdout(const char *text)
{
    fputs(text, stdout);
    fflush(stdout);
}

/*
 * The kernel does not stop this program if it uses the terminal from the background, because
 * SIGTTOU and SIGTTIN are blocked like all signals. So the program must check that itself.
 */
static bool
is_foreground(void)
{
    const pid_t group = tcgetpgrp(STDIN_FILENO);

    return group < 0 || group == getpgrp();
}

static void
take_screen(Top *top)
{
    struct termios raw = top->before;

    if (!top->is_screen || top->has_screen || !is_foreground())
        return;
    top->has_screen = true;
    /* ISIG stays on, so that Ctrl-C ends the run. */
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    write_stdout(TAKE_SCREEN);
    uprof_say_divert(top->said);
}

static void
leave_screen(Top *top)
{
    if (!top->has_screen)
        return;
    top->has_screen = false;
    uprof_say_divert(NULL);
    if (!is_foreground())
        return;
    write_stdout(GIVE_SCREEN);
    tcsetattr(STDIN_FILENO, TCSANOW, &top->before);
}

static void
init_top(Top *top, const UprofOptions *options)
{
    *top = (Top){ .options = options };
    top->is_screen = !options->batch && tcgetattr(STDIN_FILENO, &top->before) == 0;
    top->by_total = g_strcmp0(options->sort, "total") == 0;
    top->by = options->by;
    top->said = g_ptr_array_new_with_free_func(g_free);
    top->rows = uprof_hot_rows_new();
    top->shares = g_array_new(FALSE, TRUE, sizeof(UprofBusyShare));
}

static void
clear_top(Top *top)
{
    g_ptr_array_unref(top->said);
    uprof_hot_rows_free(top->rows);
    g_array_unref(top->shares);
}

/* Restores the screen, and prints the messages that arrived while it was on. */
static void
end_screen(void *data)
{
    Top *top = data;

    leave_screen(top);
    for (guint i = 0; i < top->said->len; i++)
        uprof_say("%s", (const char *)g_ptr_array_index(top->said, i));
    g_ptr_array_set_size(top->said, 0);
}

static int
key_fd(void *data)
{
    const Top *top = data;

    return top->has_screen && is_foreground() ? STDIN_FILENO : -1;
}

/* ---- Numbers ---- */

/* On a screen, earlier rounds fade, so that rows do not flicker. --batch shows each round alone. */
static void
fade_rows(Top *top)
{
    if (top->keeps_all)
        return;
    if (top->is_screen)
        uprof_hot_rows_fade(top->rows);
    else
        uprof_hot_rows_clear(top->rows);
}

static bool
has_processes(const UprofSession *session)
{
    return g_atomic_pointer_get(uprof_worker_links(session->worker)) != NULL;
}

/* The first part of a worker's reply; two lists of rows follow (row-list.h). */
typedef struct {
    uint64_t n_samples; /* of this round */
} Round;

/* In the worker: the functions and the processes of the samples since the last round. */
static void
make_round(UprofAnalysis *analysis, UprofSlice argument, GByteArray *reply)
{
    g_autoptr(UprofProfile) profile = uprof_pipeline_take_profile(analysis->pipeline);
    g_autoptr(GArray) functions = uprof_profile_rows(profile, NULL);
    const Round round = { uprof_profile_total(profile) };

    g_byte_array_append(reply, (const guint8 *)&round, sizeof(round));
    uprof_row_list_pack(functions, reply);
    if (!*uprof_linux_links(analysis->pipeline->kernel))
        return;
    g_autoptr(GArray) processes = uprof_processes_find(profile, UPROF_BY_PROCESS);
    uprof_row_list_pack(processes, reply);
    if (!analysis->run->cgroups)
        return;
    g_autoptr(GArray) cgroups = uprof_processes_find(profile, UPROF_BY_CGROUP);
    uprof_row_list_pack(cgroups, reply);
}

enum { CALL_ROUND };

static const UprofAnalysisCall calls[] = { [CALL_ROUND] = make_round };

/* Returns: samples of the round; 0 also if the worker has failed: the end of the run says why */
static uint64_t
add_round(Top *top, guint domain, const UprofSession *session)
{
    g_autoptr(GByteArray) reply = NULL;
    Round round;

    if (!uprof_worker_call(session->worker, CALL_ROUND, (UprofSlice){ 0 }, &reply, NULL) ||
        reply->len < sizeof(round))
        return 0;
    memcpy(&round, reply->data, sizeof(round));
    UprofBytes bytes = {
        .name = "round",
        .all = { reply->data + sizeof(round), reply->len - sizeof(round) },
    };
    for (UprofRowsBy level = UPROF_BY_FUNCTION; level <= UPROF_BY_CGROUP; level++) {
        g_autoptr(GArray) rows = uprof_row_list_unpack(&bytes, uprof_hot_rows_names(top->rows));
        uprof_hot_rows_add(top->rows, domain, level, rows);
    }
    return round.n_samples;
}

static void
measure_domain(Top *top, guint domain, const UprofSession *session)
{
    const uint64_t n_samples = add_round(top, domain, session);

    if (top->shares->len <= domain)
        g_array_set_size(top->shares, domain + 1);
    uprof_busy_share_step(&g_array_index(top->shares, UprofBusyShare, domain), session, n_samples);
}

/* ---- Text ---- */

static void
append_domain(GString *out, const Top *top, const UprofSession *session,
              const UprofBusyShare *share)
{
    UprofSamplerCounts counts;

    uprof_sampler_counts(session->sampler, &counts);
    g_autofree char *busy = uprof_format_percent(share->ran, share->ticks);
    g_autofree char *idle = uprof_format_percent(share->ticks - share->ran, share->ticks);
    g_autofree char *held = uprof_format_percent(counts.most_held_ns, MAX(counts.elapsed_ns, 1));
    g_string_append_printf(
        out,
        "%s: %s %% busy, %s %% idle, %" G_GUINT64_FORMAT
        " samples in this round, %" G_GUINT64_FORMAT " missed in total, each vCPU held %s %%%s%s\n",
        session->shown, busy, idle, share->ran, share->missed, held,
        top->by != UPROF_BY_FUNCTION && !has_processes(session) ? ", processes unknown" : "",
        counts.end != UPROF_SAMPLER_RUNNING ? " (ended)" : "");
}

static void
append_domains(GString *out, const Top *top, const GPtrArray *recordings)
{
    for (guint i = 0; i < recordings->len && i < top->shares->len; i++) {
        const UprofRecording *recording = g_ptr_array_index(recordings, i);
        if (i == DOMAINS_MAX && top->is_screen) {
            g_string_append_printf(out, "and %u more domains\n", recordings->len - i);
            return;
        }
        append_domain(out, top, recording->session, &g_array_index(top->shares, UprofBusyShare, i));
    }
}

/* Appends one table for all domains. If there are several, each row ends with its domain. */
static void
append_table(GString *out, const Top *top, const GPtrArray *recordings,
             const UprofTableStyle *style)
{
    const UprofHotChoice choice = { top->by, top->by_total, top->pattern, style->rows };
    g_autoptr(GArray) rows = g_array_new(FALSE, FALSE, sizeof(UprofProfileRow));
    uint64_t total;
    g_autoptr(GArray) hots = uprof_hot_rows_list(top->rows, &choice, &total);
    GString *table = g_string_new(NULL);

    for (guint i = 0; i < hots->len; i++)
        g_array_append_val(rows, g_array_index(hots, UprofHotRow, i).row);
    if (rows->len == 0 && top->is_screen)
        g_string_append(out, top->pattern[0]
                                 ? "no row has this text\n"
                                 : "no samples: no vCPU runs, or none was sampled yet\n");
    uprof_table_append(table, style, rows, total);
    g_auto(GStrv) lines = g_strsplit(table->str, "\n", -1);
    for (guint i = 0; lines[i] && lines[i][0]; i++) {
        g_string_append(out, lines[i]);
        if (i > 0 && recordings->len > 1) {
            const UprofRecording *recording =
                g_ptr_array_index(recordings, g_array_index(hots, UprofHotRow, i - 1).domain);
            g_string_append_printf(out, "  (%s)", recording->session->shown);
        }
        g_string_append_c(out, '\n');
    }
    g_string_free(table, TRUE);
}

static GString *
make_batch(const Top *top, const GPtrArray *recordings)
{
    const UprofTableStyle style = {
        .rows = top->options->rows > 0 ? top->options->rows : ROWS_USUAL,
        .by = top->by,
    };
    GString *out = g_string_new(top->n_rounds > 1 ? "\n" : NULL);

    append_domains(out, top, recordings);
    append_table(out, top, recordings, &style);
    return out;
}

static const char help_text[] =
    "  s  functions by self: samples in the function itself\n"
    "  t  functions by total: with the functions that it calls\n"
    "  p  processes    c  cgroups, with --cgroups\n"
    "  a  add up all samples, or only those of the last ten seconds\n"
    "  r  begin again with no samples\n"
    "  /  show only rows with a text; Enter ends the text, Esc drops it\n"
    "  space  keep the screen as it is\n"
    "  ?  this help    q  quit\n";

/* How the table is made, and what else can be done. */
static void
append_title(GString *out, const Top *top, bool colors)
{
    g_string_append_printf(out, "%s%s sorted by %s, %s", colors ? BOLD : "",
                           uprof_rows_by_text(top->by, true),
                           top->by_total || top->by != UPROF_BY_FUNCTION ? "total" : "self",
                           top->keeps_all ? "all samples" : "the last ten seconds");
    if (top->pattern[0] || top->reads_pattern)
        g_string_append_printf(out, ", with '%s%s'", top->pattern, top->reads_pattern ? "_" : "");
    g_string_append_printf(out, "; %s%s\n\n",
                           top->is_paused ? "PAUSED, space goes on" : "? for keys",
                           colors ? PLAIN : "");
}

/* Clears the rest of each line, and leaves out the lines that do not fit on the screen. */
static GString *
make_screen(const Top *top, const GPtrArray *recordings)
{
    g_autoptr(GString) text = g_string_new(NULL);
    GString *out = g_string_new(HOME);
    unsigned lines, columns;

    uprof_terminal_size(STDOUT_FILENO, &lines, &columns);
    const guint head = MIN(recordings->len, DOMAINS_MAX + 1) + 1;
    const unsigned room = lines > head + 4 + SAID_SHOWN ? lines - head - 4 - SAID_SHOWN : 1;
    UprofTableStyle style =
        uprof_terminal_style(top->options->rows > 0 ? MIN(top->options->rows, room) : room);
    /* The name of the domain needs room after the table's columns. */
    style.width = recordings->len > 1 && style.width > 60 ? style.width - 20 : style.width;
    style.by = top->by;
    append_domains(text, top, recordings);
    append_title(text, top, style.colors);
    if (top->shows_help)
        g_string_append(text, help_text);
    else
        append_table(text, top, recordings, &style);
    for (guint i = top->said->len > SAID_SHOWN ? top->said->len - SAID_SHOWN : 0;
         i < top->said->len; i++)
        g_string_append_printf(text, "%s\n", (const char *)g_ptr_array_index(top->said, i));
    g_auto(GStrv) words = g_strsplit(text->str, "\n", -1);
    for (guint i = 0; words[i] && i + 1 < lines; i++)
        g_string_append_printf(out, "%s" CLEAR_LINE "\r\n", words[i]);
    return g_string_append(out, CLEAR_BELOW);
}

static bool
print_round(const Top *top, const GPtrArray *recordings)
{
    if (top->is_screen && !top->has_screen)
        return true;
    return uprof_terminal_print(top->is_screen ? make_screen(top, recordings)
                                               : make_batch(top, recordings)) == UPROF_EXIT_OK;
}

/* A key of the text of which rows have a part. */
static void
read_pattern(Top *top, char key)
{
    const size_t len = strlen(top->pattern);

    if (key == '\r' || key == '\n' || key == '\x1b')
        top->reads_pattern = false;
    if (key == '\x1b')
        top->pattern[0] = '\0';
    if ((key == '\b' || key == '\x7f') && len > 0)
        top->pattern[len - 1] = '\0';
    if (g_ascii_isprint(key) && len < PATTERN_MAX) {
        top->pattern[len] = g_ascii_tolower(key);
        top->pattern[len + 1] = '\0';
    }
}

static void
handle_key(Top *top, char key)
{
    switch (key) {
    case 's':
    case 't':
    case 'p':
    case 'c':
        if (key == 'c' && !has_cgroups(top))
            return;
        top->by = key == 'p' ? UPROF_BY_PROCESS : key == 'c' ? UPROF_BY_CGROUP : UPROF_BY_FUNCTION;
        top->by_total = key == 't';
        break;
    case 'a':
        top->keeps_all = !top->keeps_all;
        G_GNUC_FALLTHROUGH;
    case 'r':
        uprof_hot_rows_clear(top->rows);
        break;
    case ' ':
        top->is_paused = !top->is_paused;
        break;
    case '/':
        top->reads_pattern = true;
        break;
    case '?':
    case 'h':
        top->shows_help = !top->shows_help;
        break;
    default:
        break;
    }
}

static bool
read_keys(const GPtrArray *recordings, void *data)
{
    Top *top = data;
    bool is_changed = false;
    char key;

    while (read(STDIN_FILENO, &key, 1) == 1) {
        if (top->reads_pattern)
            read_pattern(top, key);
        else if (key == 'q' || key == 'Q')
            return false;
        else
            handle_key(top, key);
        is_changed = true;
    }
    if (is_changed)
        print_round(top, recordings);
    return true;
}

/* Returns: false if this was the last round, or if stdout is closed */
static bool
show_round(const GPtrArray *recordings, void *data)
{
    Top *top = data;
    const uint64_t now_ns = uprof_clock_now_ns();

    if (top->next_ns == 0) {
        top->next_ns = now_ns + ROUND_NS;
        take_screen(top);
    }
    if (now_ns < top->next_ns)
        return true;
    top->next_ns = MAX(top->next_ns + ROUND_NS, now_ns);
    if (top->said->len > SAID_MAX)
        g_ptr_array_remove_range(top->said, 0, top->said->len - SAID_MAX);
    const bool had_screen = top->has_screen;
    if (!is_foreground())
        leave_screen(top);
    else
        take_screen(top);
    fade_rows(top);
    for (guint i = 0; i < recordings->len; i++) {
        const UprofRecording *recording = g_ptr_array_index(recordings, i);
        measure_domain(top, i, recording->session);
    }
    top->n_rounds++;
    const bool stays = top->is_paused && had_screen;
    return (stays || print_round(top, recordings)) &&
           (top->options->rounds == 0 || top->n_rounds < top->options->rounds);
}

static void
suspend_screen(void *data)
{
    leave_screen(data);
}

static void
resume_screen(void *data)
{
    take_screen(data);
}

static void
exit_at_once(void)
{
    _exit(UPROF_EXIT_FAILED);
}

int
uprof_top_run(UprofOptions *options)
{
    const UprofNotices notices = uprof_options_notices(options);
    g_autoptr(GPtrArray) no_outputs = g_ptr_array_new();
    UprofErrorTally tally = { 0 };
    Top top;
    const UprofRunObserver observer = {
        .looped = show_round,
        .input_fd = key_fd,
        .input = read_keys,
        .suspending = suspend_screen,
        .resumed = resume_screen,
        .sampled = end_screen,
        .abort_run = exit_at_once,
        .leave = uprof_exit_leave,
        .data = &top,
    };

    if (!options->batch && (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))) {
        uprof_say("virt-uprof: 'top' needs a terminal; in a script use --batch --rounds N");
        return UPROF_EXIT_USAGE;
    }
    options->settings.duration_ns = 0;
    options->settings.given.duration = true;
    options->quiet = true;
    init_top(&top, options);
    UprofRecordSettings settings = uprof_options_record(options, &notices);
    settings.outputs = no_outputs;
    settings.is_dry = true;
    settings.observer = &observer;
    settings.calls = calls;
    settings.n_calls = G_N_ELEMENTS(calls);
    const UprofErrorCode code = uprof_record_domains(&settings, &tally);
    clear_top(&top);
    return uprof_exit_of_run(&tally, code);
}
