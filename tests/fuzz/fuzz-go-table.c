/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The first byte says which page of the table is missing, and whether the address of the code is
 * known. Then comes the table.
 */
#include "fuzz.h"

#include "../../src/parse/go-table-priv.h"
#include "uprof/symbol.h"

enum { TEXT = 0x401000, PAGE = 256, KNOWS_TEXT = 0x80, SYMBOLS_MAX = 4096 };

typedef struct {
    UprofSlice table;
    uint64_t missing; /* number of a page */
} Source;

static bool
get_bytes(const void *data, uint64_t at, uint64_t len, UprofSlice *slice)
{
    const Source *source = data;

    return uprof_slice_sub(source->table, at, len, slice) &&
           (at / PAGE > source->missing || (at + len - 1) / PAGE < source->missing);
}

void
fuzz_input(const uint8_t *data, size_t size)
{
    g_autoptr(GArray) symbols = g_array_new(FALSE, FALSE, sizeof(UprofSymbol));
    g_autoptr(GArray) frames = g_array_new(FALSE, FALSE, sizeof(UprofFrameSize));

    if (size < 1)
        return;
    const Source source = { { data + 1, size - 1 }, data[0] & ~KNOWS_TEXT };
    const UprofGoReader reader = { get_bytes, &source, source.table.len };
    const UprofGoFound found = { symbols, SYMBOLS_MAX, frames };
    const bool ok = uprof_go_table_read(&reader, data[0] & KNOWS_TEXT ? TEXT : 0, TEXT, &found);

    g_assert(ok || (symbols->len == 0 && frames->len == 0));
    g_assert(symbols->len <= SYMBOLS_MAX);
    for (guint i = 0; i < symbols->len; i++) {
        const UprofSymbol *symbol = &g_array_index(symbols, UprofSymbol, i);
        uint64_t end;
        g_assert(symbol->name.len > 0 && symbol->size > 0);
        g_assert(is_part(symbol->name, source.table));
        g_assert(!__builtin_add_overflow(symbol->start, symbol->size, &end));
    }
    for (guint i = 1; i < frames->len; i++)
        g_assert(g_array_index(frames, UprofFrameSize, i - 1).pc <=
                 g_array_index(frames, UprofFrameSize, i).pc);
}
