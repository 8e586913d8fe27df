/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * top.c - the command top: the hottest functions of running domains, once a second
 *
 * On a terminal the command uses the alternate screen, and restores the terminal at the end. With
 * --batch the command prints plain text, round after round.
 */
#include "commands-priv.h"

#include "exit-priv.h"
#include "uprof/record-domains.h"
#include "terminal-priv.h"
#include "uprof/clock.h"
#include "uprof/text.h"
#include "uprof/top-picture.h"
#include "uprof/top-round.h"
#include "uprof/top-text.h"

#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

/* Control sequences of ECMA-48; the alternate screen is an extension of xterm's. */
/* alternate screen, no cursor, no wrapping of long lines */
#define TAKE_SCREEN "\x1b[?1049h\x1b[?25l\x1b[?7l"
#define GIVE_SCREEN "\x1b[?7h\x1b[?25h\x1b[?1049l"

enum {
    ROUND_NS = 1000 * 1000 * 1000,
    ROWS_USUAL = 15,
    SAID_MAX = 100, /* messages that are kept for the end */
};

typedef struct {
    const UprofOptions *options;
    bool is_screen;        /* shows a screen on the terminal; false with --batch */
    bool has_screen;       /* the alternate screen is on; false in the background */
    struct termios before; /* the terminal's settings at the start */
    GPtrArray *said;       /* of char: messages that arrived while the screen was on; owned */
    UprofHotRows *rows;    /* owned */
    GArray *domains;       /* of UprofTopDomain; owned */
    UprofTopChoice choice;
    uint64_t next_ns;  /* when the next round is shown; 0 before the first */
    unsigned n_rounds; /* rounds that were shown */
} Top;

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
    top->choice.by_total = g_strcmp0(options->sort, "total") == 0;
    top->choice.by = options->by;
    top->choice.has_cgroups = options->settings.cgroups;
    top->said = g_ptr_array_new_with_free_func(g_free);
    top->rows = uprof_hot_rows_new();
    top->domains = g_array_new(FALSE, TRUE, sizeof(UprofTopDomain));
}

static void
clear_top(Top *top)
{
    g_ptr_array_unref(top->said);
    uprof_hot_rows_free(top->rows);
    g_array_unref(top->domains);
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
    if (top->choice.keeps_all)
        return;
    if (top->is_screen)
        uprof_hot_rows_fade(top->rows);
    else
        uprof_hot_rows_clear(top->rows);
}

enum { CALL_ROUND, CALL_PICTURE };

static const UprofAnalysisCall calls[] = {
    [CALL_ROUND] = uprof_top_round_make,
    [CALL_PICTURE] = uprof_top_picture_draw,
};

static void
measure_domain(Top *top, guint i, const UprofSession *session)
{
    if (top->domains->len <= i)
        g_array_set_size(top->domains, i + 1);
    uprof_top_domain_measure(&g_array_index(top->domains, UprofTopDomain, i), session, CALL_ROUND,
                             top->rows, i);
}

/* ---- Text ---- */

static GString *
make_batch(const Top *top, const UprofTopView *view)
{
    GString *out =
        uprof_top_text_batch(view, top->options->rows > 0 ? top->options->rows : ROWS_USUAL);

    return top->n_rounds > 1 ? g_string_prepend_c(out, '\n') : out;
}

static GString *
make_screen(const Top *top, const UprofTopView *view)
{
    const UprofTableStyle style = uprof_terminal_style(top->options->rows);
    unsigned lines, columns;

    uprof_terminal_size(STDOUT_FILENO, &lines, &columns);
    return uprof_top_text_screen(view, lines, &style);
}

static bool
print_round(const Top *top)
{
    const UprofTopView view = { &top->choice, top->rows, top->domains, top->said };

    if (top->is_screen && !top->has_screen)
        return true;
    return uprof_terminal_print(top->is_screen ? make_screen(top, &view)
                                               : make_batch(top, &view)) == UPROF_ERROR_NONE;
}

/* Writes a picture of each domain into the current folder. */
static void
write_pictures(Top *top, const GPtrArray *recordings)
{
    for (guint i = 0; i < recordings->len; i++) {
        const UprofRecording *recording = g_ptr_array_index(recordings, i);
        g_autoptr(GError) error = NULL;
        g_autofree char *path = uprof_top_picture_save(recording->session, CALL_PICTURE, &error);
        if (path)
            uprof_say("wrote %s", path);
        else
            uprof_say_error(error);
    }
}

static bool
read_keys(const GPtrArray *recordings, void *data)
{
    Top *top = data;
    bool is_changed = false;
    char key;

    while (read(STDIN_FILENO, &key, 1) == 1) {
        const bool is_text = top->choice.reads_pattern;
        if (!is_text && (key == 'q' || key == 'Q'))
            return false;
        if (!is_text && key == 'w')
            write_pictures(top, recordings);
        else if (uprof_top_choice_take_key(&top->choice, key))
            uprof_hot_rows_clear(top->rows);
        is_changed = true;
    }
    if (is_changed)
        print_round(top);
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
    const bool stays = top->choice.is_paused && had_screen;
    return (stays || print_round(top)) &&
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
    options->settings.per_vcpu = true; /* for the view of vCPUs */
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
