/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "targets-priv.h"

#include "uprof/x86-insn.h"

static gint
compare_addresses(gconstpointer a, gconstpointer b)
{
    const uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;

    return one < other ? -1 : one > other;
}

/* One instruction after the other; where there is none, at the next byte again. */
static void
sweep(const UprofImageRange *range, size_t len, unsigned word_bytes, const GArray *ranges,
      GArray *targets)
{
    const uint8_t *bytes = range->bytes.data;

    for (size_t at = 0; at < len && targets->len < UPROF_TARGETS_MAX;) {
        UprofX86Insn insn;
        if (!uprof_x86_insn((UprofSlice){ bytes + at, len - at }, word_bytes, &insn)) {
            at++;
            continue;
        }
        at += insn.len;
        if (insn.kind != UPROF_X86_CALL || insn.value == 0)
            continue;
        const uint64_t target = range->start + at + (uint64_t)(int64_t)insn.value;
        if (uprof_range_find(ranges, target))
            g_array_append_val(targets, target);
    }
}

GArray *
uprof_targets_find(const GArray *ranges, unsigned word_bytes)
{
    GArray *targets = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    size_t left = UPROF_TARGETS_CODE_BYTES_MAX;
    guint n = 0;

    for (guint i = 0; i < ranges->len; i++) {
        const UprofImageRange *range = &g_array_index(ranges, UprofImageRange, i);
        const size_t len = range->bytes.data ? MIN(range->bytes.len, left) : 0;
        sweep(range, len, word_bytes, ranges, targets);
        left -= len;
    }
    g_array_sort(targets, compare_addresses);
    for (guint i = 0; i < targets->len; i++) {
        const uint64_t target = g_array_index(targets, uint64_t, i);
        if (n == 0 || g_array_index(targets, uint64_t, n - 1) != target)
            g_array_index(targets, uint64_t, n++) = target;
    }
    g_array_set_size(targets, n);
    return targets;
}

/* Returns: how many are up to @address */
static guint
count_up_to(const GArray *targets, uint64_t address)
{
    guint low = 0, high = targets->len;

    while (low < high) {
        const guint middle = low + (high - low) / 2;
        if (g_array_index(targets, uint64_t, middle) <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool
uprof_targets_around(const GArray *targets, const GArray *ranges, uint64_t address, uint64_t *start,
                     uint64_t *end)
{
    const UprofImageRange *range = uprof_range_find(ranges, address);
    const guint n = count_up_to(targets, address);

    if (!range || n == 0 || g_array_index(targets, uint64_t, n - 1) < range->start)
        return false;
    *start = g_array_index(targets, uint64_t, n - 1);
    *end = n < targets->len ? MIN(g_array_index(targets, uint64_t, n), range->end) : range->end;
    return true;
}

void
uprof_targets_narrow(const GArray *targets, uint64_t address, uint64_t *start, uint64_t *end)
{
    const guint n = count_up_to(targets, address);

    if (n > 0)
        *start = MAX(*start, g_array_index(targets, uint64_t, n - 1));
    if (n < targets->len)
        *end = MIN(*end, g_array_index(targets, uint64_t, n));
}
