/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "generated-code-priv.h"

#include "uprof/sym.h"

/*
 * The symbol address: one bit that no guest address and no module has, 14 bits that distinguish
 * processes, and the low 48 bits of the program counter.
 */
#define PROCESS_BIT (UINT64_C(1) << 62)
#define PROCESS_SHIFT 48
#define PC_MASK (UINT64_MAX >> 16)
#define ID_MASK (UPROF_SYM_PROCESSES - 1)

#define BYTES_MAX (UINT64_C(64) << 20) /* of memory for all processes */

struct _UprofGenerated {
    GHashTable *maps; /* number of the process -> UprofPerfMap; owned */
    uint64_t bytes;   /* of all maps */
};

uint64_t
uprof_sym_process_address(unsigned process, uint64_t pc)
{
    return PROCESS_BIT | (uint64_t)(process & ID_MASK) << PROCESS_SHIFT | (pc & PC_MASK);
}

UprofGenerated *
uprof_generated_new(void)
{
    UprofGenerated *generated = g_new0(UprofGenerated, 1);

    generated->maps = g_hash_table_new_full(NULL, NULL, NULL, (GDestroyNotify)uprof_perf_map_free);
    return generated;
}

void
uprof_generated_free(UprofGenerated *generated)
{
    g_hash_table_unref(generated->maps);
    g_free(generated);
}

bool
uprof_sym_is_process_address(uint64_t pc)
{
    return pc >> 62 == 1;
}

static UprofPerfMap *
find_map(const UprofGenerated *generated, unsigned process)
{
    return g_hash_table_lookup(generated->maps, GUINT_TO_POINTER(process & ID_MASK));
}

bool
uprof_generated_find(const UprofGenerated *generated, uint64_t pc, UprofSymbol *symbol)
{
    if (!uprof_sym_is_process_address(pc))
        return false;
    const unsigned process = pc >> PROCESS_SHIFT & ID_MASK;
    const UprofPerfMap *map = find_map(generated, process);
    if (!map || !uprof_perf_map_find(map, pc & PC_MASK, symbol))
        return false;
    symbol->start = uprof_sym_process_address(process, symbol->start);
    return true;
}

bool
uprof_generated_add(UprofGenerated *generated, unsigned process, UprofSlice text, bool is_continued)
{
    UprofPerfMap *map = find_map(generated, process);

    if (generated->bytes >= BYTES_MAX)
        return false;
    if (!map) {
        map = uprof_perf_map_new();
        g_hash_table_insert(generated->maps, GUINT_TO_POINTER(process & ID_MASK), map);
    }
    generated->bytes -= uprof_perf_map_bytes(map);
    uprof_perf_map_add(map, text, is_continued);
    generated->bytes += uprof_perf_map_bytes(map);
    return true;
}

void
uprof_generated_forget(UprofGenerated *generated, unsigned process)
{
    const UprofPerfMap *map = find_map(generated, process);

    if (!map)
        return;
    generated->bytes -= uprof_perf_map_bytes(map);
    g_hash_table_remove(generated->maps, GUINT_TO_POINTER(process & ID_MASK));
}

size_t
uprof_generated_count(const UprofGenerated *generated, unsigned *n_processes)
{
    GHashTableIter iter;
    gpointer map;
    size_t n = 0;

    *n_processes = 0;
    g_hash_table_iter_init(&iter, generated->maps);
    while (g_hash_table_iter_next(&iter, NULL, &map)) {
        n += uprof_perf_map_count(map);
        *n_processes += uprof_perf_map_count(map) > 0;
    }
    return n;
}
