/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/clock.h"
#include "../../../src/sampler/schedule-priv.h"

#include <glib.h>

/* clang-format off */
static const struct {
    const char *name;
    uint64_t rate_mhz;
    uint64_t interval_ns;
} rates[] = {
    { "1-hz",       1000,     UPROF_NS_PER_S },
    { "99-hz",      99000,    10101010 },
    { "24.75-hz",   24750,    40404040 },
    { "20000-hz",   20000000, 50000 },
    { "millihertz", 1,        1000 * UPROF_NS_PER_S },
};
/* clang-format on */

#define START_NS (UINT64_C(1000) * UPROF_NS_PER_S + 7)

static uint64_t
grid_ns(const UprofSchedule *schedule, uint64_t tick)
{
    return schedule->start_ns + tick * schedule->interval_ns;
}

/* In time, no tick is missed, and each lies near its point of the grid. */
static void
test_grid(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    uint64_t now_ns = START_NS, missed = 99;
    bool moved_down = false, moved_up = false;
    UprofSchedule schedule;

    uprof_schedule_init(&schedule, START_NS, rates[i].rate_mhz, 42);
    g_assert_cmpuint(schedule.interval_ns, ==, rates[i].interval_ns);
    const uint64_t half_ns = schedule.interval_ns / 2;
    for (uint64_t tick = 0; tick < 1000; tick++) {
        const uint64_t at_ns = uprof_schedule_take(&schedule, now_ns, 1, &missed);
        const uint64_t grid_point_ns = grid_ns(&schedule, tick);
        g_assert_cmpuint(missed, ==, 0);
        g_assert_cmpuint(schedule.next, ==, tick + 1);
        g_assert_cmpuint(at_ns, >=, grid_point_ns - half_ns);
        g_assert_cmpuint(at_ns, <=, grid_point_ns + half_ns);
        moved_down |= at_ns < grid_point_ns;
        moved_up |= at_ns > grid_point_ns;
        now_ns = MAX(now_ns, at_ns);
    }
    g_assert_true(moved_down && moved_up);
}

/* After any delay, each tick is either taken or missed, exactly once. */
static void
test_late(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);

    for (uint64_t stride = 1; stride <= 5; stride++) {
        uint64_t now_ns = START_NS, total_missed = 0, taken = 0, last_ns = 0;
        UprofSchedule schedule;
        uprof_schedule_init(&schedule, START_NS, rates[i].rate_mhz, (uint64_t)g_test_rand_int());
        for (unsigned round = 0; round < 2000; round++) {
            uint64_t missed;
            const uint64_t at_ns = uprof_schedule_take(&schedule, now_ns, stride, &missed);
            total_missed += missed;
            taken++;
            g_assert_cmpuint(schedule.next, ==, (total_missed + taken) * stride);
            /* no tick is taken twice, or so late that it counts as missed */
            g_assert_cmpuint(at_ns, >, last_ns);
            const uint64_t end_ns = grid_ns(&schedule, schedule.next) - schedule.interval_ns / 2;
            g_assert_cmpuint(now_ns, <, end_ns);
            g_assert_cmpuint(at_ns, <, end_ns);
            g_assert_cmpuint(at_ns, >=, end_ns - stride * schedule.interval_ns);
            last_ns = at_ns;
            now_ns = MAX(now_ns, at_ns);
            if (g_test_rand_int_range(0, 4) == 0)
                now_ns += schedule.interval_ns / 10 * (uint64_t)g_test_rand_int_range(0, 100);
        }
        g_assert_cmpuint(total_missed, >, 0);
    }
}

