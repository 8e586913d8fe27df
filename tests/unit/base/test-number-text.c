/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/number-text.h"

/* clang-format off */
static const struct {
    char *(*format)(uint64_t value);
    uint64_t value;
    const char *text;
} cases[] = {
    { uprof_format_hz,     99000,         "99" },
    { uprof_format_hz,     98940,         "98.94" },
    { uprof_format_hz,     98900,         "98.9" },
    { uprof_format_hz,     123456,        "123.5" },
    { uprof_format_ns,     0,             "0 us" },
    { uprof_format_ns,     17600,         "18 us" },
    { uprof_format_ns,     3600000,       "3.6 ms" },
    { uprof_format_ns,     50000000,      "50 ms" },
    { uprof_format_ns,     10000000000,   "10 s" },
    { uprof_format_ns,     1590000000,    "1.5 s" },
    { uprof_format_budget, 100000,        "10" },
    { uprof_format_budget, 5000,          "0.5" },
};
/* clang-format on */

static void
test_numbers(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = cases[i].format(cases[i].value);
        g_assert_cmpstr(text, ==, cases[i].text);
    }
}

static void
test_percent(void)
{
    g_autofree char *rounded = uprof_format_percent(1, 3);
    g_autofree char *all = uprof_format_percent(7, 7);
    g_autofree char *none = uprof_format_percent(0, 0);

    g_assert_cmpstr(rounded, ==, "33.3");
    g_assert_cmpstr(all, ==, "100.0");
    g_assert_cmpstr(none, ==, "0.0");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/number-text/numbers", test_numbers);
    g_test_add_func("/number-text/percent", test_percent);
    return g_test_run();
}
