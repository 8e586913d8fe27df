/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "check-outputs.h"

#include <json-glib/json-glib.h>
#include <libxml/parser.h>
#include <string.h>

#include "uprof/gzip.h"
#include "uprof/pprof-reader.h"

enum { PERF_SAMPLES_MAX = 1000 };

/* Aborts at control characters other than line ends, tabs and, with @has_colors, ESC. */
static void
check_text(const GString *text, bool has_colors)
{
    g_assert(g_utf8_validate(text->str, (gssize)text->len, NULL));
    for (gsize i = 0; i < text->len; i++) {
        const uint8_t c = (uint8_t)text->str[i];
        g_assert(c >= ' ' || c == '\n' || c == '\t' || (has_colors && c == '\x1b'));
        g_assert(c != 0x7f);
    }
}

static void
check_json(GString *text)
{
    g_autoptr(JsonParser) parser = json_parser_new();
    g_autoptr(GError) error = NULL;

    check_text(text, false);
    if (!json_parser_load_from_data(parser, text->str, (gssize)text->len, &error))
        g_error("JSON: %s in: %s", error->message, text->str);
    g_string_free(text, TRUE);
}

static void
check_svg(GString *text)
{
    if (text->len > 0) {
        xmlDoc *document = xmlReadMemory(text->str, (int)text->len, "svg", NULL,
                                         XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING |
                                             XML_PARSE_HUGE);
        if (!document)
            g_error("SVG: %s", xmlGetLastError()->message);
        xmlFreeDoc(document);
    }
    g_string_free(text, TRUE);
}

/* ---- Stacks that can be read again ---- */

static void
add_count(const UprofSlice *frames, unsigned n, bool is_cut, uint64_t count, void *data)
{
    *(uint64_t *)data += count;
}

static void
find_depth(const UprofName *const *frames, unsigned n, uint64_t weight, void *data)
{
    unsigned *depth = data;

    *depth = MAX(*depth, n);
}

/* Readers accept no more than their documented limits. */
static bool
is_within_limits(const UprofProfile *profile)
{
    unsigned depth = 0;

    uprof_profile_walk(profile, find_depth, &depth);
    return depth < UPROF_FOLDED_FRAMES_MAX &&
           uprof_profile_total(profile) <= UPROF_FOLDED_WEIGHT_MAX;
}

static void
check_folded(const UprofProfile *profile, UprofSlice text)
{
    g_autoptr(GError) error = NULL;
    uint64_t sum = 0;

    if (!is_within_limits(profile))
        return;
    if (!uprof_folded_parse("folded", text, add_count, &sum, &error))
        g_error("folded: %s", error->message);
    g_assert(sum == uprof_profile_total(profile));
}

static void
check_folded_files(const UprofProfile *profile, const UprofRun *run)
{
    GString *text = uprof_output_render(&uprof_format_folded, profile, run);
    GString *packed = uprof_output_render(&uprof_format_folded_gz, profile, run);
    g_autoptr(GError) error = NULL;

    check_text(text, false);
    check_folded(profile, (UprofSlice){ text->str, text->len });
    g_autoptr(GByteArray) unpacked =
        uprof_gzip_inflate("packed", (UprofSlice){ packed->str, packed->len }, &error);
    if (!unpacked)
        g_error("folded.gz: %s", error->message);
    g_assert(unpacked->len == text->len &&
             (text->len == 0 || memcmp(unpacked->data, text->str, text->len) == 0));
    g_string_free(text, TRUE);
    g_string_free(packed, TRUE);
}

static void
check_pprof(const UprofProfile *profile, const UprofRun *run)
{
    GString *packed = uprof_output_render(&uprof_format_pprof, profile, run);
    g_autoptr(GError) error = NULL;
    UprofPprofFacts facts;
    uint64_t sum = 0;

    g_autoptr(GByteArray) bytes =
        uprof_gzip_inflate("packed", (UprofSlice){ packed->str, packed->len }, &error);
    if (!bytes)
        g_error("pprof: %s", error->message);
    if (is_within_limits(profile) && uprof_profile_total(profile) > 0) {
        if (!uprof_pprof_parse("pprof", (UprofSlice){ bytes->data, bytes->len }, &facts, add_count,
                               &sum, &error))
            g_error("pprof: %s", error->message);
        g_assert(sum == uprof_profile_total(profile));
    }
    g_string_free(packed, TRUE);
}

/* ---- Tables and comparisons ---- */

