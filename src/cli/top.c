/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "top-priv.h"

#include "commands-priv.h"
#include "summary-priv.h"
#include "terminal-priv.h"
#include "uprof/clock.h"
#include "uprof/processes.h"
#include "uprof/text.h"

#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

/* ECMA-48; the screen of its own is xterm's, and every terminal's since. */
/* another screen, no cursor, and lines that are longer than it do not wrap */
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
    DOMAINS_MAX = 8, /* lines of the head */
    SAID_MAX = 100,
    SAID_SHOWN = 2,
    WEIGHT_UNIT = 1024, /* weights fade in parts of a sample */
    FADE_NUM = 3,       /* of each round's weight so much is left a second later */
    FADE_DEN = 4,
};

/* A function of a domain, or a process. */
typedef struct {
    UprofProfileRow row; /* in parts of a sample */
    guint domain;
    bool is_process;
} Hot;

/*
 * What was seen of a domain until now, and in the last round: ticks there were,
 * those that were missed, and those in which it ran. What it did not run in is
 * told late, when it has run again, so that idle is what is left.
 */
typedef struct {
    uint64_t elapsed_ns, missed;
    uint64_t ticks, ran;
} Seen;

struct _UprofTop {
    const UprofOptions *options;
    bool is_screen;  /* not --batch */
    bool has_screen; /* it is ours now; not in the background */
    struct termios before;
    GPtrArray *said;  /* of char */
    GHashTable *hots; /* Hot by itself: domain and name */
    GArray *seen;     /* of Seen, by domain */
    bool by_total;
    bool by_process;
    uint64_t next_ns;
    unsigned n_rounds;
};

static guint
hash_hot(gconstpointer key)
{
    const Hot *hot = key;

    return (g_direct_hash(hot->row.name) * 31 + hot->domain) * 2 + hot->is_process;
}

static gboolean
equal_hots(gconstpointer a, gconstpointer b)
{
    const Hot *one = a, *other = b;

    return one->row.name == other->row.name && one->domain == other->domain &&
           one->is_process == other->is_process;
}

/* ---- The screen ---- */

static void
write_stdout(const char *text)
{
    fputs(text, stdout);
    fflush(stdout);
}

/*
 * Whether the terminal listens to us, and not to a shell that has put us into the
 * background. All signals are blocked, SIGTTOU and SIGTTIN too: the kernel would
 * let us take it all the same.
 */
static bool
is_foreground(void)
{
    const pid_t group = tcgetpgrp(STDIN_FILENO);

    return group < 0 || group == getpgrp();
}

void
uprof_top_enter(UprofTop *top)
{
    struct termios raw = top->before;

    if (!top->is_screen || top->has_screen || !is_foreground())
        return;
    top->has_screen = true;
    /* signals stay: they end the run as any other */
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    write_stdout(TAKE_SCREEN);
    uprof_say_divert(top->said);
}

void
uprof_top_leave(UprofTop *top)
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

UprofTop *
uprof_top_new(const UprofOptions *options)
{
    UprofTop *top = g_new0(UprofTop, 1);

    top->options = options;
    top->is_screen = !options->batch && tcgetattr(STDIN_FILENO, &top->before) == 0;
    top->by_total = g_strcmp0(options->sort, "total") == 0;
    top->by_process = options->by_process;
    top->said = g_ptr_array_new_with_free_func(g_free);
    top->hots = g_hash_table_new_full(hash_hot, equal_hots, g_free, NULL);
    top->seen = g_array_new(FALSE, TRUE, sizeof(Seen));
    top->next_ns = uprof_clock_now_ns() + ROUND_NS;
    uprof_top_enter(top);
    return top;
}

void
uprof_top_free(UprofTop *top)
{
    if (!top)
        return;
    uprof_top_leave(top);
    for (guint i = 0; i < top->said->len; i++)
        uprof_say("%s", (const char *)g_ptr_array_index(top->said, i));
    g_ptr_array_unref(top->said);
    g_hash_table_unref(top->hots);
    g_array_unref(top->seen);
    g_free(top);
}

