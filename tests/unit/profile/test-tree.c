/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/tree.h"

#include <string.h>

enum { STACKS_MAX = 6, FRAMES_MAX = 8 };

/* Stacks such as "a;b;c" with their weights */
typedef struct {
    const char *root;
    struct {
        const char *frames;
        uint64_t weight;
    } stacks[STACKS_MAX];
} Input;

static UprofProfile *
make_profile(UprofNames *names, const Input *input)
{
    UprofProfile *profile = uprof_profile_new(
        names, input->root ? uprof_names_marker(names, input->root) : NULL, false);

    for (unsigned i = 0; i < STACKS_MAX && input->stacks[i].frames; i++) {
        g_auto(GStrv) words = g_strsplit(input->stacks[i].frames, ";", -1);
        const UprofName *frames[FRAMES_MAX];
        unsigned n = 0;
        for (; words[n]; n++)
            frames[n] = uprof_names_marker(names, words[n]);
        uprof_profile_add(profile, frames, n, input->stacks[i].weight);
    }
    return profile;
}

/* "depth name self/total end" of each frame; in a comparison, the old weights follow. */
static char *
show(const UprofTree *tree)
{
    GString *text = g_string_new(NULL);

    for (uint32_t i = 0; i < tree->nodes->len; i++) {
        const UprofTreeNode *node = uprof_tree_node(tree, i);
        g_assert_true(i == 0 || uprof_tree_node(tree, node->parent)->depth + 1 == node->depth);
        g_string_append_printf(text, "%u %s %u/%u", node->depth, uprof_name_text(node->name),
                               (unsigned)node->self[UPROF_NEW], (unsigned)node->total[UPROF_NEW]);
        if (tree->compares)
            g_string_append_printf(text, " %u/%u", (unsigned)node->self[UPROF_OLD],
                                   (unsigned)node->total[UPROF_OLD]);
        g_string_append_printf(text, " %u\n", node->end);
    }
    return g_string_free(text, FALSE);
}

/* clang-format off */
static const struct {
    const char *name;
    Input input;
    const char *tree;
} cases[] = {
    { "empty", { "vm", { { NULL, 0 } } }, "0 vm 0/0 1\n" },
    { "one", { "vm", { { "a;b", 3 } } }, "0 vm 0/3 3\n1 a 0/3 3\n2 b 3/3 3\n" },
    { "sorted", { "vm", { { "b", 1 }, { "a;c", 2 }, { "a", 4 }, { "a-b", 8 } } },
      "0 vm 0/15 5\n1 a 4/6 3\n2 c 2/2 3\n1 a-b 8/8 4\n1 b 1/1 5\n" },
    { "recursion", { "vm", { { "a;a;a", 1 }, { "a", 1 } } },
      "0 vm 0/2 4\n1 a 1/2 4\n2 a 0/1 4\n3 a 1/1 4\n" },
    { "no-root", { NULL, { { "x;a", 1 }, { "y", 2 } } }, "0 all 0/3 4\n1 x 0/1 3\n2 a 1/1 3\n1 y 2/2 4\n" },
};

static const struct {
    const char *name;
    Input old, new;
    const char *tree;
} pairs[] = {
    { "same", { "vm", { { "a;b", 1 } } }, { "vm", { { "a;b", 2 } } },
      "0 vm 0/2 0/1 3\n1 a 0/2 0/1 3\n2 b 2/2 1/1 3\n" },
    { "other-domain", { "web-1", { { "a", 1 } } }, { "web-2", { { "a", 2 } } }, "0 web-2 0/2 0/1 2\n1 a 2/2 1/1 2\n" },
    { "gone-and-new", { "vm", { { "a;x", 5 }, { "z", 1 } } }, { "vm", { { "a;y", 7 }, { "m;n", 2 } } },
      "0 vm 0/9 0/6 7\n1 a 0/7 0/5 4\n2 x 0/0 5/5 3\n2 y 7/7 0/0 4\n1 m 0/2 0/0 6\n2 n 2/2 0/0 6\n1 z 0/0 1/1 7\n" },
    { "nothing-old", { "vm", { { NULL, 0 } } }, { "vm", { { "a", 1 } } }, "0 vm 0/1 0/0 2\n1 a 1/1 0/0 2\n" },
};
/* clang-format on */

static void
test_case(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_autoptr(UprofNames) names = uprof_names_new();
    g_autoptr(UprofProfile) profile = make_profile(names, &cases[i].input);
    g_autoptr(UprofTree) tree = uprof_tree_new(profile);
    g_autofree char *shown = show(tree);

    g_assert_cmpstr(shown, ==, cases[i].tree);
}

static void
test_pair(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_autoptr(UprofNames) names = uprof_names_new();
    g_autoptr(UprofProfile) old = make_profile(names, &pairs[i].old);
    g_autoptr(UprofProfile) new = make_profile(names, &pairs[i].new);
    g_autoptr(UprofTree) old_tree = uprof_tree_new(old);
    g_autoptr(UprofTree) new_tree = uprof_tree_new(new);
    g_autoptr(UprofTree) both = uprof_tree_compare(old_tree, new_tree);
    g_autofree char *shown = show(both);

    g_assert_cmpstr(shown, ==, pairs[i].tree);
}

static void
test_rootless(void)
{
    g_autoptr(UprofNames) names = uprof_names_new();
    g_autoptr(UprofProfile) profile =
        make_profile(names, &(Input){ "vm", { { "a;b", 1 }, { "c", 2 } } });
    g_autoptr(UprofTree) tree = uprof_tree_new(profile);
    g_autoptr(UprofTree) rootless = uprof_tree_new_rootless(profile);
    g_autofree char *shown = show(rootless);

    g_assert_cmpstr(shown, ==, "0 all 0/3 5\n1 vm 0/3 5\n2 a 0/1 4\n3 b 1/1 4\n2 c 2/2 5\n");
    g_assert_true(uprof_tree_has_callee(tree, uprof_names_marker(names, "c")));
    g_assert_false(uprof_tree_has_callee(tree, uprof_names_marker(names, "b")));
    g_assert_false(uprof_tree_has_callee(tree, uprof_names_marker(names, "vm")));
    g_assert_true(uprof_tree_has_callee(rootless, uprof_names_marker(names, "vm")));
}

static void
test_settle(void)
{
    g_autoptr(UprofNames) names = uprof_names_new();
    g_autoptr(UprofProfile) one =
        make_profile(names, &(Input){ NULL, { { "vm;a", 1 }, { "vm;b", 1 } } });
    g_autoptr(UprofProfile) alone =
        make_profile(names, &(Input){ NULL, { { "vm;a", 1 }, { "vm", 1 } } });
    g_autoptr(UprofProfile) none = make_profile(names, &(Input){ NULL, { { NULL, 0 } } });

    uprof_profile_settle(one, NULL);
    uprof_profile_settle(alone, uprof_names_marker(names, "x"));
    uprof_profile_settle(none, uprof_names_marker(names, "x"));
    g_assert_cmpstr(uprof_name_text(uprof_profile_root(one)), ==, "vm");
    g_assert_null(uprof_profile_root(alone));
    g_assert_cmpstr(uprof_name_text(uprof_profile_root(none)), ==, "x");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/tree/%s", cases[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_case);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(pairs); i++) {
        g_autofree char *path = g_strdup_printf("/tree/compare/%s", pairs[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_pair);
    }
    g_test_add_func("/tree/rootless", test_rootless);
    g_test_add_func("/tree/settle", test_settle);
    return g_test_run();
}
