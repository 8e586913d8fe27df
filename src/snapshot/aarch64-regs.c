/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/snapshot.h"

enum {
    EL_USER,
    EL_KERNEL,
    LEVEL_SHIFT = 2,   /* of the exception level in PSTATE (Arm ARM, C5.2) */
    HALF_BIT = 55,     /* of an address: which half it lies in */
    USUAL_UNUSED = 16, /* bits of an address, if the page tables are not known */
};

/* A processor that PSCI has not turned on: QEMU has set only its program counter. */
static bool
was_never_started(const UprofRegs *regs)
{
    uint64_t all = regs->sp;

    for (unsigned i = UPROF_ARM_X0; i <= UPROF_ARM_LR; i++)
        all |= regs->reg[i];
    return all == 0;
}

void
uprof_aarch64_finish_regs(UprofRegs *regs)
{
    const unsigned level = regs->flags >> LEVEL_SHIFT & 3;

    regs->pc = regs->reg[UPROF_ARM_PC];
    regs->sp = regs->reg[UPROF_ARM_SP];
    regs->fp = regs->reg[UPROF_ARM_FP];
    regs->word_bytes = 8;
    regs->privilege = level == EL_USER ? 3 : 0;
    /* The registers of a hypervisor (EL2), of firmware (EL3) and of 32-bit code say nothing about
     * the tables of EL1. */
    regs->smm = level > EL_KERNEL || regs->flags & UPROF_ARM_PSTATE_AARCH32;
    regs->halted |= level != EL_USER && was_never_started(regs);
}

/*
 * The signature is in the bits between the address and bit 55, and in the top byte unless this byte
 * is ignored (Arm ARM, D8.8, pointer authentication). Bit 55 stays what it was.
 */
uint64_t
uprof_regs_plain_address(const UprofArch *arch, const UprofRegs *regs, uint64_t address)
{
    const bool is_upper = address >> HALF_BIT & 1;
    const uint64_t tcr = regs->sys[UPROF_ARM_TCR];
    unsigned unused = (unsigned)(tcr >> (is_upper ? 16 : 0) & 0x3f);

    if (arch->family != UPROF_FAMILY_ARM)
        return address;
    if (unused == 0)
        unused = USUAL_UNUSED;
    const uint64_t above = UINT64_MAX << (64 - unused);
    return is_upper ? address | above : address & ~above;
}
