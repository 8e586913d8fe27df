/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/sorted.h"

int
uprof_compare_u32(gconstpointer one, gconstpointer other)
{
    return UPROF_COMPARE(*(const uint32_t *)one, *(const uint32_t *)other);
}

int
uprof_compare_u64(gconstpointer one, gconstpointer other)
{
    return UPROF_COMPARE(*(const uint64_t *)one, *(const uint64_t *)other);
}

size_t
uprof_sorted_count_below(const uint64_t *keys, size_t n, size_t stride, uint64_t key)
{
    size_t low = 0, high = n;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (*(const uint64_t *)((const char *)keys + middle * stride) < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

size_t
uprof_sorted_count_up_to(const uint64_t *keys, size_t n, size_t stride, uint64_t key)
{
    return key == UINT64_MAX ? n : uprof_sorted_count_below(keys, n, stride, key + 1);
}
