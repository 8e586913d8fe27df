/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../../src/sampler/budget-priv.h"

#include <glib.h>

enum {
    PERIOD_HOLDS = 16,
    SHARE_PPM = 10 * 1000, /* 1 % */
    INTERVAL_NS = 1000 * 1000,
    FIT_NS = INTERVAL_NS / 100, /* holds of this length use exactly the budget at stride 1 */
};

/* clang-format off */
static const struct {
    const char *name;
    uint64_t hold_ns;
    uint64_t divisor;
} divide_cases[] = {
    { "no-hold",               0,                1 },
    { "far-below-the-budget",  FIT_NS / 10,      1 },
    { "just-the-budget",       FIT_NS,           1 },
    { "a-little-more",         FIT_NS + 1000,    2 },
    { "twice-the-budget",      2 * FIT_NS,       2 },
    { "longer-than-a-tick",    3 * INTERVAL_NS,  300 },
};
/* clang-format on */

static void
test_divide(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);

    g_assert_cmpuint(uprof_budget_divide(divide_cases[i].hold_ns, INTERVAL_NS, SHARE_PPM), ==,
                     divide_cases[i].divisor);
}

/* Samples one period at the rate of @budget. Returns: the stride after it */
static uint64_t
sample_period(UprofBudget *budget, uint64_t *now_ns, uint64_t hold_ns)
{
    for (unsigned i = 0; i < PERIOD_HOLDS; i++) {
        const uint64_t stride = budget->stride;
        *now_ns += stride * INTERVAL_NS;
        const uint64_t after = uprof_budget_review(budget, hold_ns, *now_ns);
        if (i + 1 < PERIOD_HOLDS)
            g_assert_cmpuint(after, ==, stride);
    }
    return budget->stride;
}

static void
test_first_period(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    UprofBudget budget = { .share_ppm = SHARE_PPM, .stride = 1 };
    uint64_t now_ns = 0;

    g_assert_cmpuint(sample_period(&budget, &now_ns, divide_cases[i].hold_ns), ==,
                     divide_cases[i].divisor);
}

/* For any length of holds, the stride keeps the budget and uses nearly half of it or more. */
static void
test_steady_holds_fit(void)
{
    for (uint64_t hold_ns = FIT_NS / 4; hold_ns < 40 * FIT_NS; hold_ns += FIT_NS / 4) {
        UprofBudget budget = { .share_ppm = SHARE_PPM, .stride = 7 };
        uint64_t now_ns = 0;
        for (unsigned i = 0; i < 40; i++)
            sample_period(&budget, &now_ns, hold_ns);
        const uint64_t share_ppm = hold_ns * 1000000 / (budget.stride * INTERVAL_NS);
        g_assert_cmpuint(share_ppm, <=, SHARE_PPM);
        if (budget.stride > 1)
            g_assert_cmpuint(share_ppm * 2 + SHARE_PPM / 10, >=, SHARE_PPM);
    }
}

static void
test_short_holds_lower_the_stride(void)
{
    UprofBudget budget = { .share_ppm = SHARE_PPM, .stride = 1 };
    uint64_t now_ns = 0;

    g_assert_cmpuint(sample_period(&budget, &now_ns, 8 * FIT_NS), ==, 8);
    for (unsigned i = 0; i < 20; i++)
        sample_period(&budget, &now_ns, FIT_NS / 4);
    g_assert_cmpuint(budget.stride, ==, 1);
}

static void
test_one_slow_hold_fades(void)
{
    UprofBudget budget = { .share_ppm = SHARE_PPM, .stride = 1 };
    uint64_t now_ns = 0;

    for (unsigned i = 0; i < 20; i++)
        sample_period(&budget, &now_ns, FIT_NS / 2);
    g_assert_cmpuint(budget.stride, ==, 1);
    /* spread over the four periods that still count, the slow hold is within the budget */
    uprof_budget_review(&budget, 20 * FIT_NS, now_ns += INTERVAL_NS);
    g_assert_cmpuint(sample_period(&budget, &now_ns, FIT_NS / 2), ==, 1);
}

static void
test_stride_is_limited(void)
{
    UprofBudget budget = { .share_ppm = 1, .stride = 1 };
    uint64_t now_ns = 0;

    g_assert_cmpuint(sample_period(&budget, &now_ns, INTERVAL_NS), ==, G_MAXUINT16);
    uprof_budget_set_stride(&budget, UINT64_MAX);
    g_assert_cmpuint(budget.stride, ==, G_MAXUINT16);
    uprof_budget_set_stride(&budget, 0);
    g_assert_cmpuint(budget.stride, ==, 1);
}

static void
test_clock_that_stands(void)
{
    UprofBudget budget = { .share_ppm = SHARE_PPM, .stride = 1, .period_ns = 5 };

    for (unsigned i = 0; i < PERIOD_HOLDS; i++)
        uprof_budget_review(&budget, 0, 5);
    g_assert_cmpuint(budget.stride, ==, 1);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(divide_cases); i++) {
        g_autofree char *divide = g_strdup_printf("/budget/divide/%s", divide_cases[i].name);
        g_autofree char *review = g_strdup_printf("/budget/review/%s", divide_cases[i].name);
        g_test_add_data_func(divide, GSIZE_TO_POINTER(i), test_divide);
        g_test_add_data_func(review, GSIZE_TO_POINTER(i), test_first_period);
    }
    g_test_add_func("/budget/steady-holds-fit", test_steady_holds_fit);
    g_test_add_func("/budget/short-holds-lower-the-stride", test_short_holds_lower_the_stride);
    g_test_add_func("/budget/one-slow-hold-fades", test_one_slow_hold_fades);
    g_test_add_func("/budget/stride-is-limited", test_stride_is_limited);
    g_test_add_func("/budget/clock-stands", test_clock_that_stands);
    return g_test_run();
}
