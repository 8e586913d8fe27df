/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Instructions that are written as text of 64-bit and of 32-bit code. */
#include "fuzz.h"

#include "uprof/x86-insn.h"
#include "uprof/x86-text.h"

#include <string.h>

static void
check_text(const UprofX86Text *text)
{
    const size_t len = strnlen(text->text, sizeof(text->text));

    g_assert(len > 0 && len < sizeof(text->text));
    for (size_t i = 0; i < len; i++)
        g_assert(g_ascii_isprint(text->text[i]));
}

void
fuzz_input(const uint8_t *data, size_t size)
{
    for (unsigned word_bytes = 4; word_bytes <= 8; word_bytes += 4) {
        UprofX86Text text;
        UprofX86Insn insn;

        for (size_t at = 0; at < size; at += text.len) {
            const UprofSlice code = { data + at, size - at };
            if (!uprof_x86_text(code, UINT64_MAX - size / 2 + at, word_bytes, &text))
                break;
            check_text(&text);
            g_assert(uprof_x86_insn(code, word_bytes, &insn));
            g_assert(insn.len == text.len);
        }
    }
}
