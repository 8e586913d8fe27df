/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../src/parse/symbol-priv.h"
#include "fuzz.h"
#include "uprof/nm.h"

void
fuzz_input(const uint8_t *data, size_t size)
{
    const UprofSlice text = { data, size };
    g_autoptr(GArray) symbols = NULL;
    g_autoptr(GError) error = NULL;

    const bool looks_so = uprof_nm_is(text);
    const bool ok = uprof_nm_parse(text, "file", &symbols, &error);

    check_answer(ok, error);
    g_assert(ok == (symbols != NULL));
    if (!ok)
        return;

    g_assert(symbols->len > 0 && symbols->len <= UPROF_SYMBOLS_MAX);
    for (unsigned i = 0; i < symbols->len; i++) {
        const UprofSymbol *symbol = &g_array_index(symbols, UprofSymbol, i);
        uint64_t end;

        g_assert(symbol->name.len > 0 && symbol->name.len <= UPROF_SYMBOL_NAME_BYTES_MAX);
        g_assert(is_part(symbol->name, text));
        g_assert(!__builtin_add_overflow(symbol->start, symbol->size, &end));
    }
    /* a valid text is recognized, unless empty lines come first */
    g_assert(looks_so || *data == '\n' || *data == '\r');
}
