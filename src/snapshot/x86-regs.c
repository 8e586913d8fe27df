/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/snapshot.h"

/* Where a processor starts after a reset (Intel SDM, volume 3, 10.1.1) */
#define RESET_CS_BASE UINT64_C(0xffff0000)
#define RESET_IP UINT64_C(0xfff0)

static uint8_t
find_word_bytes(const UprofRegs *regs, const UprofX86Segments *segments)
{
    if ((regs->sys[UPROF_X86_EFER] & UPROF_X86_EFER_LMA) && segments->cs_long)
        return 8;
    return segments->cs_big ? 4 : 2;
}

static bool
was_never_started(const UprofRegs *regs, const UprofX86Segments *segments)
{
    return !(regs->sys[UPROF_X86_CR0] & UPROF_X86_CR0_PE) && segments->cs_base == RESET_CS_BASE &&
           regs->reg[UPROF_X86_RIP] == RESET_IP;
}

void
uprof_x86_finish_regs(UprofRegs *regs, const UprofX86Segments *segments)
{
    regs->pc = regs->reg[UPROF_X86_RIP];
    regs->sp = regs->reg[UPROF_X86_RSP];
    regs->fp = regs->reg[UPROF_X86_RBP];
    regs->word_bytes = find_word_bytes(regs, segments);
    regs->halted |= was_never_started(regs, segments);
    if (regs->word_bytes == 8)
        return;
    /* Linear addresses of 16-bit and 32-bit code have 32 bits and wrap. */
    const uint64_t stack_mask = segments->ss_big ? UINT32_MAX : UINT16_MAX;
    regs->pc = (uint32_t)(segments->cs_base + regs->pc);
    regs->sp = (uint32_t)(segments->ss_base + (regs->sp & stack_mask));
    regs->fp = (uint32_t)(segments->ss_base + (regs->fp & stack_mask));
}
