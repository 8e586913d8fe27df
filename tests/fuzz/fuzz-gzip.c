/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../src/parse/gzip-priv.h"
#include "fuzz.h"
#include "uprof/gzip.h"

void
fuzz_input(const uint8_t *data, size_t size)
{
    const UprofSlice bytes = { data, size };
    g_autoptr(GError) error = NULL;
    g_autoptr(GByteArray) out = uprof_gzip_inflate("file", bytes, &error);

    check_answer(out != NULL, error);
    g_assert(!out || uprof_gzip_is(bytes));
    g_assert(!out || out->len <= (guint)UPROF_GZIP_BYTES_MAX_MIB << 20);
}
