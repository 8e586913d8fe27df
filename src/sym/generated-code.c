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

/* The functions of a process. */
typedef struct {
    UprofPerfMap *map;
    UprofJitdump *dump; /* (nullable): reads the file if it is a jitdump */
} Functions;

struct _UprofGenerated {
    GHashTable *processes; /* number of the process -> Functions; owned */
    uint64_t bytes;        /* of all maps */
};

uint64_t
uprof_sym_process_address(unsigned process, uint64_t pc)
{
    return PROCESS_BIT | (uint64_t)(process & ID_MASK) << PROCESS_SHIFT | (pc & PC_MASK);
}

uint64_t
uprof_generated_pc(uint64_t symbol_address)
{
    return symbol_address & PC_MASK;
}

static void
free_functions(gpointer data)
{
    Functions *functions = data;

    uprof_perf_map_free(functions->map);
    uprof_jitdump_free(functions->dump);
    g_free(functions);
}

UprofGenerated *
uprof_generated_new(void)
{
    UprofGenerated *generated = g_new0(UprofGenerated, 1);

    generated->processes = g_hash_table_new_full(NULL, NULL, NULL, free_functions);
    return generated;
}

void
uprof_generated_free(UprofGenerated *generated)
{
    g_hash_table_unref(generated->processes);
    g_free(generated);
}

bool
uprof_sym_is_process_address(uint64_t pc)
{
    return pc >> 62 == 1;
}

static Functions *
find_functions(const UprofGenerated *generated, unsigned process)
{
    return g_hash_table_lookup(generated->processes, GUINT_TO_POINTER(process & ID_MASK));
}

bool
uprof_generated_find(const UprofGenerated *generated, uint64_t pc, UprofSymbol *symbol)
{
    if (!uprof_sym_is_process_address(pc))
        return false;
    const unsigned process = pc >> PROCESS_SHIFT & ID_MASK;
    const Functions *functions = find_functions(generated, process);
    if (!functions || !uprof_perf_map_find(functions->map, pc & PC_MASK, symbol))
        return false;
    symbol->start = uprof_sym_process_address(process, symbol->start);
    return true;
}

bool
uprof_generated_add(UprofGenerated *generated, unsigned process, bool is_jitdump, UprofSlice bytes,
                    uint64_t n_missing)
{
    Functions *functions = find_functions(generated, process);

    if (generated->bytes >= BYTES_MAX)
        return false;
    if (!functions) {
        functions = g_new0(Functions, 1);
        functions->map = uprof_perf_map_new();
        g_hash_table_insert(generated->processes, GUINT_TO_POINTER(process & ID_MASK), functions);
    }
    if (is_jitdump && !functions->dump)
        functions->dump = uprof_jitdump_new();
    generated->bytes -= uprof_perf_map_bytes(functions->map);
    if (is_jitdump)
        uprof_jitdump_add(functions->dump, functions->map, bytes, n_missing);
    else
        uprof_perf_map_add(functions->map, bytes, n_missing == 0);
    generated->bytes += uprof_perf_map_bytes(functions->map);
    return true;
}

void
uprof_generated_forget(UprofGenerated *generated, unsigned process)
{
    const Functions *functions = find_functions(generated, process);

    if (!functions)
        return;
    generated->bytes -= uprof_perf_map_bytes(functions->map);
    g_hash_table_remove(generated->processes, GUINT_TO_POINTER(process & ID_MASK));
}

size_t
uprof_generated_count(const UprofGenerated *generated, unsigned *n_processes)
{
    GHashTableIter iter;
    gpointer value;
    size_t n = 0;

    *n_processes = 0;
    g_hash_table_iter_init(&iter, generated->processes);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const size_t n_here = uprof_perf_map_count(((const Functions *)value)->map);
        n += n_here;
        *n_processes += n_here > 0;
    }
    return n;
}
