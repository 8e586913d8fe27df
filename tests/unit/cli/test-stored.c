/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../../src/cli/stored-priv.h"

#include <string.h>

#include "uprof/clock.h"
#include "uprof/output.h"
#include "uprof/sidecar.h"

static UprofRun *
make_run(void)
{
    UprofRun *run = uprof_run_new();
    const uint32_t seconds[] = { 0, 600, 86399 };
    uint64_t n = 1;

    for (size_t i = 0; i < uprof_run_n_fields; i++) {
        const UprofRunField *field = &uprof_run_fields[i];
        if (field->kind == UPROF_RUN_TEXT)
            *(char **)G_STRUCT_MEMBER_P(run, field->offset) = g_strdup(field->key);
    }
    uint64_t *const counts[] = {
        &run->vcpus,     &run->rate_mhz, &run->late,          &run->busy,         &run->skipped,
        &run->stuck,     &run->samples,  &run->running,       &run->idles,        &run->complete,
        &run->truncated, &run->unknown,  &run->frames,        &run->named,        &run->by_cfi,
        &run->by_leaf,   &run->by_fp,    &run->calls_checked, &run->calls_agreed,
    };
    for (size_t i = 0; i < G_N_ELEMENTS(counts); i++)
        *counts[i] = n++;
    run->started_utc_ns = UINT64_C(1795166100) * UPROF_NS_PER_S;
    run->duration_ns = 1000 * UPROF_NS_PER_MS;
    run->held_ns = 5 * UPROF_NS_PER_MS;
    run->cpu_ns = 96 * UPROF_NS_PER_MS;
    for (uint64_t i = 1; i <= 100; i++)
        uprof_histogram_add(&run->hold, i * UPROF_NS_PER_US);
    uprof_run_add_image(run, "[app]", "/srv/app", "3f2a91c0", NULL)->matched = true;
    g_array_append_vals(run->slices, seconds, G_N_ELEMENTS(seconds));
    run->profile_sha256 = uprof_stored_digest("x", 1);
    return run;
}

static char *
render(const UprofRun *run)
{
    return g_string_free(uprof_output_render(&uprof_format_meta, NULL, run), FALSE);
}

static UprofRun *
read_back(const char *text)
{
    g_autoptr(GError) error = NULL;
    UprofRun *run = uprof_sidecar_parse("it", (UprofSlice){ text, strlen(text) }, &error);

    g_assert_no_error(error);
    return run;
}

/* What is written is read, and written again as it was. */
static void
test_round_trip(void)
{
    g_autoptr(UprofRun) run = make_run();
    g_autofree char *first = render(run);
    g_autoptr(UprofRun) read = read_back(first);
    g_autofree char *second = render(read);
    g_autoptr(UprofRun) again = read_back(second);
    g_autofree char *third = render(again);

    g_assert_cmpstr(first, ==, second);
    g_assert_cmpstr(second, ==, third);
    g_assert_cmpuint(read->calls_agreed, ==, 19);
}

/* clang-format off */
static const struct {
    const char *one;
    const char *other;
    const char *both;
} ways[] = {
    { "direct",         "direct",         "direct" },
    { "direct",         "monitor",        "direct+monitor" },
    { "monitor",        "direct",         "direct+monitor" },
    { "direct+monitor", "direct",         "direct+monitor" },
    { "direct+xen",     "monitor+direct", "direct+monitor+xen" },
    { NULL,             "direct",         "direct" },
    { "direct",         NULL,             "direct" },
    { NULL,             NULL,             NULL },
};
/* clang-format on */

static void
test_ways(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(ways); i++) {
        g_autoptr(UprofRun) one = uprof_run_new();
        g_autoptr(UprofRun) other = uprof_run_new();
        g_autoptr(UprofRun) sum = uprof_run_new();
        one->access = g_strdup(ways[i].one);
        one->domain = g_strdup("new");
        one->samples = 3;
        other->access = g_strdup(ways[i].other);
        other->domain = g_strdup("old");
        other->samples = 4;
        uprof_stored_merge(sum, one, true);
        uprof_stored_merge(sum, other, false);
        g_assert_cmpstr(sum->access, ==, ways[i].both);
        g_assert_cmpstr(sum->domain, ==, "new");
        g_assert_cmpuint(sum->samples, ==, 7);
    }
}

static void
test_has_slice(void)
{
    g_autoptr(UprofRun) run = make_run();
    const int64_t day_s = 1795132800;

    g_assert_true(uprof_stored_has_slice(run, day_s));
    g_assert_true(uprof_stored_has_slice(run, day_s + 600));
    g_assert_true(uprof_stored_has_slice(run, day_s + 86399));
    g_assert_false(uprof_stored_has_slice(run, day_s + 1));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/stored/round-trip", test_round_trip);
    g_test_add_func("/stored/ways", test_ways);
    g_test_add_func("/stored/has-slice", test_has_slice);
    return g_test_run();
}
