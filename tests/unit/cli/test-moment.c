/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../../src/cli/moment-priv.h"

enum { NOW_S = 1795166130, TODAY_S = 1795132800, DAY_S = 86400 }; /* 2026-11-20T09:15:30Z */

/* clang-format off */
static const struct {
    const char *text;
    int64_t at_s; /* -1: no moment */
    bool is_day;
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
    { "3d",                   NOW_S - 3 * DAY_S,     false },
    { "-3d",                  NOW_S - 3 * DAY_S,     false },
    { "0d",                   NOW_S,                 false },
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

    const bool ok = uprof_moment_parse(cases[i].text, NOW_S, &at_s);
    const bool is_day = uprof_moment_parse_day(cases[i].text, NOW_S, &day_s);

    g_assert_true(ok == (cases[i].at_s >= 0));
    g_assert_cmpint(at_s, ==, ok ? cases[i].at_s : 42);
    g_assert_true(is_day == cases[i].is_day);
    g_assert_cmpint(day_s, ==, is_day ? cases[i].at_s : 42);
}

static void
test_now(void)
{
    g_assert_cmpint(ABS(uprof_moment_now() - g_get_real_time() / G_USEC_PER_SEC), <=, 2);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/moment/%zu", i);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_case);
    }
    g_test_add_func("/moment/now", test_now);
    return g_test_run();
}
