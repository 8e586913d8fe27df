/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "uprof/profile.h"

enum { FRAMES_MAX = 8 };

typedef struct {
    UprofNames *names;
    UprofProfile *profile;
} Fixture;

static const UprofName *
intern(const Fixture *fixture, const char *text)
{
    return uprof_names_intern(fixture->names, (UprofSlice){ text, strlen(text) });
}

static void
init_fixture(Fixture *fixture, bool bounded)
{
    fixture->names = uprof_names_new();
    fixture->profile = uprof_profile_new(fixture->names, intern(fixture, "vm"), bounded);
}

static void
clear_fixture(Fixture *fixture)
{
    uprof_profile_free(fixture->profile);
    uprof_names_free(fixture->names);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Fixture, clear_fixture)

/* "a;b;c" */
static void
add_stack(const Fixture *fixture, const char *stack, uint64_t weight)
{
    g_auto(GStrv) words = g_strsplit(stack, ";", -1);
    const UprofName *frames[FRAMES_MAX];
    unsigned n = 0;

    for (; words[n]; n++)
        frames[n] = intern(fixture, words[n]);
    uprof_profile_add(fixture->profile, frames, n, weight);
}

static void
append_stack(const UprofName *const *frames, unsigned n, uint64_t weight, void *data)
{
    GString *out = data;

    for (unsigned i = 0; i < n; i++)
        g_string_append_printf(out, "%s%s", i > 0 ? ";" : "", uprof_name_text(frames[i]));
    g_string_append_printf(out, " %" G_GUINT64_FORMAT "\n", weight);
}

static char *
walk(const Fixture *fixture)
{
    GString *out = g_string_new(NULL);

    uprof_profile_walk(fixture->profile, append_stack, out);
    return g_string_free(out, FALSE);
}

static char *
list_rows(const Fixture *fixture)
{
    g_autoptr(GArray) rows = uprof_profile_rows(fixture->profile, NULL);
    GString *out = g_string_new(NULL);

    for (guint i = 0; i < rows->len; i++) {
        const UprofProfileRow *row = &g_array_index(rows, UprofProfileRow, i);
        g_string_append_printf(out, "%s %" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT "\n",
                               uprof_name_text(row->name), row->self, row->total);
    }
    return g_string_free(out, FALSE);
}

/* clang-format off */
static const struct {
    const char *name;
    struct {
        const char *stack; /* NULL ends the list */
        uint64_t weight;
    } adds[FRAMES_MAX];
    const char *walk;
    const char *rows; /* "name self total" for each row */
    uint64_t total;
} cases[] = {
    { "empty", { { 0 } }, "", "", 0 },
    { "one", { { "main", 3 } }, "vm;main 3\n", "main 3 3\n", 3 },
    { "same-adds-up", { { "a;b", 1 }, { "a;b", 2 } }, "vm;a;b 3\n", "b 3 3\na 0 3\n", 3 },
    { "prefix-is-a-stack", { { "a;b", 1 }, { "a", 5 } }, "vm;a 5\nvm;a;b 1\n", "a 5 6\nb 1 1\n", 6 },
    { "sorted", { { "b", 1 }, { "a;z", 1 }, { "a;c", 1 }, { "B", 1 } }, "vm;B 1\nvm;a;c 1\nvm;a;z 1\nvm;b 1\n", "B 1 1\nb 1 1\nc 1 1\nz 1 1\na 0 2\n", 4 },
    { "recursion-once", { { "a;b;a;b;a", 2 }, { "a;b", 1 } }, "vm;a;b 1\nvm;a;b;a;b;a 2\n", "a 2 3\nb 1 3\n", 3 },
    { "same-name-elsewhere", { { "a;x", 1 }, { "b;x", 2 } }, "vm;a;x 1\nvm;b;x 2\n", "x 3 3\nb 0 2\na 0 1\n", 3 },
    { "root-by-name", { { "vm;a", 1 } }, "vm;vm;a 1\n", "a 1 1\nvm 0 1\n", 1 },
    { "large", { { "a", UINT64_C(1) << 60 }, { "a;b", 1 } }, "vm;a 1152921504606846976\nvm;a;b 1\n", "a 1152921504606846976 1152921504606846977\nb 1 1\n", (UINT64_C(1) << 60) + 1 },
    { "zero-weight", { { "a", 0 }, { "b", 1 } }, "vm;b 1\n", "b 1 1\n", 1 },
};
/* clang-format on */

