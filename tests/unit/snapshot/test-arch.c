/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/arch.h"

static void
test_rows(void)
{
    size_t n = 0;

    for (const UprofArch *arch; (arch = uprof_arch_at(n)); n++) {
        g_assert_true(uprof_arch_find(arch->name) == arch);
        g_assert_true(arch->word_bytes == 4 || arch->word_bytes == 8);
        g_assert_cmpuint(arch->n_regs, <=, UPROF_REGS_MAX);
        g_assert_cmpuint(arch->pc, <, arch->n_regs);
        g_assert_cmpuint(arch->sp, <, arch->n_regs);
        g_assert_cmpuint(arch->fp, <, arch->n_regs);
        g_assert_nonnull(arch->reg_names[arch->pc]);
        g_assert_nonnull(arch->reg_names[arch->sp]);
        g_assert_nonnull(arch->reg_names[arch->fp]);
        for (unsigned i = arch->n_regs; i < UPROF_REGS_MAX; i++)
            g_assert_null(arch->reg_names[i]);
    }
    g_assert_cmpuint(n, >=, 2);
    g_assert_null(uprof_arch_at(SIZE_MAX));
}

/* clang-format off */
static const struct {
    const char *name;
    unsigned number;
    const char *reg_name; /* NULL if unnamed */
} cases[] = {
    { "x86_64", UPROF_X86_RAX,     "RAX" },
    { "x86_64", UPROF_X86_RDX,     "RDX" },
    { "x86_64", UPROF_X86_RBX,     "RBX" },
    { "x86_64", UPROF_X86_RBP,     "RBP" },
    { "x86_64", UPROF_X86_RSP,     "RSP" },
    { "x86_64", UPROF_X86_R8,      "R8"  },
    { "x86_64", UPROF_X86_R15,     "R15" },
    { "x86_64", UPROF_X86_RIP,     "RIP" },
    { "i686",   UPROF_X86_RBP,     "EBP" },
    { "i686",   UPROF_X86_RIP,     "EIP" },
    { "i686",   UPROF_X86_R8,      NULL  },
    { "aarch64", UPROF_ARM_X0,     "X00" },
    { "aarch64", UPROF_ARM_FP,     "X29" },
    { "aarch64", UPROF_ARM_LR,     "X30" },
    { "aarch64", UPROF_ARM_SP,     "SP"  },
    { "aarch64", UPROF_ARM_PC,     "PC"  },
};
/* clang-format on */

static void
test_names(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
        g_assert_cmpstr(uprof_arch_find(cases[i].name)->reg_names[cases[i].number], ==,
                        cases[i].reg_name);
}

/* clang-format off */
static const struct {
    const char *name;
    uint64_t dwarf;
    int reg; /* -1 if not a general register */
} dwarf_regs[] = {
    { "x86_64", 0,  UPROF_X86_RAX },
    { "x86_64", 1,  UPROF_X86_RDX },
    { "x86_64", 7,  UPROF_X86_RSP },
    { "x86_64", 16, UPROF_X86_RIP },
    { "x86_64", 17, -1 },
    { "i686",   0,  UPROF_X86_RAX },
    { "i686",   1,  UPROF_X86_RCX },
    { "i686",   2,  UPROF_X86_RDX },
    { "i686",   4,  UPROF_X86_RSP },
    { "i686",   5,  UPROF_X86_RBP },
    { "i686",   8,  UPROF_X86_RIP },
    { "i686",   9,  -1 },
    { "i686",   UINT64_C(1) << 32, -1 },
    { "aarch64", 0,  UPROF_ARM_X0 },
    { "aarch64", 29, UPROF_ARM_FP },
    { "aarch64", 31, UPROF_ARM_SP },
    { "aarch64", 32, UPROF_ARM_PC },
    { "aarch64", 34, -1 }, /* RA_SIGN_STATE */
};
/* clang-format on */

static void
test_dwarf_regs(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(dwarf_regs); i++) {
        unsigned reg = UPROF_REGS_MAX;

        const bool found =
            uprof_arch_dwarf_reg(uprof_arch_find(dwarf_regs[i].name), dwarf_regs[i].dwarf, &reg);
        g_assert_true(found == (dwarf_regs[i].reg >= 0));
        g_assert_cmpuint(reg, ==, found ? (unsigned)dwarf_regs[i].reg : UPROF_REGS_MAX);
    }
    for (size_t i = 0; uprof_arch_at(i); i++)
        g_assert_true(uprof_arch_of_elf(uprof_arch_at(i)->elf_machine) == uprof_arch_at(i));
    g_assert_null(uprof_arch_of_elf(0));
}

static void
test_not_found(void)
{
    g_assert_null(uprof_arch_find(""));
    g_assert_null(uprof_arch_find("x86"));
    g_assert_null(uprof_arch_find("x86_64 "));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    g_test_add_func("/arch/rows", test_rows);
    g_test_add_func("/arch/names", test_names);
    g_test_add_func("/arch/dwarf-regs", test_dwarf_regs);
    g_test_add_func("/arch/not-found", test_not_found);
    return g_test_run();
}
