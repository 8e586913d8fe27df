/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <glib.h>

#include "uprof/histogram.h"

static void
test_empty(void)
{
    g_autofree UprofHistogram *histogram = g_new0(UprofHistogram, 1);

    g_assert_cmpuint(uprof_histogram_percentile(histogram, 0), ==, 0);
    g_assert_cmpuint(uprof_histogram_percentile(histogram, 50), ==, 0);
    g_assert_cmpuint(uprof_histogram_percentile(histogram, 100), ==, 0);
}

/* Each percentile of a single value is that value. */
static void
test_single(void)
{
    for (unsigned bit = 0; bit < 64; bit++) {
        for (int delta = -1; delta <= 1; delta++) {
            g_autofree UprofHistogram *histogram = g_new0(UprofHistogram, 1);
            const uint64_t ns = (UINT64_C(1) << bit) + delta;

            uprof_histogram_add(histogram, ns);
            g_assert_cmpuint(uprof_histogram_percentile(histogram, 1), ==, ns);
            g_assert_cmpuint(uprof_histogram_percentile(histogram, 100), ==, ns);
            g_assert_cmpuint(histogram->min_ns, ==, ns);
            g_assert_cmpuint(histogram->max_ns, ==, ns);
            g_assert_cmpuint(histogram->total_ns, ==, ns);
        }
    }
}

static void
test_largest(void)
{
    g_autofree UprofHistogram *histogram = g_new0(UprofHistogram, 1);

    uprof_histogram_add(histogram, 0);
    uprof_histogram_add(histogram, UINT64_MAX);
    g_assert_cmpuint(uprof_histogram_percentile(histogram, 50), ==, 0);
    g_assert_cmpuint(uprof_histogram_percentile(histogram, 51), ==, UINT64_MAX);
}

static void
test_exact_below_128(void)
{
    g_autofree UprofHistogram *histogram = g_new0(UprofHistogram, 1);

    for (unsigned ns = 1; ns <= 100; ns++)
        uprof_histogram_add(histogram, ns);
    for (unsigned percent = 1; percent <= 100; percent++)
        g_assert_cmpuint(uprof_histogram_percentile(histogram, percent), ==, percent);
    g_assert_cmpuint(uprof_histogram_percentile(histogram, 0), ==, 1);
    g_assert_cmpuint(histogram->count, ==, 100);
    g_assert_cmpuint(histogram->total_ns, ==, 5050);
}

/* Percentiles are never too small, and at most 1/64 too large. */
static void
test_precision(void)
{
    enum { STEP_NS = 1009 };
    g_autofree UprofHistogram *histogram = g_new0(UprofHistogram, 1);

    for (uint64_t i = 1; i <= 10000; i++)
        uprof_histogram_add(histogram, i * STEP_NS);
    for (unsigned percent = 1; percent <= 100; percent++) {
        const uint64_t exact = (uint64_t)percent * 100 * STEP_NS;
        const uint64_t found = uprof_histogram_percentile(histogram, percent);

        g_assert_cmpuint(found, >=, exact);
        g_assert_cmpuint(found, <=, exact + exact / 64);
    }
}

static void
test_full_bucket(void)
{
    g_autofree UprofHistogram *histogram = g_new0(UprofHistogram, 1);

    uprof_histogram_add(histogram, 5);
    histogram->buckets[5] = UINT32_MAX;
    histogram->count = UINT64_C(1) << 40;
    uprof_histogram_add(histogram, 5);
    g_assert_cmpuint(histogram->buckets[5], ==, UINT32_MAX);
    g_assert_cmpuint(uprof_histogram_percentile(histogram, 99), ==, 5);
}

static void
test_many(void)
{
    UprofHistogram one = { 0 }, many = { 0 };

    for (unsigned i = 0; i < 5; i++)
        uprof_histogram_add(&one, 1234567);
    uprof_histogram_add_many(&many, 1234567, 5);
    uprof_histogram_add_many(&many, 1, 0);
    g_assert_cmpmem(&one, sizeof(one), &many, sizeof(many));
    /* A saturated bucket stays saturated. */
    uprof_histogram_add_many(&many, 1234567, UINT32_MAX);
    uprof_histogram_add_many(&many, 1234567, 1);
    g_assert_cmpuint(many.count, ==, UINT64_C(6) + UINT32_MAX);
    g_assert_cmpuint(uprof_histogram_percentile(&many, 50), ==, 1234567);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    g_test_add_func("/histogram/empty", test_empty);
    g_test_add_func("/histogram/single", test_single);
    g_test_add_func("/histogram/largest", test_largest);
    g_test_add_func("/histogram/exact-below-128", test_exact_below_128);
    g_test_add_func("/histogram/precision", test_precision);
    g_test_add_func("/histogram/full-bucket", test_full_bucket);
    g_test_add_func("/histogram/many", test_many);
    return g_test_run();
}
