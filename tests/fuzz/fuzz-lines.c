/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The first byte is the number of addresses, the rest is the reply of a child. */
#include "fuzz.h"

#include "../../src/sym/lines-priv.h"

void
fuzz_input(const uint8_t *data, size_t size)
{
    g_autoptr(GByteArray) answer = g_byte_array_new();

    if (size == 0)
        return;
    g_byte_array_append(answer, data + 1, (guint)size - 1);
    const UprofSlice all = { answer->data, answer->len };
    g_autoptr(UprofLines) lines = uprof_lines_parse(answer, data[0]);
    for (unsigned i = 0; i < data[0]; i++) {
        const UprofLineFrame *frames;
        const unsigned n = uprof_lines_get(lines, i, &frames);
        g_assert(n <= UPROF_LINES_FRAMES_MAX);
        for (unsigned j = 0; j < n; j++)
            g_assert(is_part(frames[j].name, all) && is_part(frames[j].file, all));
    }
}
