/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/focus.h"

enum { STACKS_MAX = 6, FRAMES_MAX = 8 };

/* clang-format off */
static const struct {
    const char *name;
    const char *root;
    struct {
        const char *frames;
        uint64_t weight;
    } stacks[STACKS_MAX];
    const char *focus;
    const char *shown; /* "self/total/all: callers | callees"; NULL if there is no such function */
} cases[] = {
    { "plain", "vm", { { "main;f;work", 5 }, { "main;f", 2 }, { "main;g;f;copy", 1 }, { "main", 4 } }, "f",
      "2/8/12: main 7 g 1 | work 5 copy 1 " },
    { "recursion", "vm", { { "f;f;f", 3 }, { "f;g;f", 1 } }, "f", "4/4/4: vm 4 f 3 g 1 | f 3 g 1 " },
    { "idle", "vm", { { "f", 3 }, { "[idle]", 7 }, { "f;[idle]", 1 } }, "f", "3/4/4: vm 4 | [idle] 1 " },
    { "leaf", "vm", { { "a;b", 1 } }, "b", "1/1/1: a 1 | " },
    { "root-is-none", "vm", { { "a;b", 1 } }, "vm", NULL },
    { "no-root", NULL, { { "a;b", 1 }, { "b", 1 } }, "b", "2/2/2: a 1 | " },
    { "part-of-a-name", "vm", { { "function", 1 } }, "func", NULL },
    { "empty", "vm", { { NULL, 0 } }, "f", NULL },
};
/* clang-format on */

static void
show_rows(GString *text, const GArray *rows)
{
    for (guint i = 0; i < rows->len; i++) {
        const UprofProfileRow *row = &g_array_index(rows, UprofProfileRow, i);
        g_string_append_printf(text, "%s %u ", uprof_name_text(row->name), (unsigned)row->total);
    }
}

static void
test_case(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_autoptr(UprofNames) names = uprof_names_new();
    g_autoptr(UprofProfile) profile = uprof_profile_new(
        names, cases[i].root ? uprof_names_marker(names, cases[i].root) : NULL, false);
    g_autoptr(GString) text = g_string_new(NULL);

    for (unsigned s = 0; s < STACKS_MAX && cases[i].stacks[s].frames; s++) {
        g_auto(GStrv) words = g_strsplit(cases[i].stacks[s].frames, ";", -1);
        const UprofName *frames[FRAMES_MAX];
        unsigned n = 0;
        for (; words[n]; n++)
            frames[n] = uprof_names_marker(names, words[n]);
        uprof_profile_add(profile, frames, n, cases[i].stacks[s].weight);
    }
    g_autoptr(UprofFocus) focus = uprof_focus_new(profile, cases[i].focus);
    g_assert_true((focus != NULL) == (cases[i].shown != NULL));
    if (!focus)
        return;
    g_string_append_printf(text, "%u/%u/%u: ", (unsigned)focus->self, (unsigned)focus->total,
                           (unsigned)focus->all);
    show_rows(text, focus->callers);
    g_string_append(text, "| ");
    show_rows(text, focus->callees);
    g_assert_cmpstr(text->str, ==, cases[i].shown);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/focus/%s", cases[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_case);
    }
    return g_test_run();
}