static void
test_case(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    unsigned n = 0;

    while (n < FRAMES_MAX && cases[i].adds[n].stack)
        n++;
    /* In each rotation, forward and backward: the order of samples must not matter. */
    for (unsigned turn = 0; turn < 2 * MAX(n, 1); turn++) {
        g_auto(Fixture) fixture;
        init_fixture(&fixture, turn % 2);
        for (unsigned j = 0; j < n; j++) {
            const unsigned k = turn % 2 ? (turn + n - j) % n : (turn + j) % n;
            add_stack(&fixture, cases[i].adds[k].stack, cases[i].adds[k].weight);
        }
        g_autofree char *walked = walk(&fixture);
        g_autofree char *rows = list_rows(&fixture);
        g_assert_cmpstr(walked, ==, cases[i].walk);
        g_assert_cmpstr(rows, ==, cases[i].rows);
        g_assert_cmpuint(uprof_profile_total(fixture.profile), ==, cases[i].total);
    }
}

typedef struct {
    uint64_t weight;
    unsigned stacks;
    unsigned longest;
    GString *last;
} Seen;

static void
check_stack(const UprofName *const *frames, unsigned n, uint64_t weight, void *data)
{
    Seen *seen = data;

    g_assert_cmpuint(n, >=, 2);
    g_assert_cmpuint(weight, >, 0);
    g_assert_cmpstr(uprof_name_text(frames[0]), ==, "vm");
    seen->weight += weight;
    seen->stacks++;
    seen->longest = MAX(seen->longest, n);
}

/* Shuffled random stacks give the same text, with each stack once and no weight lost. */
static void
test_random(void)
{
    enum { STACKS = 500, NAMES = 12 };
    g_autofree char *first = NULL;
    g_autoptr(GPtrArray) stacks = g_ptr_array_new_with_free_func(g_free);

    for (unsigned i = 0; i < STACKS; i++) {
        GString *stack = g_string_new(NULL);
        const int depth = g_test_rand_int_range(1, FRAMES_MAX);
        for (int j = 0; j < depth; j++)
            g_string_append_printf(stack, "%sf%d", j > 0 ? ";" : "",
                                   g_test_rand_int_range(0, NAMES));
        g_ptr_array_add(stacks, g_string_free(stack, FALSE));
    }
    for (unsigned round = 0; round < 10; round++) {
        g_auto(Fixture) fixture;
        Seen seen = { 0 };
        init_fixture(&fixture, false);
        for (unsigned i = STACKS; i > 1; i--) {
            const unsigned k = (unsigned)g_test_rand_int_range(0, (gint)i);
            gpointer swap = stacks->pdata[i - 1];
            stacks->pdata[i - 1] = stacks->pdata[k];
            stacks->pdata[k] = swap;
        }
        for (unsigned i = 0; i < STACKS; i++)
            add_stack(&fixture, stacks->pdata[i], 2);
        uprof_profile_walk(fixture.profile, check_stack, &seen);
        g_assert_cmpuint(seen.weight, ==, 2 * STACKS);
        g_assert_cmpuint(uprof_profile_total(fixture.profile), ==, 2 * STACKS);
        g_autofree char *walked = walk(&fixture);
        if (!first)
            first = g_steal_pointer(&walked);
        else
            g_assert_cmpstr(walked, ==, first);
    }
}

static void
test_deepest(void)
{
    const UprofName *frames[UPROF_PROFILE_DEPTH_MAX];
    g_auto(Fixture) fixture;
    Seen seen = { 0 };

    init_fixture(&fixture, true);
    for (unsigned i = 0; i < G_N_ELEMENTS(frames); i++)
        frames[i] = intern(&fixture, i % 2 ? "odd" : "even");
    uprof_profile_add(fixture.profile, frames, UPROF_PROFILE_DEPTH_MAX - 1, 1);
    uprof_profile_walk(fixture.profile, check_stack, &seen);
    g_assert_cmpuint(seen.longest, ==, UPROF_PROFILE_DEPTH_MAX);
}

static void
test_too_many_stacks(void)
{
    enum { ASIDE = 1000 };
    const UprofName *digits[10];
    g_auto(Fixture) fixture;
    g_auto(Fixture) unbounded;
    Seen seen = { 0 };

    init_fixture(&fixture, true);
    init_fixture(&unbounded, false);
    for (unsigned i = 0; i < 10; i++) {
        const char text[] = { (char)('a' + i), '\0' };
        digits[i] = intern(&fixture, text);
    }
    for (unsigned i = 0; i < UPROF_PROFILE_STACKS_MAX + ASIDE; i++) {
        const UprofName *frames[6];
        unsigned rest = i;
        for (unsigned j = 0; j < 6; j++, rest /= 10)
            frames[j] = digits[rest % 10];
        uprof_profile_add(fixture.profile, frames, 6, 1);
    }
    /* Known names still count. */
    uprof_profile_add(
        fixture.profile,
        (const UprofName *[]){ digits[0], digits[0], digits[0], digits[0], digits[0], digits[0] },
        6, 1);
    uprof_profile_walk(fixture.profile, check_stack, &seen);
    g_assert_cmpuint(seen.stacks, ==, UPROF_PROFILE_STACKS_MAX + 1);
    g_assert_cmpuint(seen.weight, ==, UPROF_PROFILE_STACKS_MAX + ASIDE + 1);
    g_autoptr(GArray) rows = uprof_profile_rows(fixture.profile, NULL);
    uint64_t unknown = 0;
    for (guint i = 0; i < rows->len; i++)
        if (strcmp(uprof_name_text(g_array_index(rows, UprofProfileRow, i).name), "[unknown]") == 0)
            unknown = g_array_index(rows, UprofProfileRow, i).self;
    g_assert_cmpuint(unknown, ==, ASIDE);
}

