/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/arch.h"

#include <string.h>

enum { ELF_MACHINE_386 = 3, ELF_MACHINE_X86_64 = 62 };

/* clang-format off */
#define X86_NUMBERS \
    .n_regs = UPROF_X86_N_REGS, .pc = UPROF_X86_RIP, .sp = UPROF_X86_RSP, .fp = UPROF_X86_RBP

static const UprofArch archs[] = {
    {
        .name = "x86_64", .word_bytes = 8, .elf_machine = ELF_MACHINE_X86_64, X86_NUMBERS,
        .reg_names = { "RAX", "RDX", "RCX", "RBX", "RSI", "RDI", "RBP", "RSP",
                       "R8", "R9", "R10", "R11", "R12", "R13", "R14", "R15", "RIP" },
    },
    {
        /* numbered as x86_64, not by its own psABI: one set of numbers per family */
        .name = "i686", .word_bytes = 4, .elf_machine = ELF_MACHINE_386, X86_NUMBERS,
        .reg_names = { "EAX", "EDX", "ECX", "EBX", "ESI", "EDI", "EBP", "ESP",
                       [UPROF_X86_RIP] = "EIP" },
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
