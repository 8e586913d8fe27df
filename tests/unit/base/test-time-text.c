/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/time-text.h"

#include "uprof/clock.h"

#include <string.h>

enum { NOW_S = 1795166130, TODAY_S = 1795132800, DAY_S = 86400 }; /* 2026-11-20T09:15:30Z */

/* clang-format off */
static const struct {
    const char *text;
    int64_t at_s; /* -1: not a time */
    bool is_day; /* a day, too: that of @at_s */
} cases[] = {
    { "today",                TODAY_S,               true },
    { "yesterday",            TODAY_S - DAY_S,       true },
    { "2026-11-20",           TODAY_S,               true },
    { "2024-02-29",           1709164800,            true },
    { "2026-11-20T09:15",     NOW_S - 30,            false },
    { "2026-11-20T09:15Z",    NOW_S - 30,            false },
    { "2026-11-20T09:15:30",  NOW_S,                 false },
    { "2026-11-20T09:15:30Z", NOW_S,                 false },
    { "2026-11-20T23:59:59Z", TODAY_S + DAY_S - 1,   false },
    { "3d",                   NOW_S - 3 * DAY_S,     true },
    { "-3d",                  NOW_S - 3 * DAY_S,     true },
    { "0d",                   NOW_S,                 true },
    { "12h",                  NOW_S - DAY_S / 2,     false },
    { "90m",                  NOW_S - 90 * 60,       false },
    { "",                     -1, false },
    { "d",                    -1, false },
    { "-",                    -1, false },
    { "--3d",                 -1, false },
    { "+3d",                  -1, false },
    { "3",                    -1, false },
    { "3 d",                  -1, false },
    { "3w",                   -1, false },
    { "1000001d",             -1, false },
    { "99999999999999999999d", -1, false },
    { "Today",                -1, false },
    { "tomorrow",             -1, false },
    { "2026-11-31",           -1, false },
    { "2026-02-29",           -1, false },
    { "2026-1-1",             -1, false },
    { "2026-11-20 ",          -1, false },
    { "20261120",             -1, false },
    { "1969-12-31",           -1, false },
    { "2026-11-20T",          -1, false },
    { "2026-11-20T9:15",      -1, false },
    { "2026-11-20T24:00",     -1, false },
    { "2026-11-20T09:60",     -1, false },
    { "2026-11-20T09:15:",    -1, false },
    { "2026-11-20T09:15:61",  -1, false },
    { "2026-11-20T09-15",     -1, false },
    { "2026-11-20T09:15ZZ",   -1, false },
    { "2026-11-20T+9:15",     -1, false },
    { "2026-11-20t09:15",     -1, false },
};
/* clang-format on */

static void
test_case(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    int64_t at_s = 42, day_s = 42;

    const bool ok = uprof_time_parse(cases[i].text, NOW_S, &at_s);
    const bool is_day = uprof_time_parse_day(cases[i].text, NOW_S, &day_s);

    g_assert_true(ok == (cases[i].at_s >= 0));
    g_assert_cmpint(at_s, ==, ok ? cases[i].at_s : 42);
    g_assert_true(is_day == cases[i].is_day);
    g_assert_cmpint(day_s, ==, is_day ? cases[i].at_s - cases[i].at_s % DAY_S : 42);
}

/* clang-format off */
static const struct {
    const char *text;
    int64_t at_s; /* -1: not a stamp */
} stamps[] = {
    { "20261120",           TODAY_S },
    { "20261120T091530Z",   NOW_S },
    { "20261120T235959Z",   TODAY_S + DAY_S - 1 },
    { "20261120T091530",    -1 },
    { "20261120T0915Z",     -1 },
    { "20261120T091560Z",   -1 },
    { "20261120T240000Z",   -1 },
    { "20261120t091530Z",   -1 },
    { "2026-11-20",         -1 },
    { "20261131",           -1 },
    { "20260229",           -1 },
    { "19691231",           -1 },
    { "2026112",            -1 },
    { "YYYYMMDD",           -1 },
    { "",                   -1 },
};
/* clang-format on */

static void
test_stamps(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(stamps); i++) {
        const UprofSlice text = { stamps[i].text, strlen(stamps[i].text) };
        int64_t at_s = 42;

        const bool ok = uprof_time_parse_stamp(text, &at_s);

        g_assert_true(ok == (stamps[i].at_s >= 0));
        g_assert_cmpint(at_s, ==, ok ? stamps[i].at_s : 42);
    }
}

static void
test_days(void)
{
    g_autofree char *today = uprof_time_format_date(NOW_S);
    g_autofree char *first = uprof_time_format_date(-1);

    g_assert_cmpstr(today, ==, "2026-11-20");
    g_assert_cmpstr(first, ==, "1970-01-01");
    g_assert_cmpint(uprof_time_day_start(NOW_S), ==, TODAY_S);
    g_assert_cmpint(uprof_time_day_start(TODAY_S), ==, TODAY_S);
    g_assert_cmpint(uprof_time_day_start(TODAY_S - 1), ==, TODAY_S - DAY_S);
    g_assert_cmpint(uprof_time_day_start(-1), ==, -DAY_S);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/time-text/%zu", i);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_case);
    }
    g_test_add_func("/time-text/stamps", test_stamps);
    g_test_add_func("/time-text/days", test_days);
    return g_test_run();
}
