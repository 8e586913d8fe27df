/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Instructions that are read as 64-bit and as 32-bit code. */
#include "fuzz.h"

#include "uprof/x86-insn.h"

void
fuzz_input(const uint8_t *data, size_t size)
{
    for (unsigned word_bytes = 4; word_bytes <= 8; word_bytes += 4) {
        UprofX86Insn insn;

        for (size_t at = 0; at < size; at += insn.len) {
            if (!uprof_x86_insn((UprofSlice){ data + at, size - at }, word_bytes, &insn))
                break;
            g_assert(insn.len >= 1 && insn.len <= UPROF_X86_INSN_BYTES_MAX);
            g_assert(insn.len <= size - at);
            g_assert(insn.kind <= UPROF_X86_STOP);
            g_assert(insn.to < UPROF_X86_RIP || insn.to == UPROF_X86_REG_NONE);
            g_assert(insn.from < UPROF_X86_RIP || insn.from == UPROF_X86_REG_NONE);
            g_assert(word_bytes == 8 || insn.writes <= 0xff);
        }
    }
}
