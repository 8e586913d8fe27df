/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../src/parse/symbol-priv.h"
#include "../../src/parse/elf-image-priv.h"
#include "fuzz.h"

#include <string.h>

#include "uprof/elf-image.h"

static void
check_text(const GArray *text, UprofSlice file)
{
    uint64_t end = 0;

    g_assert(text->len <= UPROF_ELF_RANGES_MAX);
    for (unsigned i = 0; i < text->len; i++) {
        const UprofElfRange *range = &g_array_index(text, UprofElfRange, i);

        g_assert(range->start >= end && range->len > 0);
        g_assert(!__builtin_add_overflow(range->start, range->len, &end));
        g_assert(range->bytes.len <= range->len && is_part(range->bytes, file));
    }
}

static void
check_symbols(const GArray *symbols, UprofSlice file)
{
    uint64_t end;

    g_assert(symbols->len <= UPROF_SYMBOLS_MAX);
    for (unsigned i = 0; i < symbols->len; i++) {
        const UprofSymbol *symbol = &g_array_index(symbols, UprofSymbol, i);

        g_assert(symbol->name.len > 0 && symbol->name.len <= UPROF_SYMBOL_NAME_BYTES_MAX);
        g_assert(is_part(symbol->name, file));
        g_assert(!__builtin_add_overflow(symbol->start, symbol->size, &end));
    }
}

void
fuzz_input(const uint8_t *data, size_t size)
{
    const UprofSlice file = { data, size };
    g_auto(UprofElfImage) image = { 0 };
    g_autoptr(GError) error = NULL;

    const bool ok = uprof_elf_parse(file, "file", &image, &error);

    check_answer(ok, error);
    if (!ok) {
        g_assert(!image.symbols && !image.text);
        return;
    }
    g_assert(uprof_elf_is(file));
    g_assert(image.word_bytes == 4 || image.word_bytes == 8);
    g_assert(image.build_id.len <= UPROF_ELF_BUILD_ID_BYTES_MAX && is_part(image.build_id, file));
    const UprofSlice unpacked = { image.unpacked ? image.unpacked->data : NULL,
                                  image.unpacked ? image.unpacked->len : 0 };
    g_assert(is_part(image.eh_frame.bytes, file));
    g_assert(is_part(image.debug_frame.bytes, unpacked) || is_part(image.debug_frame.bytes, file));
    g_assert(is_part(image.debug_data, file) && is_part(image.debug_link, file));
    g_assert(!memchr(image.debug_link.data ? image.debug_link.data : "", 0, image.debug_link.len));
    check_text(image.text, file);
    check_symbols(image.symbols, file);
}
