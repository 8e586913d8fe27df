/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/filter.h"

#include "uprof/run-facts.h"

#include <string.h>

enum { FRAMES_MAX = 8 };

static const struct {
    const char *frames;
    uint64_t weight;
} stacks[] = {
    { "main;read;copy", 5 }, { "main;write;copy", 3 },  { "main;[idle]", 7 },
    { "[idle]", 2 },         { "[truncated];copy", 4 }, { "vcpu0;[truncated];copy", 1 },
};

/* clang-format off */
static const struct {
    const char *name;
    const char *include, *exclude; /* (nullable) */
    bool drop_idle;
    const char *kept; /* stacks and weights, in the order of @stacks */
    unsigned samples, running, idles, truncated; /* counts of the run; 0: the filter keeps the counts */
} cases[] = {
    { "all", NULL, NULL, false,
      "main;read;copy 5,main;write;copy 3,main;[idle] 7,[idle] 2,[truncated];copy 4,vcpu0;[truncated];copy 1", 0, 0, 0, 0 },
    { "include", "^read$", NULL, false, "main;read;copy 5", 5, 5, 0, 0 },
    { "include-root", "^vm$", NULL, false,
      "main;read;copy 5,main;write;copy 3,main;[idle] 7,[idle] 2,[truncated];copy 4,vcpu0;[truncated];copy 1", 22, 13, 9, 5 },
    { "exclude", NULL, "copy", false, "main;[idle] 7,[idle] 2", 9, 0, 9, 0 },
    { "both", "main", "write", false, "main;read;copy 5,main;[idle] 7", 12, 5, 7, 0 },
    { "idle", NULL, NULL, true,
      "main;read;copy 5,main;write;copy 3,[truncated];copy 4,vcpu0;[truncated];copy 1", 0, 0, 0, 0 },
    { "idle-and-include", "main", NULL, true, "main;read;copy 5,main;write;copy 3", 8, 8, 0, 0 },
    { "none", "no such name", NULL, false, "", 0, 0, 0, 0 },
};
/* clang-format on */

static UprofProfile *
make_profile(UprofNames *names)
{
    UprofProfile *profile = uprof_profile_new(names, uprof_names_marker(names, "vm"), false);

    for (size_t i = 0; i < G_N_ELEMENTS(stacks); i++) {
        g_auto(GStrv) words = g_strsplit(stacks[i].frames, ";", -1);
        const UprofName *frames[FRAMES_MAX];
        unsigned n = 0;
        for (; words[n]; n++)
            frames[n] = uprof_names_marker(names, words[n]);
        uprof_profile_add(profile, frames, n, stacks[i].weight);
    }
    uprof_profile_settle(profile, NULL);
    return profile;
}

static void
append_stack(const UprofName *const *frames, unsigned n, uint64_t weight, void *data)
{
    g_autoptr(GString) text = g_string_new(NULL);

    g_assert_cmpstr(uprof_name_text(frames[0]), ==, "vm");
    for (unsigned i = 1; i < n; i++)
        g_string_append_printf(text, "%s%s", i > 1 ? ";" : "", uprof_name_text(frames[i]));
    g_string_append_printf(text, " %u", (unsigned)weight);
    g_ptr_array_add(data, g_strdup(text->str));
}

static void
assert_stacks(const UprofProfile *profile, const char *expected)
{
    g_autoptr(GPtrArray) found = g_ptr_array_new_with_free_func(g_free);
    g_auto(GStrv) wanted = g_strsplit(expected, ",", -1);

    uprof_profile_walk(profile, append_stack, found);
    g_assert_cmpuint(found->len, ==, g_strv_length(wanted));
    for (guint i = 0; i < found->len; i++)
        g_assert_true(g_strv_contains((const char *const *)wanted, found->pdata[i]));
}

static GRegex *
make_regex(const char *pattern)
{
    return pattern ? g_regex_new(pattern, 0, 0, NULL) : NULL;
}

static void
test_case(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_autoptr(UprofNames) names = uprof_names_new();
    g_autoptr(UprofProfile) profile = make_profile(names);
    g_autoptr(UprofRun) run = uprof_run_new();
    g_autoptr(GRegex) include = make_regex(cases[i].include);
    g_autoptr(GRegex) exclude = make_regex(cases[i].exclude);
    const UprofFilter filter = { include, exclude, cases[i].drop_idle };
    const bool counts_again = include || exclude;

    run->samples = 1000;
    g_assert_true(uprof_filter_is_empty(&filter) == (!counts_again && !cases[i].drop_idle));
    g_autoptr(UprofProfile) kept = uprof_filter_apply(&filter, profile, run);
    assert_stacks(kept, cases[i].kept);
    if (!counts_again) {
        g_assert_cmpuint(run->samples, ==, 1000);
        return;
    }
    g_assert_cmpuint(run->unfiltered, ==, 1000);
    g_assert_cmpuint(run->samples, ==, cases[i].samples);
    g_assert_cmpuint(run->running, ==, cases[i].running);
    g_assert_cmpuint(run->idles, ==, cases[i].idles);
    g_assert_cmpuint(run->truncated, ==, cases[i].truncated);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/filter/%s", cases[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_case);
    }
    return g_test_run();
}
