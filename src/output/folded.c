/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Folded stacks, as flamegraph.pl, inferno, speedscope and Perfetto read them:
 * "root;caller;callee 12", one line per stack, sorted by bytes. No comment
 * lines: flamegraph.pl draws them. No line with the root alone: Perfetto takes
 * only files with a ';' in their first lines.
 */
#include "uprof/output.h"

#include <string.h>

static void *
folded_begin(const UprofRun *run)
{
    return g_ptr_array_new_with_free_func(g_free);
}

static void
folded_stack(void *state, const UprofName *const *frames, unsigned n, uint64_t weight)
{
    GPtrArray *lines = state;
    GString *line = g_string_new(NULL);

    for (unsigned i = 0; i < n; i++) {
        if (i > 0)
            g_string_append_c(line, ';');
        g_string_append(line, uprof_name_text(frames[i]));
    }
    g_string_append_printf(line, " %" G_GUINT64_FORMAT "\n", weight);
    g_ptr_array_add(lines, g_string_free(line, FALSE));
}

static int
compare_lines(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void
folded_end(void *state, GString *out)
{
    GPtrArray *lines = state;

    g_ptr_array_sort(lines, compare_lines);
    for (guint i = 0; i < lines->len; i++)
        g_string_append(out, g_ptr_array_index(lines, i));
    g_ptr_array_unref(lines);
}

const UprofFormat uprof_format_folded = {
    .name = "folded",
    .suffixes = { ".folded" },
    .begin = folded_begin,
    .stack = folded_stack,
    .end = folded_end,
};
