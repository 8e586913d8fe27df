/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../../src/push/fitted-profile-priv.h"

#include <string.h>

#include "uprof/clock.h"
#include "uprof/gzip.h"
#include "uprof/pprof-reader.h"

/* The content of a rendered profile. */
typedef struct {
    unsigned n_stacks, depth_max, n_vcpus;
    uint64_t weight, other, truncated;
} Found;

static void
count_stack(const UprofSlice *frames, unsigned n, bool is_cut, uint64_t count, void *data)
{
    Found *found = data;
    const UprofSlice *first = &frames[0];

    found->n_stacks++;
    found->depth_max = MAX(found->depth_max, n);
    found->weight += count;
    if (first->len == 7 && memcmp(first->data, "[other]", 7) == 0)
        found->other += count;
    if (first->len == 11 && memcmp(first->data, "[truncated]", 11) == 0)
        found->truncated += count;
    if (first->len == 5 && memcmp(first->data, "vcpu", 4) == 0)
        found->n_vcpus++;
}

static Found
render_profile(const UprofProfile *profile, bool has_vcpus)
{
    g_autoptr(UprofRun) run = uprof_run_new();
    UprofPprofFacts facts;
    Found found = { 0 };

    run->rate_mhz = 100 * 1000;
    run->idle = true; /* an engine gets processor time in any case */
    run->domain = g_strdup("web-1");
    run->duration_ns = UPROF_NS_PER_S;
    GString *packed = uprof_fitted_profile_render(profile, run, has_vcpus);
    g_autoptr(GByteArray) bytes =
        uprof_gzip_inflate("test", (UprofSlice){ packed->str, packed->len }, NULL);
    g_assert_cmpuint(bytes->len, <=, UPROF_FITTED_BYTES_MAX);
    g_assert_nonnull(memmem(bytes->data, bytes->len,
                            "\x03"
                            "cpu",
                            4));
    g_assert_null(memmem(bytes->data, bytes->len, "wall", 4));
    g_assert_true(uprof_pprof_parse("test", (UprofSlice){ bytes->data, bytes->len }, &facts,
                                    count_stack, &found, NULL));
    g_string_free(packed, TRUE);
    return found;
}

static void
add_stack(UprofProfile *profile, const char *vcpu, const char *leaf, unsigned depth,
          uint64_t weight)
{
    UprofNames *names = uprof_profile_names(profile);
    const UprofName *frames[UPROF_PROFILE_DEPTH_MAX];
    unsigned n = 0;

    if (vcpu)
        frames[n++] = uprof_names_marker(names, vcpu);
    for (unsigned i = 1; i < depth; i++)
        frames[n++] = uprof_names_marker(names, "caller");
    frames[n++] = uprof_names_marker(names, leaf);
    uprof_profile_add(profile, frames, n, weight);
}

static UprofProfile *
make_profile(UprofNames *names)
{
    return uprof_profile_new(names, uprof_names_marker(names, "web-1"), false);
}

/* Stacks that differ in their vCPU alone become one. */
static void
test_vcpus(void)
{
    g_autoptr(UprofNames) names = uprof_names_new();
    g_autoptr(UprofProfile) profile = make_profile(names);

    add_stack(profile, "vcpu0", "work", 3, 5);
    add_stack(profile, "vcpu1", "work", 3, 7);
    const Found without = render_profile(profile, false), with = render_profile(profile, true);
    g_assert_cmpuint(without.n_stacks, ==, 1);
    g_assert_cmpuint(without.weight, ==, 12);
    g_assert_cmpuint(without.depth_max, ==, 3);
    g_assert_cmpuint(with.n_stacks, ==, 2);
    g_assert_cmpuint(with.n_vcpus, ==, 2);
    g_assert_cmpuint(with.weight, ==, 12);
}

static void
test_many_stacks(void)
{
    g_autoptr(UprofNames) names = uprof_names_new();
    g_autoptr(UprofProfile) profile = make_profile(names);

    for (unsigned i = 0; i < UPROF_FITTED_STACKS_MAX; i++) {
        g_autofree char *leaf = g_strdup_printf("leaf%u", i);
        add_stack(profile, NULL, leaf, 2, i + 1);
    }
    const Found exact = render_profile(profile, false);
    add_stack(profile, NULL, "one more", 2, 1);
    const Found folded = render_profile(profile, false);
    g_assert_cmpuint(exact.n_stacks, ==, UPROF_FITTED_STACKS_MAX);
    g_assert_cmpuint(exact.other, ==, 0);
    g_assert_cmpuint(folded.n_stacks, ==, UPROF_FITTED_STACKS_MAX);
    g_assert_cmpuint(folded.other, ==, 1 + 1);
    g_assert_cmpuint(folded.weight, ==, exact.weight + 1);
}

/* Long names make few stacks too large. */
static void
test_many_bytes(void)
{
    g_autoptr(UprofNames) names = uprof_names_new();
    g_autoptr(UprofProfile) profile = make_profile(names);
    g_autofree char *fill = g_strnfill(3000, 'n');
    uint64_t weight = 0;

    for (unsigned i = 0; i < 3000; i++) {
        g_autofree char *leaf = g_strdup_printf("%s%u", fill, i);
        add_stack(profile, NULL, leaf, 1, i + 1);
        weight += i + 1;
    }
    const Found found = render_profile(profile, false);
    g_assert_cmpuint(found.weight, ==, weight);
    g_assert_cmpuint(found.other, >, 0);
    g_assert_cmpuint(found.n_stacks, >, 500);
}

static void
test_deep_stacks(void)
{
    g_autoptr(UprofNames) names = uprof_names_new();
    g_autoptr(UprofProfile) profile = make_profile(names);

    add_stack(profile, NULL, "work", UPROF_FITTED_FRAMES_MAX, 2);
    add_stack(profile, NULL, "more", UPROF_FITTED_FRAMES_MAX + 1, 3);
    const Found found = render_profile(profile, false);
    g_assert_cmpuint(found.depth_max, ==, UPROF_FITTED_FRAMES_MAX);
    g_assert_cmpuint(found.truncated, ==, 3);
    g_assert_cmpuint(found.weight, ==, 5);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/fitted-profile/vcpus", test_vcpus);
    g_test_add_func("/fitted-profile/many-stacks", test_many_stacks);
    g_test_add_func("/fitted-profile/many-bytes", test_many_bytes);
    g_test_add_func("/fitted-profile/deep-stacks", test_deep_stacks);
    return g_test_run();
}
