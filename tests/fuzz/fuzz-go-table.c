/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The first byte says from where on a page of the table is missing, in pieces of 16 bytes, and
 * whether the address of the code is known. Then comes the table.
 */
#include "fuzz.h"

#include "../../src/parse/go-table-priv.h"
#include "uprof/symbol.h"

#include <string.h>

enum { TEXT = 0x401000, KNOWS_TEXT = 0x80, SYMBOLS_MAX = 4096, PIECE = 16, PAGES_MAX = 64 };

void
fuzz_input(const uint8_t *data, size_t size)
{
    g_autoptr(GArray) symbols = g_array_new(FALSE, FALSE, sizeof(UprofSymbol));
    g_autoptr(GArray) frames = g_array_new(FALSE, FALSE, sizeof(UprofFrameSize));
    bool is_here[PAGES_MAX];

    if (size < 1)
        return;
    memset(is_here, true, sizeof(is_here));
    is_here[1] = false;
    const unsigned first_len = (data[0] & ~KNOWS_TEXT) * PIECE; /* bytes of the first page */
    const UprofGoBytes table = {
        { data + 1, MIN(size - 1, (PAGES_MAX - 1) * (size_t)UPROF_GO_PAGE_BYTES) },
        is_here,
        UPROF_GO_PAGE_BYTES - 1 - first_len,
    };
    const UprofGoFound found = { symbols, SYMBOLS_MAX, frames };
    const bool ok = uprof_go_table_read(&table, data[0] & KNOWS_TEXT ? TEXT : 0, TEXT, &found) != 0;

    g_assert(ok || (symbols->len == 0 && frames->len == 0));
    g_assert(symbols->len <= SYMBOLS_MAX);
    for (guint i = 0; i < symbols->len; i++) {
        const UprofSymbol *symbol = &g_array_index(symbols, UprofSymbol, i);
        uint64_t end;
        g_assert(symbol->name.len > 0 && symbol->size > 0);
        g_assert(is_part(symbol->name, table.all));
        g_assert(!__builtin_add_overflow(symbol->start, symbol->size, &end));
    }
    for (guint i = 1; i < frames->len; i++)
        g_assert(g_array_index(frames, UprofFrameSize, i - 1).pc <=
                 g_array_index(frames, UprofFrameSize, i).pc);
}
