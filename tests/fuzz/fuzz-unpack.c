/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * After a first byte of 0 an .xz file follows. After another byte a zlib stream follows, which
 * must unpack to 16 times as many bytes as the value of the first byte.
 */
#include "fuzz.h"

#include "../../src/parse/unpack-priv.h"
#include "uprof/unpack.h"

enum { XZ_MAX = 1024 * 1024, ZLIB_STEP = 16 };

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autoptr(GError) error = NULL;

    if (size == 0)
        return 0;
    const UprofSlice packed = { data + 1, size - 1 };
    const size_t len = (size_t)data[0] * ZLIB_STEP;
    g_autoptr(GByteArray) bytes = data[0] == 0 ? uprof_unpack_xz(packed, "file", XZ_MAX, &error)
                                               : uprof_unpack_zlib(packed, "file", len, &error);
    check_answer(bytes != NULL, error);
    if (bytes)
        g_assert(data[0] == 0 ? bytes->len <= XZ_MAX : bytes->len == len);
    return 0;
}