int
uprof_top_fd(const UprofTop *top)
{
    return top->has_screen && is_foreground() ? STDIN_FILENO : -1;
}

/* ---- Numbers ---- */

/* Of a screen what was seen before fades, so that it does not flicker; a script gets each round. */
static void
fade(UprofTop *top)
{
    GHashTableIter iter;
    gpointer key;

    g_hash_table_iter_init(&iter, top->hots);
    while (g_hash_table_iter_next(&iter, &key, NULL)) {
        Hot *hot = key;
        hot->row.self = top->is_screen ? hot->row.self * FADE_NUM / FADE_DEN : 0;
        hot->row.total = top->is_screen ? hot->row.total * FADE_NUM / FADE_DEN : 0;
        if (hot->row.total == 0)
            g_hash_table_iter_remove(&iter);
    }
}

static void
add_rows(UprofTop *top, guint domain, const GArray *rows, bool are_processes)
{
    for (guint i = 0; i < rows->len; i++) {
        const UprofProfileRow *row = &g_array_index(rows, UprofProfileRow, i);
        Hot key = { .row.name = row->name, .domain = domain, .is_process = are_processes };
        Hot *hot = g_hash_table_lookup(top->hots, &key);
        if (!hot) {
            hot = g_new(Hot, 1);
            *hot = key;
            g_hash_table_add(top->hots, hot);
        }
        hot->row.self += row->self * WEIGHT_UNIT;
        hot->row.total += row->total * WEIGHT_UNIT;
    }
}

static bool
has_processes(const UprofSession *session)
{
    return g_atomic_pointer_get(uprof_linux_links(session->pipeline->kernel)) != NULL;
}

static void
add_profile(UprofTop *top, guint domain, const UprofSession *session, const UprofProfile *profile)
{
    g_autoptr(GArray) functions = uprof_profile_rows(profile, NULL);

    add_rows(top, domain, functions, false);
    if (!has_processes(session))
        return;
    g_autoptr(GArray) processes = uprof_processes_find(profile);
    add_rows(top, domain, processes, true);
}

static uint64_t
count_missed(const UprofSamplerCounts *counts)
{
    return counts->late + counts->busy + counts->skipped + counts->stuck;
}

static unsigned
count_vcpus(const UprofSession *session)
{
    unsigned n = 0;

    for (uint64_t i = 0; i < session->run->vcpus; i++)
        n += session->wanted[i];
    return n;
}

static void
look_at_domain(UprofTop *top, guint domain, const UprofSession *session)
{
    g_autoptr(UprofProfile) profile = uprof_pipeline_take_profile(session->pipeline);
    UprofSamplerCounts counts;

    uprof_sampler_counts(session->sampler, &counts);
    if (top->seen->len <= domain)
        g_array_set_size(top->seen, domain + 1);
    Seen *seen = &g_array_index(top->seen, Seen, domain);
    const uint64_t missed = count_missed(&counts);
    const uint64_t new_missed = missed > seen->missed ? missed - seen->missed : 0;
    const uint64_t new_ns =
        counts.elapsed_ns > seen->elapsed_ns ? counts.elapsed_ns - seen->elapsed_ns : 0;
    const uint64_t due = (uint64_t)((unsigned __int128)new_ns * session->run->rate_mhz *
                                    count_vcpus(session) / (1000 * UPROF_NS_PER_S));
    seen->ran = uprof_profile_total(profile);
    seen->ticks = MAX(due > new_missed ? due - new_missed : 0, seen->ran);
    seen->missed = missed;
    seen->elapsed_ns = counts.elapsed_ns;
    add_profile(top, domain, session, profile);
}

