/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fuzz.h"

#include "uprof/qemu-regs.h"

static void
parse_block(UprofSlice block, const UprofArch *arch)
{
    UprofRegs regs;
    g_autoptr(GError) error = NULL;

    const bool ok = uprof_qemu_regs_parse(block, arch, &regs, &error);

    check_answer(ok, error);
    if (!ok)
        return;
    g_assert(regs.word_bytes == 8 || regs.word_bytes == 4 || regs.word_bytes == 2);
    g_assert(regs.privilege <= 3);
    g_assert(regs.word_bytes == 8 || (regs.pc | regs.sp | regs.fp) <= UINT32_MAX);
    for (unsigned i = arch->n_regs; i < UPROF_REGS_MAX; i++)
        g_assert(regs.reg[i] == 0);
}

void
fuzz_input(const uint8_t *data, size_t size)
{
    const UprofSlice text = { data, size };
    const UprofArch *arch;

    for (size_t i = 0; (arch = uprof_arch_at(i)); i++)
        parse_block(text, arch);
    for (unsigned cpu = 0; cpu < 3; cpu++) {
        UprofSlice block;

        if (!uprof_qemu_regs_find(text, cpu, &block))
            continue;
        g_assert(is_part(block, text));
        parse_block(block, uprof_arch_at(0));
    }
}
