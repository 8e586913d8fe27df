/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/output.h"

#include "uprof/kind.h"
#include "uprof/processes.h"

#include <string.h>

enum {
    BAR_COLUMNS = 20,
    BAR_EIGHTHS = 8,
    NUMBER_COLUMNS = 16, /* columns before the bar or the name */
    NAME_COLUMNS_MIN = 20,
    INDEX_WIDTH = 6,
};

/* From the sixteen colors of a terminal, which its user has chosen to be readable. */
static const char *const colors[UPROF_N_KINDS] = {
    [UPROF_KIND_APP] = "33",     [UPROF_KIND_KERNEL] = "34", [UPROF_KIND_INTERRUPT] = "35",
    [UPROF_KIND_INLINED] = "32", [UPROF_KIND_IDLE] = "37",   [UPROF_KIND_MARKER] = "37",
    [UPROF_KIND_DOMAIN] = "36",
};

/* Tenths of a percent, as integers: the output must not depend on the locale. */
static void
append_share(GString *out, uint64_t part, uint64_t whole)
{
    const uint64_t tenths = uprof_permille(part, whole);

    g_string_append_printf(out, "%4u.%u", (unsigned)(tenths / 10), (unsigned)(tenths % 10));
}

/* Draws a bar of @part[0] in eighths of a column (U+2588 to U+258F), and after it a pale bar of
 * @part[1]. */
static void
append_bar(GString *out, const UprofTableStyle *style, const uint64_t part[2], uint64_t whole,
           UprofKind kind)
{
    const uint64_t eighths =
        whole > 0 ? (uint64_t)((unsigned __int128)part[0] * BAR_COLUMNS * BAR_EIGHTHS / whole) : 0;
    const uint64_t pale =
        whole > 0 ? (uint64_t)((unsigned __int128)part[1] * BAR_COLUMNS / whole) : 0;
    unsigned columns = 0;

    if (style->colors)
        g_string_append_printf(out, "\x1b[%sm", colors[kind]);
    /* The bar is limited even if the numbers are wrong. */
    for (; columns < MIN(eighths / BAR_EIGHTHS, (uint64_t)BAR_COLUMNS); columns++)
        g_string_append(out, style->unicode ? "\xe2\x96\x88" : "#");
    if (style->unicode && columns < BAR_COLUMNS && eighths % BAR_EIGHTHS > 0) {
        g_string_append_unichar(out, (gunichar)(0x2590 - eighths % BAR_EIGHTHS));
        columns++;
    }
    for (; columns < MIN(pale, (uint64_t)BAR_COLUMNS); columns++)
        g_string_append(out, style->unicode ? "\xc2\xb7" : ".");
    if (style->colors)
        g_string_append(out, "\x1b[0m");
    g_string_append_printf(out, "%*s", (int)(BAR_COLUMNS - columns + 2), "");
}

/* Cuts a long name between characters, so that it does not wrap. */
static void
append_name(GString *out, const UprofTableStyle *style, const char *name, unsigned used)
{
    const unsigned room =
        style->width > used ? MAX(style->width - used, NAME_COLUMNS_MIN) : NAME_COLUMNS_MIN;
    unsigned columns = 0;

    if (style->width == 0) {
        g_string_append(out, name);
        return;
    }
    const char *cut = name;
    for (const char *at = name; *at; at = g_utf8_next_char(at)) {
        columns += g_unichar_iswide(g_utf8_get_char(at)) ? 2 : 1;
        if (columns > room) {
            g_string_append_printf(out, "%.*s..", (int)(cut - name), name);
            return;
        }
        if (columns + 2 <= room)
            cut = g_utf8_next_char(at);
    }
    g_string_append(out, name);
}

void
uprof_table_append(GString *out, const UprofTableStyle *style, const GArray *rows, uint64_t total)
{
    unsigned used = NUMBER_COLUMNS;

    g_string_append(out, style->by != UPROF_BY_FUNCTION ? "kernel   total  " : "  self   total  ");
    if (style->bars) {
        g_string_append_printf(out, "%*s", BAR_COLUMNS + 2, "");
        used += BAR_COLUMNS + 2;
    }
    g_string_append_printf(out, "%s\n", uprof_rows_by_text(style->by, false));
    for (guint i = 0; i < rows->len && i < style->rows; i++) {
        const UprofProfileRow *row = &g_array_index(rows, UprofProfileRow, i);
        append_share(out, row->self, total);
        g_string_append(out, "  ");
        append_share(out, row->total, total);
        g_string_append(out, "  ");
        if (style->bars)
            append_bar(out, style, (uint64_t[]){ row->self, row->total }, total,
                       uprof_kind_of(row->name));
        append_name(out, style, uprof_name_text(row->name), used);
        g_string_append_c(out, '\n');
    }
}

