/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "image-priv.h"

#include <string.h>

static unsigned
count_underscores(UprofSlice name)
{
    const char *text = name.data;
    unsigned n = 0;

    while (n < name.len && text[n] == '_')
        n++;
    return n;
}

/* By address; of one address the best name first. */
static int
compare_symbols(gconstpointer a, gconstpointer b)
{
    const UprofSymbol *one = a, *other = b;

    if (one->start != other->start)
        return one->start < other->start ? -1 : 1;
    if (one->code != other->code)
        return one->code ? -1 : 1;
    if (one->binding != other->binding)
        return one->binding > other->binding ? -1 : 1;
    const unsigned n = count_underscores(one->name), m = count_underscores(other->name);
    if (n != m)
        return n < m ? -1 : 1;
    if (one->name.len != other->name.len)
        return one->name.len < other->name.len ? -1 : 1;
    return memcmp(one->name.data, other->name.data, one->name.len);
}

/* Ranges are sorted and do not overlap. */
static uint64_t
find_range_end(const GArray *ranges, uint64_t start)
{
    guint low = 0, high = ranges->len;

    while (low < high) {
        const guint middle = low + (high - low) / 2;
        const UprofImageRange *range = &g_array_index(ranges, UprofImageRange, middle);
        if (start >= range->start && start < range->end)
            return range->end;
        if (start < range->start)
            high = middle;
        else
            low = middle + 1;
    }
    return start + 1;
}

GArray *
uprof_table_symbols(const GArray *symbols, const GArray *ranges)
{
    g_autoptr(GArray) sorted = g_array_sized_new(FALSE, FALSE, sizeof(UprofSymbol), symbols->len);
    GArray *table = g_array_new(FALSE, FALSE, sizeof(UprofSymbol));

    g_array_append_vals(sorted, symbols->data, symbols->len);
    g_array_sort(sorted, compare_symbols);
    for (guint i = 0; i < sorted->len;) {
        UprofSymbol best = g_array_index(sorted, UprofSymbol, i);
        uint64_t size = best.size;
        guint next = i + 1;
        /* an alias may know the size that the better name lacks */
        for (; next < sorted->len; next++) {
            const UprofSymbol *alias = &g_array_index(sorted, UprofSymbol, next);
            if (alias->start != best.start)
                break;
            if (size == 0 && alias->code)
                size = alias->size;
        }
        const uint64_t next_start =
            next < sorted->len ? g_array_index(sorted, UprofSymbol, next).start : UINT64_MAX;
        if (best.code) {
            if (size == 0)
                size = MIN(find_range_end(ranges, best.start), next_start) - best.start;
            if (size > UINT64_MAX - best.start)
                size = UINT64_MAX - best.start;
            best.size = MAX(size, 1);
            g_array_append_val(table, best);
        }
        i = next;
    }
    return table;
}