static void
test_missed_counts(void)
{
    /* clang-format off */
    static const struct {
        const char *name;
        uint64_t now_ns; /* since the start; there is a tick every 1000 ns */
        uint64_t stride;
        uint64_t missed;
        uint64_t next;
    } cases[] = {
        { "at-start",           0,     1, 0, 1 },
        { "within-jitter",      499,   1, 0, 1 },
        { "just-missed",        500,   1, 1, 2 },
        { "second-within-jitter",   1499,  1, 1, 2 },
        { "second-missed",      1500,  1, 2, 3 },
        { "ten",                9600,  1, 10, 11 },
        { "stride",             501,   4, 0, 4 },
        { "stride-in-time",     3499,  4, 0, 4 },
        { "stride-missed",      3500,  4, 1, 8 },
        { "stride-two",         7500,  4, 2, 12 },
    };
    /* clang-format on */

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        UprofSchedule schedule;
        uint64_t missed;
        g_test_message("%s", cases[i].name);
        uprof_schedule_init(&schedule, START_NS, 1000000000, 7);
        g_assert_cmpuint(schedule.interval_ns, ==, 1000);
        uprof_schedule_take(&schedule, START_NS + cases[i].now_ns, cases[i].stride, &missed);
        g_assert_cmpuint(missed, ==, cases[i].missed);
        g_assert_cmpuint(schedule.next, ==, cases[i].next);
    }
}

/* Periodic work of a guest is sampled evenly in all its phases, also at the rate of sampling. */
static void
test_in_step(void)
{
    enum { TICKS = 20000, PHASES = 10 };
    static const double multiples[] = { 0.5, 1, 2, 3, 10 }; /* of the sampling rate */
    static const uint64_t strides[] = { 1, 3, 10 };

    for (size_t i = 0; i < G_N_ELEMENTS(multiples) * G_N_ELEMENTS(strides); i++) {
        const uint64_t stride = strides[i % G_N_ELEMENTS(strides)];
        const double multiple = multiples[i / G_N_ELEMENTS(strides)];
        unsigned n_hits[PHASES] = { 0 };
        UprofSchedule schedule;
        uint64_t missed;
        uprof_schedule_init(&schedule, START_NS, 99000, 42);
        const double step_ns = (double)(schedule.interval_ns * stride);
        for (unsigned tick = 0; tick < TICKS; tick++) {
            const uint64_t at_ns = uprof_schedule_take(&schedule, START_NS, stride, &missed);
            const double n_periods =
                (double)(at_ns - START_NS + schedule.interval_ns) / step_ns * multiple;
            n_hits[(unsigned)(n_periods * PHASES) % PHASES]++;
        }
        for (unsigned phase = 0; phase < PHASES; phase++) {
            g_assert_cmpuint(n_hits[phase], >, TICKS / PHASES * 9 / 10);
            g_assert_cmpuint(n_hits[phase], <, TICKS / PHASES * 11 / 10);
        }
    }
}

static void
test_seed(void)
{
    UprofSchedule one, same, other;
    uint64_t missed;
    bool differs = false;

    uprof_schedule_init(&one, START_NS, 99000, 2);
    uprof_schedule_init(&same, START_NS, 99000, 2);
    uprof_schedule_init(&other, START_NS, 99000, 4);
    for (unsigned i = 0; i < 100; i++) {
        const uint64_t at_ns = uprof_schedule_take(&one, START_NS, 1, &missed);
        g_assert_cmpuint(uprof_schedule_take(&same, START_NS, 1, &missed), ==, at_ns);
        differs |= uprof_schedule_take(&other, START_NS, 1, &missed) != at_ns;
    }
    g_assert_true(differs);
    /* neighboring seeds differ, too */
    uprof_schedule_init(&other, START_NS, 99000, 3);
    uprof_schedule_init(&one, START_NS, 99000, 2);
    g_assert_cmpuint(one.random_state, !=, other.random_state);
    /* seed 0 does not stop the jitter */
    uprof_schedule_init(&one, START_NS, 99000, 0);
    const uint64_t first_ns = uprof_schedule_take(&one, START_NS, 1, &missed);
    const uint64_t second_ns = uprof_schedule_take(&one, START_NS, 1, &missed);
    g_assert_cmpuint(second_ns - first_ns, !=, one.interval_ns);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(rates); i++) {
        g_autofree char *grid = g_strdup_printf("/schedule/grid/%s", rates[i].name);
        g_autofree char *late = g_strdup_printf("/schedule/late/%s", rates[i].name);
        g_test_add_data_func(grid, GSIZE_TO_POINTER(i), test_grid);
        g_test_add_data_func(late, GSIZE_TO_POINTER(i), test_late);
    }
    g_test_add_func("/schedule/missed-counts", test_missed_counts);
    g_test_add_func("/schedule/in-step", test_in_step);
    g_test_add_func("/schedule/seed", test_seed);
    return g_test_run();
}
