/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The text of a perf map, in two parts. The first byte tells where the second part begins, in
 * 256ths of the text; its lowest bit tells whether the second part continues the first one.
 */
#include "../../src/parse/perf-map-priv.h"
#include "fuzz.h"
#include "uprof/perf-map.h"

FuzzBounds
fuzz_bounds(void)
{
    return (FuzzBounds){
        .base_ms = 5,
        .us_per_kib = 400,
        .base_kib = 64,
        .bytes_per_byte = 64,
        .n_mutations = 100,
    };
}

/* Functions do not overlap: each one is found at its first and last byte. */
static void
check_function(const UprofPerfMap *map, uint64_t address)
{
    UprofSymbol symbol, again;

    if (!uprof_perf_map_find(map, address, &symbol))
        return;
    g_assert(symbol.size > 0 && address - symbol.start < symbol.size);
    g_assert(symbol.name.len > 0 && symbol.name.len <= UPROF_PERF_MAP_NAME_BYTES_MAX);
    g_assert(uprof_perf_map_find(map, symbol.start, &again) && again.start == symbol.start);
    g_assert(uprof_perf_map_find(map, symbol.start + symbol.size - 1, &again) &&
             again.start == symbol.start);
}

void
fuzz_input(const uint8_t *data, size_t size)
{
    if (size == 0)
        return;
    g_autoptr(UprofPerfMap) map = uprof_perf_map_new();
    const UprofSlice text = { data + 1, size - 1 };
    const size_t first = text.len * data[0] / 256;

    uprof_perf_map_add(map, (UprofSlice){ text.data, first }, true);
    uprof_perf_map_add(map, (UprofSlice){ (const uint8_t *)text.data + first, text.len - first },
                       data[0] & 1);
    g_assert(uprof_perf_map_count(map) <=
             MIN(text.len / 6 + 1, (size_t)UPROF_PERF_MAP_FUNCTIONS_MAX));
    for (unsigned bit = 0; bit < 64; bit++) {
        check_function(map, UINT64_C(1) << bit);
        check_function(map, (UINT64_C(1) << bit) - 1);
    }
}
