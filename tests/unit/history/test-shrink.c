/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../../src/history/shrink-priv.h"

#include "uprof/output.h"

#include <string.h>

enum { STACKS = 1000 };

static const UprofName *
name(UprofNames *names, const char *text)
{
    return uprof_names_intern(names, (UprofSlice){ text, strlen(text) });
}

/* One hot stack, and many others that were seen @weight times each. */
static UprofProfile *
make(UprofNames *names, uint64_t weight)
{
    UprofProfile *profile = uprof_profile_new(names, name(names, "web-1"), true);
    const UprofName *frames[] = { name(names, "main"), name(names, "hot") };

    uprof_profile_add(profile, frames, 2, 5000);
    for (unsigned i = 0; i < STACKS; i++) {
        g_autofree char *text = g_strdup_printf("function_%03u", i);
        frames[1] = name(names, text);
        uprof_profile_add(profile, frames, 2, weight);
    }
    return profile;
}

static void
test_fits(void)
{
    g_autoptr(UprofNames) names = uprof_names_new();
    g_autoptr(UprofProfile) profile = make(names, 3);
    uint64_t n_lost = 1;

    g_assert_null(uprof_shrink_profile(profile, 1024 * 1024, &n_lost));
    g_assert_cmpuint(n_lost, ==, 0);
}

static void
test_too_large(void)
{
    static const uint64_t limits[] = { 20000, 5000, 200, 100 };
    static const uint64_t weights[] = { 1, 3, 4096 };

    for (size_t i = 0; i < G_N_ELEMENTS(limits) * G_N_ELEMENTS(weights); i++) {
        const uint64_t limit = limits[i / G_N_ELEMENTS(weights)];
        const uint64_t weight = weights[i % G_N_ELEMENTS(weights)];
        g_autoptr(UprofNames) names = uprof_names_new();
        g_autoptr(UprofRun) run = uprof_run_new();
        g_autoptr(UprofProfile) profile = make(names, weight);
        uint64_t n_lost = 0;
        g_autoptr(UprofProfile) fitted = uprof_shrink_profile(profile, limit, &n_lost);
        g_assert_nonnull(fitted);
        g_autofree char *text =
            g_string_free(uprof_output_render(&uprof_format_folded, fitted, run), FALSE);
        g_autofree char *unknown =
            g_strdup_printf("web-1;[unknown] %" G_GUINT64_FORMAT "\n", n_lost);
        g_assert_cmpuint(strlen(text), <=, limit);
        g_assert_cmpuint(uprof_profile_total(fitted), ==, 5000 + STACKS * weight);
        g_assert_nonnull(strstr(text, unknown));
        if (weight < 4096)
            g_assert_nonnull(strstr(text, "web-1;main;hot 5000\n"));
        /* the room is used: although all stacks but one are equally rare, not all are removed */
        g_assert_cmpuint(uprof_profile_n_stacks(fitted), >=, limit / 60);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/fit/fits", test_fits);
    g_test_add_func("/fit/too-large", test_too_large);
    return g_test_run();
}
