/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A jitdump, in two parts. The first byte tells where the second part begins, in 256ths of the
 * file; its lowest bits tell how many bytes between the parts are missing.
 */
#include "../../src/parse/perf-map-priv.h"
#include "fuzz.h"
#include "uprof/jitdump.h"

enum { RECORD_BYTES_MIN = 16 };

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

static void
check_function(const UprofPerfMap *map, uint64_t address)
{
    UprofSymbol symbol;

    if (!uprof_perf_map_find(map, address, &symbol))
        return;
    g_assert(symbol.size > 0 && address - symbol.start < symbol.size);
    g_assert(symbol.name.len > 0 && symbol.name.len <= UPROF_PERF_MAP_NAME_BYTES_MAX);
}

void
fuzz_input(const uint8_t *data, size_t size)
{
    if (size == 0)
        return;
    g_autoptr(UprofPerfMap) map = uprof_perf_map_new();
    g_autoptr(UprofJitdump) dump = uprof_jitdump_new();
    const uint8_t *bytes = data + 1;
    const size_t len = size - 1, first = len * data[0] / 256;
    const size_t n_missing = MIN((size_t)data[0] & 7, len - first);

    uprof_jitdump_add(dump, map, (UprofSlice){ bytes, first }, 0);
    uprof_jitdump_add(dump, map, (UprofSlice){ bytes + first + n_missing, len - first - n_missing },
                      n_missing);
    g_assert(uprof_perf_map_count(map) <= len / RECORD_BYTES_MIN);
    for (unsigned bit = 0; bit < 64; bit++) {
        check_function(map, UINT64_C(1) << bit);
        check_function(map, (UINT64_C(1) << bit) - 1);
    }
}