GString *
uprof_table_render(const UprofProfile *profile, const UprofTableStyle *style)
{
    uint64_t halted;
    g_autoptr(GArray) functions = uprof_profile_rows(profile, &halted);
    g_autoptr(GArray) others =
        style->by != UPROF_BY_FUNCTION ? uprof_processes_find(profile, style->by) : NULL;
    const GArray *rows = others ? others : functions;
    const uint64_t total =
        uprof_profile_total(profile) - halted; /* shares are those of running vCPUs */
    GString *out = g_string_new(NULL);

    if (rows->len > 0)
        uprof_table_append(out, style, rows, total);
    if (rows->len > style->rows)
        g_string_append_printf(out, "%u more %s; -n %u shows them all\n", rows->len - style->rows,
                               uprof_rows_by_text(style->by, true), rows->len);
    return out;
}

static void
append_relatives(GString *out, const UprofTableStyle *style, const GArray *relatives,
                 uint64_t total, const char *title)
{
    g_string_append_printf(out, "  share  %s\n", title);
    for (guint i = 0; i < relatives->len && i < style->rows; i++) {
        const UprofProfileRow *row = &g_array_index(relatives, UprofProfileRow, i);
        append_share(out, row->total, total);
        g_string_append(out, "   ");
        if (style->bars)
            append_bar(out, style, (uint64_t[]){ row->total, row->total }, total,
                       uprof_kind_of(row->name));
        append_name(out, style, uprof_name_text(row->name),
                    INDEX_WIDTH + 3 + (style->bars ? BAR_COLUMNS + 2 : 0));
        g_string_append_c(out, '\n');
    }
    if (relatives->len > style->rows)
        g_string_append_printf(out, "  %u more\n", relatives->len - style->rows);
}

GString *
uprof_table_render_focus(const UprofFocus *focus, const UprofTableStyle *style)
{
    GString *out = g_string_new(uprof_name_text(focus->name));

    g_string_append(out, ": self");
    append_share(out, focus->self, focus->all);
    g_string_append(out, " %, total");
    append_share(out, focus->total, focus->all);
    g_string_append(out, " % of samples; shares below are of that total\n");
    append_relatives(out, style, focus->callers, focus->total, "callers");
    append_relatives(out, style, focus->callees, focus->total, "callees");
    return out;
}

static void
append_points(GString *out, int64_t ppm)
{
    const uint64_t tenths = ((uint64_t)ABS(ppm) + 500) / 1000;
    g_autofree char *text = g_strdup_printf("%s%u.%u",
                                            tenths == 0 ? ""
                                            : ppm < 0   ? "-"
                                                        : "+",
                                            (unsigned)(tenths / 10), (unsigned)(tenths % 10));

    g_string_append_printf(out, "%6s", text);
}

static void
append_change(GString *out, const UprofTableStyle *style, const UprofChangeRow *row,
              const uint64_t *all)
{
    const char *color = row->inclusive.ppm > 0 ? "31" : "34";
    const bool is_colored = style->colors && row->inclusive.is_significant;

    append_share(out, row->total[UPROF_OLD], all[UPROF_OLD]);
    append_share(out, row->total[UPROF_NEW], all[UPROF_NEW]);
    g_string_append(out, "  ");
    if (is_colored)
        g_string_append_printf(out, "\x1b[%sm", color);
    append_points(out, row->inclusive.ppm);
    if (is_colored)
        g_string_append(out, "\x1b[0m");
    g_string_append(out, "  ");
    append_points(out, row->own.ppm);
    g_string_append_printf(out, "  %-5s",
                           row->inclusive.is_new    ? "new"
                           : row->inclusive.is_gone ? "gone"
                                                    : "");
    append_name(out, style, uprof_name_text(row->name), 35);
    g_string_append_c(out, '\n');
}

/* @n: functions that are hidden; @has_others: other functions are shown */
static void
append_noise(GString *out, unsigned n, bool has_others)
{
    if (has_others)
        g_string_append_printf(
            out, "%u function%s without a significant change %s hidden (-v shows %s)\n", n,
            n == 1 ? "" : "s", n == 1 ? "is" : "are", n == 1 ? "it" : "them");
    else
        g_string_append_printf(out, "no function has changed significantly (-v shows all %u)\n", n);
}

GString *
uprof_table_render_changes(const UprofTree *both, const UprofTableStyle *style, bool with_noise)
{
    g_autoptr(GArray) rows = uprof_change_rows(both);
    const uint64_t *all = uprof_tree_node(both, 0)->total;
    GString *out = g_string_new("   old   new  change    self       function\n");
    unsigned n_shown = 0, n_noise = 0, n_more = 0;

    for (guint i = 0; i < rows->len; i++) {
        const UprofChangeRow *row = &g_array_index(rows, UprofChangeRow, i);
        const bool is_noise = !row->inclusive.is_significant && !row->own.is_significant;
        n_noise += is_noise;
        if (is_noise && !with_noise)
            continue;
        if (n_shown == style->rows) {
            n_more++;
            continue;
        }
        append_change(out, style, row, all);
        n_shown++;
    }
    if (n_more > 0)
        g_string_append_printf(out, "%u more functions; -n %u shows them all\n", n_more,
                               n_shown + n_more);
    if (n_noise > 0 && !with_noise)
        append_noise(out, n_noise, n_shown > 0);
    return out;
}
