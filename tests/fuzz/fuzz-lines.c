/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Debug information of an ELF file, as libdw reads it. The first four bytes are the lowest wanted
 * address. The rest is the file.
 *
 * The seeds are builds of one program of twenty lines with nested functions: by gcc and clang, with
 * DWARF of versions 3 to 5, packed, and split into two files.
 */
#include "fuzz.h"

#include "../../src/sym/lines-priv.h"
#include "uprof/clock.h"

#include <string.h>

enum { ADDRESSES = 64, STEP = 3, SECOND = 0xf80, CPU_S_MAX = 2 };

/* libdw keeps tables of all entries that it has read. */
FuzzBounds
fuzz_bounds(void)
{
    return (FuzzBounds){
        .base_ms = 200,
        .us_per_kib = 50 * 1000,
        .base_kib = 4 * 1024,
        .bytes_per_byte = 1024,
        .n_mutations = 200,
    };
}

void
fuzz_input(const uint8_t *data, size_t size)
{
    uint64_t addresses[ADDRESSES];
    g_autofree char *why = NULL;
    uint32_t first;

    if (size < sizeof(first))
        return;
    memcpy(&first, data, sizeof(first));
    for (unsigned i = 0; i < ADDRESSES; i++)
        addresses[i] =
            GUINT32_FROM_LE(first) + (uint64_t)i * STEP + (i < ADDRESSES / 2 ? 0 : SECOND);
    /* libdw may write to what it reads */
    g_autofree uint8_t *elf = g_memdup2(data + sizeof(first), size - sizeof(first));
    g_autoptr(UprofLines) lines =
        uprof_lines_read((UprofSlice){ elf, size - sizeof(first) }, addresses, ADDRESSES,
                         CPU_S_MAX * UPROF_NS_PER_S, &why);
    for (unsigned i = 0; i < ADDRESSES; i++) {
        const UprofLineFrame *frames;
        const unsigned n = uprof_lines_get(lines, i, &frames);
        g_assert(n <= UPROF_LINES_FRAMES_MAX);
        for (unsigned j = 0; j < n; j++)
            g_assert(memchr(frames[j].name.data, '\0', frames[j].name.len) == NULL);
    }
}
