/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/top-text.h"

#include "hot-rows-priv.h"
#include "uprof/clock.h"
#include "uprof/number-text.h"
#include "uprof/settings.h"

/* Control sequences of ECMA-48 */
#define HOME "\x1b[H"
#define CLEAR_LINE "\x1b[K"
#define CLEAR_BELOW "\x1b[J"
#define BOLD "\x1b[1m"
#define PLAIN "\x1b[0m"

enum {
    DOMAINS_MAX = 8,     /* domains at the top of the screen */
    SAID_SHOWN = 2,      /* messages at the bottom of the screen */
    OTHER_LINES = 4,     /* title, blank line, head of the table, and a line that stays free */
    DOMAIN_COLUMNS = 20, /* for the name of the domain behind a row, ... */
    WIDE_COLUMNS = 60,   /* ... if the screen is wider than this */
};

static const UprofTopDomain *
get_domain(const UprofTopView *view, guint i)
{
    return &g_array_index(view->domains, UprofTopDomain, i);
}

/* Does the domain have no rows, because they are those of processes? */
static bool
lacks_processes(const UprofTopView *view, const UprofTopDomain *domain)
{
    return view->choice->by >= UPROF_BY_PROCESS && !domain->has_processes;
}

static void
append_domain(GString *out, const UprofTopView *view, const UprofTopDomain *domain)
{
    const UprofBusyShare *share = &domain->share;
    g_autofree char *busy = uprof_format_percent(share->ran, share->ticks);
    g_autofree char *idle = uprof_format_percent(share->ticks - share->ran, share->ticks);
    g_autofree char *held = uprof_format_percent(domain->most_held_ns, MAX(domain->elapsed_ns, 1));
    g_autofree char *rate = uprof_settings_format_rate(domain->rate_mhz);

    /* a narrow screen cuts the end of the line */
    g_string_append_printf(
        out,
        "%s%s%s: %s %% busy, %s %% idle, %" G_GUINT64_FORMAT
        " samples in this round, %" G_GUINT64_FORMAT
        " missed in total, each vCPU held %s %%; asked %s Hz for %" G_GUINT64_FORMAT " s\n",
        domain->shown, domain->is_ended ? " (ended)" : "",
        lacks_processes(view, domain) ? " (processes unknown)" : "", busy, idle, share->ran,
        share->missed, held, rate, domain->elapsed_ns / UPROF_NS_PER_S);
}

static void
append_domains(GString *out, const UprofTopView *view, guint max)
{
    for (guint i = 0; i < view->domains->len; i++) {
        if (i == max) {
            g_string_append_printf(out, "and %u more domains\n", view->domains->len - i);
            return;
        }
        append_domain(out, view, get_domain(view, i));
    }
}

/* Appends one table for all domains. If there are several, each row ends with its domain. */
static void
append_table(GString *out, const UprofTopView *view, const GArray *hots, uint64_t total,
             const UprofTableStyle *style)
{
    g_autoptr(GArray) rows = g_array_new(FALSE, FALSE, sizeof(UprofProfileRow));
    GString *table = g_string_new(NULL);

    for (guint i = 0; i < hots->len; i++)
        g_array_append_val(rows, g_array_index(hots, UprofHotRow, i).row);
    uprof_table_append(table, style, rows, total);
    g_auto(GStrv) lines = g_strsplit(table->str, "\n", -1);
    for (guint i = 0; lines[i] && lines[i][0]; i++) {
        g_string_append(out, lines[i]);
        if (i > 0 && view->domains->len > 1)
            g_string_append_printf(
                out, "  (%s)",
                get_domain(view, g_array_index(hots, UprofHotRow, i - 1).domain)->shown);
        g_string_append_c(out, '\n');
    }
    g_string_free(table, TRUE);
}

static GArray *
list_rows(const UprofTopView *view, unsigned max, uint64_t *total)
{
    const UprofTopChoice *choice = view->choice;
    const UprofHotChoice hot = { choice->by, choice->by_total, choice->pattern, max };

    return uprof_hot_rows_list(view->rows, &hot, total);
}

/* @choice: what shows functions. Returns: (transfer full): the reason for an empty table */
static char *
explain_nothing(const UprofTopView *view, const char *choice)
{
    bool lack_all = view->domains->len > 0;

    for (guint i = 0; i < view->domains->len; i++)
        lack_all = lack_all && lacks_processes(view, get_domain(view, i));
    if (lack_all)
        return g_strdup_printf("no processes are known: the guest is no Linux, or its kernel was "
                               "not found yet; %s shows functions\n",
                               choice);
    return g_strdup(view->choice->pattern[0] ? "no row has this text\n"
                                             : "no samples: no vCPU runs, or none was sampled "
                                               "yet\n");
}

