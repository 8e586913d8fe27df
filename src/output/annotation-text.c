/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/output.h"

#include "uprof/number-text.h"

#include <string.h>

enum {
    SHARE_COLUMNS = 6,
    CONTEXT = 8, /* instructions before a sample, and behind it, that are shown */
};

/* Shares from which the colors of a terminal stand out, in thousandths */
enum { HOT_PERMILLE = 50, WARM_PERMILLE = 5 };

static void
append_share(GString *out, const UprofTableStyle *style, uint64_t samples, uint64_t self)
{
    const uint64_t permille = uprof_permille(samples, self);
    const char *color = permille >= HOT_PERMILLE ? "31" : permille >= WARM_PERMILLE ? "33" : NULL;
    g_autofree char *percent = uprof_format_percent(samples, self);

    if (samples == 0)
        g_string_append_printf(out, "%*s", SHARE_COLUMNS, "");
    else if (style->colors && color)
        g_string_append_printf(out, "\x1b[%sm%*s\x1b[0m", color, SHARE_COLUMNS, percent);
    else
        g_string_append_printf(out, "%*s", SHARE_COLUMNS, percent);
}

static void
append_lines(GString *out, const UprofTableStyle *style, const UprofAnnotation *annotation)
{
    g_autoptr(GArray) lines = uprof_annotation_lines(annotation);

    if (lines->len == 0)
        return;
    g_string_append(out, "\n share  line\n");
    for (guint i = 0; i < lines->len && i < style->rows; i++) {
        const UprofAnnotatedLine *line = &g_array_index(lines, UprofAnnotatedLine, i);
        append_share(out, style, line->samples, uprof_annotation_self(annotation));
        g_string_append_printf(out, "  %s\n", line->line ? line->line : "no known line");
    }
    if (lines->len > style->rows)
        g_string_append_printf(out, "%u more lines; -n %u shows them all\n",
                               lines->len - style->rows, lines->len);
}

static const UprofAnnotatedInsn *
get_insn(const UprofAnnotatedFunction *function, guint i)
{
    return &g_array_index(function->insns, UprofAnnotatedInsn, i);
}

static bool
has_code(const UprofAnnotatedFunction *function)
{
    for (guint i = 0; i < function->insns->len; i++)
        if (get_insn(function, i)->text)
            return true;
    return false;
}

/* Returns: the first instruction from @i on that is near a sample; their number if there is none */
static guint
find_shown(const UprofAnnotatedFunction *function, guint i)
{
    guint sampled = i > CONTEXT ? i - CONTEXT : 0;

    while (sampled < function->insns->len && get_insn(function, sampled)->samples == 0)
        sampled++;
    if (sampled == function->insns->len)
        return sampled;
    return sampled > CONTEXT ? MAX(i, sampled - CONTEXT) : i;
}

static void
append_insn(GString *out, const UprofTableStyle *style, const UprofAnnotatedInsn *insn,
            int address_columns, uint64_t self)
{
    append_share(out, style, insn->samples, self);
    g_string_append_printf(out, "  %*" G_GINT64_MODIFIER "x  %s", address_columns, insn->address,
                           insn->text ? insn->text : "?");
    if (insn->callee)
        g_string_append_printf(out, " <%s>", insn->callee);
    g_string_append_c(out, '\n');
}

static int
count_digits(uint64_t address)
{
    int n = 1;

    for (; address >= 16; address /= 16)
        n++;
    return n;
}

/* Leaves out instructions far from all samples. A line of the source stands before its
 * instructions. */
static void
append_insns(GString *out, const UprofTableStyle *style, const UprofAnnotatedFunction *function,
             uint64_t self)
{
    const guint n = function->insns->len;
    const int columns = MAX(count_digits(get_insn(function, n - 1)->address), 7);
    const int indent = SHARE_COLUMNS + columns + 4;
    const char *line = NULL;

    g_string_append_printf(out, " share  %*s  instruction\n", columns, "address");
    for (guint i = 0; i < n; i++) {
        const guint shown = find_shown(function, i);
        if (shown > i) {
            g_string_append_printf(out, "%*s... %u without samples\n", indent, "", shown - i);
            line = NULL;
        }
        if (shown == n)
            return;
        i = shown;
        const UprofAnnotatedInsn *insn = get_insn(function, i);
        if (insn->line && insn->line != line)
            g_string_append_printf(out, "%*s%s:\n", indent - 2, "", insn->line);
        line = insn->line;
        append_insn(out, style, insn, columns, self);
    }
}

static void
append_function(GString *out, const UprofTableStyle *style, const UprofAnnotatedFunction *function,
                uint64_t self)
{
    g_string_append_printf(out,
                           "\n%s%sfrom %" G_GINT64_MODIFIER "x on: %" G_GUINT64_FORMAT " samples\n",
                           function->image ? function->image : "", function->image ? " " : "",
                           function->start, function->self);
    if (!has_code(function))
        g_string_append(out, "the code is neither in a file nor in the capture: give its file with "
                             "-s, or its folder with --sysroot\n");
    append_insns(out, style, function, self);
}

GString *
uprof_annotation_render(const UprofAnnotation *annotation, const char *name,
                        const UprofTableStyle *style)
{
    const uint64_t self = uprof_annotation_self(annotation);
    g_autofree char *percent = uprof_format_percent(self, annotation->all);
    GString *out = g_string_new(name);

    g_string_append_printf(out,
                           ": %" G_GUINT64_FORMAT " samples in the function itself, %s %% of all; "
                           "shares below are of these\n",
                           self, percent);
    append_lines(out, style, annotation);
    for (guint i = 0; i < annotation->functions->len; i++)
        append_function(out, style, g_ptr_array_index(annotation->functions, i), self);
    if (annotation->n_left_out > 0)
        g_string_append_printf(out,
                               "%" G_GUINT64_FORMAT
                               " samples of the profile are not counted by address: there are too "
                               "many addresses\n",
                               annotation->n_left_out);
    return out;
}
