/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "../../../src/output/timeline-priv.h"
#include "uprof/clock.h"

enum { CELL_MS = 50 };

typedef struct {
    UprofNames *names;
    UprofProfile *profile;
    UprofRun *run;
    UprofTree *tree;
    UprofPicture *picture;
} Fixture;

static void
init_fixture(Fixture *fixture)
{
    fixture->names = uprof_names_new();
    fixture->run = uprof_run_new();
    fixture->run->rate_mhz = 100 * 1000;
    fixture->profile =
        uprof_profile_new(fixture->names, uprof_names_marker(fixture->names, "vm"), false);
    uprof_profile_keep_times(fixture->profile);
}

static void
clear_fixture(Fixture *fixture)
{
    uprof_picture_free(fixture->picture);
    uprof_tree_free(fixture->tree);
    uprof_profile_free(fixture->profile);
    uprof_names_free(fixture->names);
    uprof_run_free(fixture->run);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Fixture, clear_fixture)

static void
add(const Fixture *fixture, const char *outer, const char *inner, UprofTick tick, bool counts)
{
    const UprofName *const frames[] = { uprof_names_marker(fixture->names, outer),
                                        inner ? uprof_names_marker(fixture->names, inner) : NULL };

    uprof_profile_add_tick(fixture->profile, frames, inner ? 2 : 1, tick, counts);
}

static UprofTimeline *
make_timeline(Fixture *fixture)
{
    fixture->tree = uprof_tree_new(fixture->profile);
    fixture->picture = uprof_picture_new(fixture->tree, 10000);
    return uprof_timeline_new(fixture->profile, fixture->run, fixture->picture);
}

static UprofTick
tick_at(uint64_t time_ms, uint32_t count)
{
    return (UprofTick){ .time_ns = time_ms * UPROF_NS_PER_MS, .count = count, .weight = 1 };
}

static void
check_cell(const UprofTimeline *timeline, unsigned i, uint64_t samples, uint64_t running)
{
    g_assert_cmpuint(i, <, timeline->cells->len);
    const UprofTimeCell *cell = &g_array_index(timeline->cells, UprofTimeCell, i);

    g_assert_cmpuint(cell->samples, ==, samples);
    g_assert_cmpuint(cell->running, ==, running);
}

/* Frames: 0 vm, 1 a, 2 b below a, 3 c. A tick that repeats is divided among cells. */
static void
test_cells(void)
{
    g_auto(Fixture) fixture = { 0 };

    init_fixture(&fixture);
    add(&fixture, "a", "b", tick_at(7000, 1), true);
    add(&fixture, "a", "b", tick_at(7010, 1), true);
    add(&fixture, "c", NULL, tick_at(7020, 1), true);
    add(&fixture, "[idle]", NULL, tick_at(7030, 4), false);
    add(&fixture, "a", NULL, tick_at(8040, 8), true);
    g_autoptr(UprofTimeline) timeline = make_timeline(&fixture);
    g_assert_cmpuint(timeline->cell_ns, ==, CELL_MS * UPROF_NS_PER_MS);
    g_assert_cmpuint(timeline->n_columns, ==, 2);
    g_assert_cmpuint(timeline->cells->len, ==, 2 * UPROF_TIMELINE_ROWS);
    g_assert_cmpuint(timeline->n_shared, ==, 1);
    check_cell(timeline, 0, 5, 3);
    check_cell(timeline, 1, 2, 0);
    check_cell(timeline, 2, 0, 0);
    check_cell(timeline, 20, 1, 1);
    check_cell(timeline, 21, 5, 5);
    check_cell(timeline, 22, 2, 2);
    /* 4 * 2 and weight 2, then 2 * 2; frame 1 once, with weight 5, and with weight 2 */
    g_auto(GStrv) lines = g_strsplit(timeline->lists->str, "\n", -1);
    g_assert_cmpuint(g_strv_length(lines), ==, 2 * UPROF_TIMELINE_ROWS + 1);
    g_assert_cmpstr(lines[0], ==, "JCE");
    g_assert_cmpstr(lines[1], ==, "");
    g_assert_cmpstr(lines[20], ==, "E");
    g_assert_cmpstr(lines[21], ==, "FF");
    g_assert_cmpstr(lines[22], ==, "FC");
}

static void
test_without_times(void)
{
    g_auto(Fixture) fixture = { 0 };

    init_fixture(&fixture);
    g_assert_null(make_timeline(&fixture));
}

