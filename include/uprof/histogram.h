/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * histogram.h - the distribution of durations, in fixed memory
 *
 * Buckets grow with the value. A percentile below 128 ns is exact; a larger percentile is at most
 * 1/64 too large. Minimum, maximum, count and sum are exact.
 */
#pragma once

#include <stdint.h>

enum {
    UPROF_HISTOGRAM_SUB = 64, /* buckets for each power of two */
    UPROF_HISTOGRAM_BUCKETS = UPROF_HISTOGRAM_SUB * 60,
};

/** UprofHistogram: empty if all bytes are zero */
typedef struct {
    uint64_t count;
    uint64_t min_ns, max_ns, total_ns;
    uint32_t buckets[UPROF_HISTOGRAM_BUCKETS]; /* durations in each bucket */
} UprofHistogram;

/** uprof_histogram_add: counts one duration of @ns */
void uprof_histogram_add(UprofHistogram *histogram, uint64_t ns);

/** uprof_histogram_add_many: counts @n durations of @ns each */
void uprof_histogram_add_many(UprofHistogram *histogram, uint64_t ns, uint64_t n);

/**
 * uprof_histogram_percentile:
 * @percent: 0 to 100
 *
 * Returns: a time in nanoseconds that @percent of the durations do not exceed; 0 if the
 *   histogram is empty
 */
uint64_t uprof_histogram_percentile(const UprofHistogram *histogram, unsigned percent);
