/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The first byte says what follows: 0 an .xz file, 1 to 255 a zlib stream that
 * is to give so many bytes, times 16.
 */
#include "fuzz.h"

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