GString *
uprof_top_text_batch(const UprofTopView *view, unsigned rows_max)
{
    const UprofTableStyle style = { .rows = rows_max, .by = view->choice->by };
    GString *out = g_string_new(NULL);
    uint64_t total;
    g_autoptr(GArray) hots = list_rows(view, rows_max, &total);

    append_domains(out, view, G_MAXUINT);
    if (hots->len == 0) {
        g_autofree char *reason = explain_nothing(view, "--by function");
        g_string_append(out, reason);
    }
    append_table(out, view, hots, total, &style);
    return out;
}

static const char help_text[] =
    "  s  functions by self: samples in the function itself\n"
    "  t  functions by total: with the functions that it calls\n"
    "  p  processes    c  cgroups, with --cgroups    v  vCPUs\n"
    "  a  add up all samples, or only those of the last ten seconds\n"
    "  r  begin again with no samples\n"
    "  w  write a picture of all samples since the start\n"
    "  /  show only rows with a text; Enter ends the text, Esc drops it\n"
    "  space  keep the screen as it is\n"
    "  ?  this help    q  quit\n";

/* How the table is made, and what else can be done. */
static void
append_title(GString *out, const UprofTopView *view, bool colors)
{
    const UprofTopChoice *choice = view->choice;

    g_string_append_printf(out, "%s%s sorted by %s, %s", colors ? BOLD : "",
                           uprof_rows_by_text(choice->by, true),
                           choice->by_total || choice->by != UPROF_BY_FUNCTION ? "total" : "self",
                           choice->keeps_all ? "all samples" : "the last ten seconds");
    if (choice->pattern[0] || choice->reads_pattern)
        g_string_append_printf(out, ", with '%s%s'", choice->pattern,
                               choice->reads_pattern ? "_" : "");
    g_string_append_printf(
        out, "%s; %s%s\n\n", view->domains->len > 1 ? ", in percent of each domain" : "",
        choice->is_paused ? "PAUSED, space goes on" : "? for keys", colors ? PLAIN : "");
}

static void
append_rows(GString *out, const UprofTopView *view, const UprofTableStyle *style)
{
    uint64_t total;
    g_autoptr(GArray) hots = list_rows(view, style->rows, &total);

    if (hots->len == 0) {
        g_autofree char *reason = explain_nothing(view, "s");
        g_string_append(out, reason);
    }
    append_table(out, view, hots, total, style);
}

static void
append_said(GString *out, const GPtrArray *said)
{
    for (guint i = said->len > SAID_SHOWN ? said->len - SAID_SHOWN : 0; i < said->len; i++)
        g_string_append_printf(out, "%s\n", (const char *)g_ptr_array_index(said, i));
}

/* Limits the rows and their width to the room that the other lines and columns leave. */
static UprofTableStyle
fit_style(const UprofTopView *view, unsigned lines, const UprofTableStyle *style)
{
    const guint n_domains = view->domains->len;
    const guint others = MIN(n_domains, DOMAINS_MAX + 1) + 1 + OTHER_LINES + SAID_SHOWN;
    const unsigned room = lines > others ? lines - others : 1;
    UprofTableStyle fit = *style;

    fit.rows = style->rows > 0 ? MIN(style->rows, room) : room;
    fit.width -= n_domains > 1 && style->width > WIDE_COLUMNS ? DOMAIN_COLUMNS : 0;
    fit.by = view->choice->by;
    return fit;
}

GString *
uprof_top_text_screen(const UprofTopView *view, unsigned lines, const UprofTableStyle *style)
{
    const UprofTableStyle fit = fit_style(view, lines, style);
    g_autoptr(GString) text = g_string_new(NULL);
    GString *out = g_string_new(HOME);

    append_domains(text, view, DOMAINS_MAX);
    append_title(text, view, style->colors);
    if (view->choice->shows_help)
        g_string_append(text, help_text);
    else
        append_rows(text, view, &fit);
    append_said(text, view->said);
    g_auto(GStrv) words = g_strsplit(text->str, "\n", -1);
    for (guint i = 0; words[i] && i + 1 < lines; i++)
        g_string_append_printf(out, "%s" CLEAR_LINE "\r\n", words[i]);
    return g_string_append(out, CLEAR_BELOW);
}