/* Columns become longer, up to years, so that there are at most 300. */
static void
test_long_runs(void)
{
    static const struct {
        uint64_t length_s, step_s, n_columns;
    } runs[] = {
        { 0, 1, 1 },       { 299, 1, 300 },     { 300, 2, 151 },
        { 3599, 20, 180 }, { 86399, 300, 288 }, { 30 * 86400, 10800, 241 },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(runs); i++) {
        g_auto(Fixture) fixture = { 0 };
        init_fixture(&fixture);
        add(&fixture, "a", NULL, tick_at(0, 1), true);
        add(&fixture, "a", NULL, tick_at(runs[i].length_s * 1000, 1), true);
        g_autoptr(UprofTimeline) timeline = make_timeline(&fixture);
        g_assert_cmpuint(timeline->cell_ns * UPROF_TIMELINE_ROWS / UPROF_NS_PER_S, ==,
                         runs[i].step_s);
        g_assert_cmpuint(timeline->n_columns, ==, runs[i].n_columns);
    }
}

/* A forged capture can have any numbers: the sum of all cells stays right. */
static void
test_hostile(void)
{
    static const UprofTick ticks[] = {
        { 0, 0, 1, 1 },
        { UINT64_MAX, 0, UINT32_MAX, 1 },
        { UINT64_MAX - 1, 9, 2, 1 },
        { UINT64_MAX / 2, 0, UINT32_MAX, UINT32_MAX },
        { 5, 0, 0, 1 },
        { 5, UINT32_MAX, 3, 0 },
    };
    const uint64_t all = (uint64_t)UINT32_MAX + 3 + (uint64_t)UINT32_MAX * UINT32_MAX;
    static const uint64_t rates_mhz[] = { 0, 1, 1000, UINT64_MAX };

    for (size_t i = 0; i < G_N_ELEMENTS(rates_mhz); i++) {
        g_auto(Fixture) fixture = { 0 };
        uint64_t sum = 0;
        init_fixture(&fixture);
        fixture.run->rate_mhz = rates_mhz[i];
        for (size_t j = 0; j < G_N_ELEMENTS(ticks); j++)
            add(&fixture, "a", NULL, ticks[j], true);
        g_autoptr(UprofTimeline) timeline = make_timeline(&fixture);
        g_assert_cmpuint(timeline->n_columns, <=, UPROF_TIMELINE_COLUMNS_MAX);
        for (guint j = 0; j < timeline->cells->len; j++)
            sum += g_array_index(timeline->cells, UprofTimeCell, j).running;
        g_assert_cmpuint(sum, ==, all);
    }
}

/* Many different stacks in each cell: cells share lists until the lists fit. */
static void
test_large(void)
{
    g_auto(Fixture) fixture = { 0 };

    init_fixture(&fixture);
    for (unsigned i = 0; i < 900 * 1000; i++) {
        g_autofree char *name = g_strdup_printf("f%u", i * 7919 % 60000);
        add(&fixture, name, NULL, tick_at(i, 1), true);
    }
    g_autoptr(UprofTimeline) timeline = make_timeline(&fixture);
    g_assert_cmpuint(timeline->n_shared, >, 1);
    g_assert_cmpuint(timeline->lists->len, <=, UPROF_TIMELINE_BYTES);
    guint lines = 0;
    for (gsize i = 0; i < timeline->lists->len; i++)
        lines += timeline->lists->str[i] == '\n';
    g_assert_cmpuint(lines, ==,
                     (timeline->cells->len + timeline->n_shared - 1) / timeline->n_shared);
}

/* Stacks whose last frames are not in the picture count in the last frame that is. */
static void
test_hidden_frames(void)
{
    g_auto(Fixture) fixture = { 0 };
    g_autofree char *name = g_strnfill(UPROF_PICTURE_TABLE_BYTES, 'x');

    init_fixture(&fixture);
    add(&fixture, "a", NULL, tick_at(0, 9), true);
    add(&fixture, "a", name, tick_at(0, 1), true);
    g_autoptr(UprofTimeline) timeline = make_timeline(&fixture);
    g_assert_cmpuint(fixture.picture->frames->len, ==, 2);
    g_auto(GStrv) lines = g_strsplit(timeline->lists->str, "\n", -1);
    g_assert_cmpstr(lines[0], ==, "FFC"); /* number 2 with weight 5, then number 3 */
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/timeline/cells", test_cells);
    g_test_add_func("/timeline/without-times", test_without_times);
    g_test_add_func("/timeline/long-runs", test_long_runs);
    g_test_add_func("/timeline/hostile", test_hostile);
    g_test_add_func("/timeline/large", test_large);
    g_test_add_func("/timeline/hidden-frames", test_hidden_frames);
    return g_test_run();
}
