/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "call-targets-priv.h"

#include "uprof/sorted.h"
#include "uprof/x86-insn.h"

/*
 * Decodes one instruction after the other. Bytes that do not decode are skipped one by one.
 */
static void
add_targets(const UprofCodeRange *range, size_t len, unsigned word_bytes, const GArray *ranges,
            GArray *targets)
{
    const uint8_t *bytes = range->bytes.data;

    for (size_t at = 0; at < len && targets->len < UPROF_CALL_TARGETS_MAX;) {
        UprofX86Insn insn;
        if (!uprof_x86_insn((UprofSlice){ bytes + at, len - at }, word_bytes, &insn)) {
            at++;
            continue;
        }
        at += insn.len;
        if (insn.kind != UPROF_X86_CALL || insn.value == 0)
            continue;
        const uint64_t target = range->start + at + (uint64_t)insn.value;
        if (uprof_code_range_find(ranges, target))
            g_array_append_val(targets, target);
    }
}

GArray *
uprof_call_targets_find(const GArray *ranges, unsigned word_bytes)
{
    GArray *targets = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    size_t left = UPROF_CALL_TARGETS_CODE_BYTES_MAX;
    guint n = 0;

    for (guint i = 0; i < ranges->len; i++) {
        const UprofCodeRange *range = &g_array_index(ranges, UprofCodeRange, i);
        const size_t len = range->bytes.data ? MIN(range->bytes.len, left) : 0;
        add_targets(range, len, word_bytes, ranges, targets);
        left -= len;
    }
    g_array_sort(targets, uprof_compare_u64);
    for (guint i = 0; i < targets->len; i++) {
        const uint64_t target = g_array_index(targets, uint64_t, i);
        if (n == 0 || g_array_index(targets, uint64_t, n - 1) != target)
            g_array_index(targets, uint64_t, n++) = target;
    }
    g_array_set_size(targets, n);
    return targets;
}

/* Returns: how many targets are at or below @address */
static guint
count_up_to(const GArray *targets, uint64_t address)
{
    return (guint)uprof_sorted_count_up_to((const uint64_t *)(const void *)targets->data,
                                           targets->len, sizeof(uint64_t), address);
}

bool
uprof_call_targets_around(const GArray *targets, const GArray *ranges, uint64_t address,
                          uint64_t *start, uint64_t *end)
{
    const UprofCodeRange *range = uprof_code_range_find(ranges, address);
    const guint n = count_up_to(targets, address);

    if (!range || n == 0 || g_array_index(targets, uint64_t, n - 1) < range->start)
        return false;
    *start = g_array_index(targets, uint64_t, n - 1);
    *end = n < targets->len ? MIN(g_array_index(targets, uint64_t, n), range->end) : range->end;
    return true;
}

void
uprof_call_targets_narrow(const GArray *targets, uint64_t address, uint64_t *start, uint64_t *end)
{
    const guint n = count_up_to(targets, address);

    if (n > 0)
        *start = MAX(*start, g_array_index(targets, uint64_t, n - 1));
    if (n < targets->len)
        *end = MIN(*end, g_array_index(targets, uint64_t, n));
}