static int
compare_self(gconstpointer a, gconstpointer b)
{
    const Hot *one = *(const Hot *const *)a, *other = *(const Hot *const *)b;

    if (one->row.self != other->row.self)
        return one->row.self > other->row.self ? -1 : 1;
    if (one->row.total != other->row.total)
        return one->row.total > other->row.total ? -1 : 1;
    return strcmp(uprof_name_text(one->row.name), uprof_name_text(other->row.name));
}

static int
compare_total(gconstpointer a, gconstpointer b)
{
    const Hot *one = *(const Hot *const *)a, *other = *(const Hot *const *)b;

    if (one->row.total != other->row.total)
        return one->row.total > other->row.total ? -1 : 1;
    return compare_self(a, b);
}

/* Returns: (transfer full): UprofProfileRow of the hottest; @labels: (out): domains beside them */
static GArray *
sort_rows(const UprofTop *top, guint max, GArray **labels, uint64_t *total)
{
    g_autoptr(GPtrArray) hots = g_ptr_array_new();
    GArray *rows = g_array_new(FALSE, FALSE, sizeof(UprofProfileRow));
    GHashTableIter iter;
    gpointer key;

    *labels = g_array_new(FALSE, FALSE, sizeof(guint));
    *total = 0;
    g_hash_table_iter_init(&iter, top->hots);
    while (g_hash_table_iter_next(&iter, &key, NULL)) {
        const Hot *hot = key;
        if (hot->is_process != top->by_process)
            continue;
        *total += top->by_process ? hot->row.total : hot->row.self;
        g_ptr_array_add(hots, key);
    }
    g_ptr_array_sort(hots, top->by_total || top->by_process ? compare_total : compare_self);
    for (guint i = 0; i < hots->len && i < max; i++) {
        const Hot *hot = g_ptr_array_index(hots, i);
        g_array_append_val(rows, hot->row);
        g_array_append_val(*labels, hot->domain);
    }
    return rows;
}

/* ---- Text ---- */

static void
append_domain(GString *out, const UprofTop *top, const UprofSession *session, const Seen *seen)
{
    UprofSamplerCounts counts;

    uprof_sampler_counts(session->sampler, &counts);
    g_autofree char *busy = uprof_format_percent(seen->ran, seen->ticks);
    g_autofree char *idle = uprof_format_percent(seen->ticks - seen->ran, seen->ticks);
    g_autofree char *held = uprof_format_percent(counts.most_held_ns, MAX(counts.elapsed_ns, 1));
    g_string_append_printf(out,
                           "%s: %s %% busy, %s %% idle, %" G_GUINT64_FORMAT
                           " samples in this round, %" G_GUINT64_FORMAT
                           " missed in all, each vCPU held %s %%%s%s\n",
                           session->shown, busy, idle, seen->ran, seen->missed, held,
                           top->by_process && !has_processes(session) ? ", no processes known" : "",
                           counts.end != UPROF_SAMPLER_RUNNING ? " (ended)" : "");
}

static void
append_domains(GString *out, const UprofTop *top, const GPtrArray *recordings)
{
    for (guint i = 0; i < recordings->len && i < top->seen->len; i++) {
        const UprofRecording *recording = g_ptr_array_index(recordings, i);
        if (i == DOMAINS_MAX && top->is_screen) {
            g_string_append_printf(out, "and %u more domains\n", recordings->len - i);
            return;
        }
        append_domain(out, top, recording->session, &g_array_index(top->seen, Seen, i));
    }
}

/* One table for all; with several domains each function has its domain behind it. */
static void
append_table(GString *out, const UprofTop *top, const GPtrArray *recordings,
             const UprofTableStyle *style)
{
    g_autoptr(GArray) labels = NULL;
    uint64_t total;
    g_autoptr(GArray) rows = sort_rows(top, style->rows, &labels, &total);
    GString *table = g_string_new(NULL);

    uprof_table_append(table, style, rows, total);
    g_auto(GStrv) lines = g_strsplit(table->str, "\n", -1);
    for (guint i = 0; lines[i] && lines[i][0]; i++) {
        g_string_append(out, lines[i]);
        if (i > 0 && recordings->len > 1) {
            const UprofRecording *recording =
                g_ptr_array_index(recordings, g_array_index(labels, guint, i - 1));
            g_string_append_printf(out, "  (%s)", recording->session->shown);
        }
        g_string_append_c(out, '\n');
    }
    g_string_free(table, TRUE);
}