static void
test_too_many_names(void)
{
    enum { ASIDE = 100 };
    g_auto(Fixture) fixture;
    Seen seen = { 0 };

    init_fixture(&fixture, true);
    uprof_names_limit(fixture.names, UPROF_PROFILE_NAMES_MAX);
    for (unsigned i = 0; i < UPROF_PROFILE_NAMES_MAX + ASIDE; i++) {
        char text[16];
        g_snprintf(text, sizeof(text), "f%u", i);
        add_stack(&fixture, text, 1);
    }
    uprof_profile_walk(fixture.profile, check_stack, &seen);
    g_assert_cmpuint(seen.weight, ==, UPROF_PROFILE_NAMES_MAX + ASIDE);
    g_assert_cmpuint(seen.stacks, <=, UPROF_PROFILE_NAMES_MAX);
}

static void
show_tick(const UprofName *const *frames, unsigned n, UprofTick tick, void *data)
{
    GString *text = data;

    g_string_append_printf(text, "%u@%u+%ux%u ", tick.vcpu, (unsigned)tick.time_ns, tick.count,
                           tick.weight);
    for (unsigned i = 0; i < n; i++)
        g_string_append_printf(text, "%s%s", i > 0 ? ";" : "", uprof_name_text(frames[i]));
    g_string_append_c(text, '\n');
}

/* Ticks keep their order. A tick that does not count has a time but no weight. */
static void
test_ticks(void)
{
    g_autoptr(UprofNames) names = uprof_names_new();
    g_autoptr(UprofProfile) profile =
        uprof_profile_new(names, uprof_names_marker(names, "vm"), true);
    const UprofName *b = uprof_names_marker(names, "b"), *a = uprof_names_marker(names, "a");
    const UprofName *idle = uprof_names_marker(names, "[idle]");
    g_autoptr(GString) all = g_string_new(NULL);
    g_autoptr(GString) one = g_string_new(NULL);

    uprof_profile_add_tick(profile, &a, 1, (UprofTick){ 5, 0, 1, 1 }, true);
    g_assert_cmpuint(uprof_profile_n_ticks(profile), ==, 0);
    uprof_profile_keep_times(profile);
    uprof_profile_add_tick(profile, &b, 1, (UprofTick){ 7, 1, 1, 2 }, true);
    uprof_profile_add_tick(profile, &idle, 1, (UprofTick){ 8, 0, 3, 2 }, false);
    uprof_profile_add_tick(profile, &a, 1, (UprofTick){ 6, 0, 2, 2 }, true);
    uprof_profile_walk_ticks(profile, UPROF_PROFILE_ALL_VCPUS, show_tick, all);
    uprof_profile_walk_ticks(profile, 1, show_tick, one);
    g_assert_cmpstr(all->str, ==, "1@7+1x2 vm;b\n0@8+3x2 vm;[idle]\n0@6+2x2 vm;a\n");
    g_assert_cmpstr(one->str, ==, "1@7+1x2 vm;b\n");
    g_assert_cmpuint(uprof_profile_total(profile), ==, 1 + 2 + 4);
    g_assert_cmpuint(uprof_profile_n_ticks(profile), ==, 3);
    for (unsigned i = 3; i < UPROF_PROFILE_TICKS_MAX; i++)
        uprof_profile_add_tick(profile, &a, 1, (UprofTick){ i, 0, 1, 1 }, true);
    g_assert_cmpuint(uprof_profile_n_untimed(profile), ==, 0);
    uprof_profile_add_tick(profile, &a, 1, (UprofTick){ 9, 0, 4, 1 }, true);
    g_assert_cmpuint(uprof_profile_n_ticks(profile), ==, UPROF_PROFILE_TICKS_MAX);
    g_assert_cmpuint(uprof_profile_n_untimed(profile), ==, 4);
    uprof_profile_add_untimed(profile, 3);
    g_assert_cmpuint(uprof_profile_n_untimed(profile), ==, 7);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/profile/%s", cases[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_case);
    }
    g_test_add_func("/profile/random", test_random);
    g_test_add_func("/profile/deepest", test_deepest);
    g_test_add_func("/profile/too-many-stacks", test_too_many_stacks);
    g_test_add_func("/profile/too-many-names", test_too_many_names);
    uprof_profile_free(NULL);
    g_test_add_func("/profile/ticks", test_ticks);
    return g_test_run();
}
