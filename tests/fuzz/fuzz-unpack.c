/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * If the first byte is 0, an .xz file follows. If the first byte is N, a zlib stream follows, which
 * must unpack to exactly 16 * N bytes.
 */
#include "fuzz.h"

#include "../../src/parse/unpack-priv.h"
#include "uprof/unpack.h"

/* The decoder of xz may use 80 MiB. One byte unpacks to at most 7000, in a buffer that doubles. */
FuzzBounds
fuzz_bounds(void)
{
    return (FuzzBounds){
        .base_ms = 200,
        .us_per_kib = 100 * 1000,
        .base_kib = 84 * 1024,
        .bytes_per_byte = 24 * 1024,
        .n_mutations = 100,
    };
}

enum { XZ_MAX = 1024 * 1024, ZLIB_STEP = 16 };

void
fuzz_input(const uint8_t *data, size_t size)
{
    g_autoptr(GError) error = NULL;

    if (size == 0)
        return;
    const UprofSlice packed = { data + 1, size - 1 };
    const size_t len = (size_t)data[0] * ZLIB_STEP;
    g_autoptr(GByteArray) bytes = data[0] == 0 ? uprof_unpack_xz(packed, "file", XZ_MAX, &error)
                                               : uprof_unpack_zlib(packed, "file", len, &error);
    check_answer(bytes != NULL, error);
    if (bytes)
        g_assert(data[0] == 0 ? bytes->len <= XZ_MAX : bytes->len == len);
}