static GString *
make_batch(const UprofTop *top, const GPtrArray *recordings)
{
    const UprofTableStyle style = {
        .rows = top->options->rows > 0 ? top->options->rows : ROWS_USUAL,
        .by_process = top->by_process,
    };
    GString *out = g_string_new(top->n_rounds > 1 ? "\n" : NULL);

    append_domains(out, top, recordings);
    append_table(out, top, recordings, &style);
    return out;
}

/* Lines as they are, each cleared behind its end, and cut where the screen ends. */
static GString *
make_screen(const UprofTop *top, const GPtrArray *recordings)
{
    g_autoptr(GString) text = g_string_new(NULL);
    GString *out = g_string_new(HOME);
    unsigned lines, columns;

    uprof_terminal_size(STDOUT_FILENO, &lines, &columns);
    const guint head = MIN(recordings->len, DOMAINS_MAX + 1) + 1;
    const unsigned room = lines > head + 4 + SAID_SHOWN ? lines - head - 4 - SAID_SHOWN : 1;
    UprofTableStyle style =
        uprof_terminal_style(top->options->rows > 0 ? MIN(top->options->rows, room) : room);
    /* names of domains stand behind those of functions */
    style.width = recordings->len > 1 && style.width > 60 ? style.width - 20 : style.width;
    style.by_process = top->by_process;
    append_domains(text, top, recordings);
    g_string_append_printf(
        text, "%s%s sorted by %s; keys: s self, t total, p processes, q quit%s\n\n",
        style.colors ? BOLD : "", top->by_process ? "processes" : "functions",
        top->by_total || top->by_process ? "total" : "self", style.colors ? PLAIN : "");
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
show(const UprofTop *top, const GPtrArray *recordings)
{
    if (top->is_screen && !top->has_screen)
        return true;
    return uprof_terminal_print(top->is_screen ? make_screen(top, recordings)
                                               : make_batch(top, recordings)) == UPROF_EXIT_OK;
}

bool
uprof_top_read_key(UprofTop *top, const GPtrArray *recordings)
{
    char key;

    while (read(STDIN_FILENO, &key, 1) == 1) {
        if (key == 'q' || key == 'Q')
            return false;
        if (key == 's' || key == 't' || key == 'p') {
            top->by_process = key == 'p';
            top->by_total = key == 't';
            show(top, recordings);
        }
    }
    return true;
}

bool
uprof_top_round(UprofTop *top, const GPtrArray *recordings)
{
    const uint64_t now_ns = uprof_clock_now_ns();

    if (now_ns < top->next_ns)
        return true;
    top->next_ns = MAX(top->next_ns + ROUND_NS, now_ns);
    if (top->said->len > SAID_MAX)
        g_ptr_array_remove_range(top->said, 0, top->said->len - SAID_MAX);
    if (!is_foreground())
        uprof_top_leave(top);
    else
        uprof_top_enter(top);
    fade(top);
    for (guint i = 0; i < recordings->len; i++) {
        const UprofRecording *recording = g_ptr_array_index(recordings, i);
        look_at_domain(top, i, recording->session);
    }
    top->n_rounds++;
    return show(top, recordings) &&
           (top->options->rounds == 0 || top->n_rounds < top->options->rounds);
}

int
uprof_top_run(UprofOptions *options)
{
    if (!options->batch && (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))) {
        uprof_say("virt-uprof: 'top' needs a terminal; for scripts: --batch --rounds N");
        return UPROF_EXIT_USAGE;
    }
    options->settings.duration_ns = 0;
    options->settings.given.duration = true;
    options->quiet = true;
    return uprof_record_run(options);
}
