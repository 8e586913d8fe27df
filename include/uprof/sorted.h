/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sorted.h - order of numbers, and search in sorted arrays
 */
#pragma once

#include <glib.h>
#include <stddef.h>
#include <stdint.h>

/** UPROF_COMPARE: -1, 0 or 1, as a comparison function returns. Evaluates both arguments twice. */
#define UPROF_COMPARE(one, other) (((one) > (other)) - ((one) < (other)))

/** uprof_compare_u32: compares two uint32_t, for sorting arrays of them */
int uprof_compare_u32(gconstpointer one, gconstpointer other);

/** uprof_compare_u64: compares two uint64_t, for sorting arrays of them */
int uprof_compare_u64(gconstpointer one, gconstpointer other);

/**
 * uprof_sorted_count_up_to: counts the entries whose key is @key or less
 * @keys: the key of the first entry; the array is sorted by key, lowest first
 * @n: entries
 * @stride: bytes from one key to the next: sizeof(uint64_t), or the size of the struct around
 *   the key
 *
 * If entries are ranges that begin at their keys, the last counted entry contains @key.
 */
size_t uprof_sorted_count_up_to(const uint64_t *keys, size_t n, size_t stride, uint64_t key);

/** uprof_sorted_count_below: counts the entries whose key is less than @key */
size_t uprof_sorted_count_below(const uint64_t *keys, size_t n, size_t stride, uint64_t key);
