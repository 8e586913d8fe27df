/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/histogram.h"

#include <glib.h>

/*
 * Each value below 128 has a bucket of its own. For a larger value, its leading seven bits
 * (64 to 127) choose the bucket in a group of 64, and their shift chooses the group.
 */
static unsigned
find_shift(uint64_t ns)
{
    return ns < 2 * UPROF_HISTOGRAM_SUB ? 0 : 63 - 6 - __builtin_clzll(ns);
}

static uint64_t
last_ns(unsigned bucket)
{
    if (bucket < 2 * UPROF_HISTOGRAM_SUB)
        return bucket;

    const unsigned shift = bucket / UPROF_HISTOGRAM_SUB - 1;
    const uint64_t lead = bucket % UPROF_HISTOGRAM_SUB + UPROF_HISTOGRAM_SUB;
    return (lead << shift) + ((UINT64_C(1) << shift) - 1);
}

void
uprof_histogram_add_many(UprofHistogram *histogram, uint64_t ns, uint64_t n)
{
    const unsigned shift = find_shift(ns);
    uint32_t *bucket = &histogram->buckets[shift * UPROF_HISTOGRAM_SUB + (ns >> shift)];

    if (n == 0)
        return;
    *bucket += (uint32_t)MIN(n, UINT32_MAX - *bucket);
    if (histogram->count == 0 || ns < histogram->min_ns)
        histogram->min_ns = ns;
    if (ns > histogram->max_ns)
        histogram->max_ns = ns;
    histogram->count += n;
    histogram->total_ns += ns * n;
}

void
uprof_histogram_add(UprofHistogram *histogram, uint64_t ns)
{
    uprof_histogram_add_many(histogram, ns, 1);
}

uint64_t
uprof_histogram_percentile(const UprofHistogram *histogram, unsigned percent)
{
    g_assert(percent <= 100);

    const uint64_t count = histogram->count;
    const uint64_t wanted = count / 100 * percent + (count % 100 * percent + 99) / 100;
    uint64_t sum = 0;

    if (wanted == 0)
        return histogram->min_ns;
    for (unsigned i = 0; i < UPROF_HISTOGRAM_BUCKETS; i++) {
        sum += histogram->buckets[i];
        if (sum >= wanted)
            return MIN(last_ns(i), histogram->max_ns);
    }
    return histogram->max_ns; /* a bucket counter is saturated */
}
