/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/arch.h"

#include <string.h>

enum { ELF_MACHINE_386 = 3, ELF_MACHINE_X86_64 = 62, ELF_MACHINE_AARCH64 = 183 };

/* System V psABI, Intel386 supplement, table 2.14 */
static const uint8_t dwarf_regs_386[] = {
    UPROF_X86_RAX, UPROF_X86_RCX, UPROF_X86_RDX, UPROF_X86_RBX, UPROF_X86_RSP,
    UPROF_X86_RBP, UPROF_X86_RSI, UPROF_X86_RDI, UPROF_X86_RIP,
};

/* clang-format off */
#define X86_NUMBERS \
    .family = UPROF_FAMILY_X86, .n_regs = UPROF_X86_N_REGS, .pc = UPROF_X86_RIP, .sp = UPROF_X86_RSP, .fp = UPROF_X86_RBP, \
    .kernel_root = UPROF_X86_CR3, .user_root = UPROF_X86_CR3, .mode_mask = 3, .user_mode = 3

static const UprofArch archs[] = {
    {
        .name = "x86_64", .word_bytes = 8, .elf_machine = ELF_MACHINE_X86_64, X86_NUMBERS,
        .reg_names = { "RAX", "RDX", "RCX", "RBX", "RSI", "RDI", "RBP", "RSP",
                       "R8", "R9", "R10", "R11", "R12", "R13", "R14", "R15", "RIP" },
    },
    {
        /* The numbers of x86_64 and not of its own psABI, so that the family has one numbering. */
        .name = "i686", .word_bytes = 4, .elf_machine = ELF_MACHINE_386, X86_NUMBERS,
        .dwarf_regs = dwarf_regs_386, .n_dwarf_regs = G_N_ELEMENTS(dwarf_regs_386),
        .reg_names = { "EAX", "EDX", "ECX", "EBX", "ESI", "EDI", "EBP", "ESP",
                       [UPROF_X86_RIP] = "EIP" },
    },
    {
        .name = "aarch64", .word_bytes = 8, .elf_machine = ELF_MACHINE_AARCH64,
        .family = UPROF_FAMILY_ARM, .n_regs = UPROF_ARM_N_REGS,
        .pc = UPROF_ARM_PC, .sp = UPROF_ARM_SP, .fp = UPROF_ARM_FP, .lr = UPROF_ARM_LR,
        .kernel_root = UPROF_ARM_TTBR1, .user_root = UPROF_ARM_TTBR0, .mode_mask = 0x1f, .user_mode = 0,
        .reg_names = { "X00", "X01", "X02", "X03", "X04", "X05", "X06", "X07",
                       "X08", "X09", "X10", "X11", "X12", "X13", "X14", "X15",
                       "X16", "X17", "X18", "X19", "X20", "X21", "X22", "X23",
                       "X24", "X25", "X26", "X27", "X28", "X29", "X30", "SP", "PC" },
    },
};
/* clang-format on */

const UprofArch *
uprof_arch_find(const char *name)
{
    for (size_t i = 0; i < G_N_ELEMENTS(archs); i++)
        if (strcmp(archs[i].name, name) == 0)
            return &archs[i];
    return NULL;
}

const UprofArch *
uprof_arch_at(size_t i)
{
    return i < G_N_ELEMENTS(archs) ? &archs[i] : NULL;
}

const UprofArch *
uprof_arch_of_elf(uint16_t machine)
{
    for (size_t i = 0; i < G_N_ELEMENTS(archs); i++)
        if (archs[i].elf_machine == machine)
            return &archs[i];
    return NULL;
}

bool
uprof_arch_dwarf_reg(const UprofArch *arch, uint64_t dwarf, unsigned *reg)
{
    if (dwarf >= (arch->dwarf_regs ? arch->n_dwarf_regs : arch->n_regs))
        return false;
    *reg = arch->dwarf_regs ? arch->dwarf_regs[dwarf] : (unsigned)dwarf;
    return true;
}