static void
free_checked_text(GString *text, bool has_colors)
{
    check_text(text, has_colors);
    g_string_free(text, TRUE);
}

static void
check_tables(const UprofProfile *profile, const UprofFocus *focus)
{
    static const unsigned widths[] = { 0, 1, 40, 200 };

    for (size_t i = 0; i < 2 * G_N_ELEMENTS(widths); i++) {
        const UprofTableStyle style = {
            .rows = 10,
            .width = widths[i / 2],
            .bars = i % 2,
            .colors = i % 2,
            .unicode = i % 2,
            .by = i < G_N_ELEMENTS(widths) ? UPROF_BY_FUNCTION : UPROF_BY_PROCESS,
        };
        free_checked_text(uprof_table_render(profile, &style), style.colors);
        if (focus)
            free_checked_text(uprof_table_render_focus(focus, &style), style.colors);
    }
}

static void
check_changes(const UprofProfile *profile, const UprofRun *run)
{
    const UprofTableStyle style = { .rows = 10, .width = 80, .unicode = true };
    g_autoptr(UprofProfile) none =
        uprof_profile_new(uprof_profile_names(profile), uprof_profile_root(profile), false);
    g_autoptr(UprofTree) old = uprof_tree_new(none), new = uprof_tree_new(profile);
    g_autoptr(UprofTree) both = uprof_tree_compare(old, new);
    g_autoptr(UprofTree) same = uprof_tree_compare(new, new);

    check_svg(uprof_svg_compare(both, run, run, "old", NULL));
    check_svg(uprof_svg_compare(same, run, run, NULL, NULL));
    check_json(uprof_json_changes(both, run, run));
    free_checked_text(uprof_table_render_changes(both, &style, true), false);
    free_checked_text(uprof_table_render_changes(same, &style, false), false);
}

static UprofFocus *
find_focus(const UprofProfile *profile)
{
    uint64_t halted;
    g_autoptr(GArray) rows = uprof_profile_rows(profile, &halted);

    return rows->len > 0
               ? uprof_focus_new(profile,
                                 uprof_name_text(g_array_index(rows, UprofProfileRow, 0).name))
               : NULL;
}

static void
check_documents(const UprofProfile *profile, const UprofRun *run, const UprofFocus *focus)
{
    check_svg(uprof_output_render(&uprof_format_svg, profile, run));
    if (uprof_profile_n_ticks(profile) > 0)
        check_json(uprof_output_render(&uprof_format_speedscope, profile, run));
    check_json(uprof_output_render(&uprof_format_meta, profile, run));
    check_json(uprof_json_report(profile, run, focus, true));
}

static void
check_stacks(const UprofProfile *profile, const UprofRun *run)
{
    check_folded_files(profile, run);
    check_pprof(profile, run);
    /* perf has a record for each sample, and this function keeps all of them in memory */
    if (uprof_profile_total(profile) <= PERF_SAMPLES_MAX)
        free_checked_text(uprof_output_render(&uprof_format_perf, profile, run), false);
}

void
check_outputs(const UprofProfile *profile, const UprofRun *run, CheckedOutputs which)
{
    g_autoptr(UprofFocus) focus = find_focus(profile);

    if (which & CHECK_STACKS)
        check_stacks(profile, run);
    if (which & CHECK_DOCUMENTS)
        check_documents(profile, run, focus);
    if (which & CHECK_TABLES) {
        check_tables(profile, focus);
        check_changes(profile, run);
    }
}

static void
check_order(const UprofAnnotatedFunction *function)
{
    for (guint i = 1; i < function->insns->len; i++)
        g_assert(g_array_index(function->insns, UprofAnnotatedInsn, i - 1).address <
                 g_array_index(function->insns, UprofAnnotatedInsn, i).address);
}

void
check_annotation(const UprofAnnotation *annotation, const UprofRun *run)
{
    const UprofTableStyle style = { .rows = 10, .width = 80, .colors = true };
    g_autoptr(GArray) lines = uprof_annotation_lines(annotation);
    GString *table = uprof_annotation_render(annotation, "main", &style);
    uint64_t sum = 0;

    for (guint i = 0; i < lines->len; i++)
        sum += g_array_index(lines, UprofAnnotatedLine, i).samples;
    g_assert(lines->len == 0 || sum == uprof_annotation_self(annotation));
    for (guint i = 0; i < annotation->functions->len; i++)
        check_order(g_ptr_array_index(annotation->functions, i));
    check_text(table, true);
    g_string_free(table, TRUE);
    check_json(uprof_json_annotation(annotation, "main", run));
}
