/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/clock.h"

/* clang-format off */
static const struct {
    const char *name;
    uint64_t utc_ns;
    gboolean compact;
    const char *text;
} cases[] = {
    { "epoch",         0,                                      FALSE, "1970-01-01T00:00:00Z" },
    { "for-people",    UINT64_C(1795166100) * UPROF_NS_PER_S,  FALSE, "2026-11-20T09:15:00Z" },
    { "compact",       UINT64_C(1795166100) * UPROF_NS_PER_S,  TRUE,  "20261120T091500Z" },
    { "rounded-down",  UPROF_NS_PER_S - 1,                     FALSE, "1970-01-01T00:00:00Z" },
    { "largest",       UINT64_MAX,                             TRUE,  "25540721T233433Z" },
};
/* clang-format on */

static void
test_format(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_autofree char *text = uprof_clock_format_utc(cases[i].utc_ns, cases[i].compact);

    g_assert_cmpstr(text, ==, cases[i].text);
}

static void
test_clocks_rise(void)
{
    const uint64_t now_ns = uprof_clock_now_ns();
    const uint64_t cpu_ns = uprof_clock_cpu_ns();

    g_assert_cmpuint(uprof_clock_now_ns(), >=, now_ns);
    g_assert_cmpuint(uprof_clock_cpu_ns(), >=, cpu_ns);
    g_assert_cmpuint(uprof_clock_utc_ns(), >, UINT64_C(1700000000) * UPROF_NS_PER_S);
}

static void
test_sleep_until(void)
{
    const uint64_t at_ns = uprof_clock_now_ns() + 5 * UPROF_NS_PER_MS;

    uprof_clock_sleep_until(at_ns);
    g_assert_cmpuint(uprof_clock_now_ns(), >=, at_ns);
    uprof_clock_sleep_until(0);
    uprof_clock_sleep_until(at_ns);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/clock/format/%s", cases[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_format);
    }
    g_test_add_func("/clock/rise", test_clocks_rise);
    g_test_add_func("/clock/sleep-until", test_sleep_until);
    return g_test_run();
}
