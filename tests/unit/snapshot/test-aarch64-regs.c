/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <glib.h>

#include "uprof/snapshot.h"

#define EL1H UINT64_C(0x3c5)
#define EL1T UINT64_C(0x3c4)
#define EL0 UINT64_C(0x0)
#define EL2H UINT64_C(0x3c9)
#define EL3H UINT64_C(0x3cd)
#define AARCH32 UINT64_C(0x10)
#define HIGH UINT64_C(0xffff800008012340)

/* clang-format off */
static const struct {
    const char *name;
    uint64_t pstate, pc, sp, fp, lr;
    uint8_t privilege;
    bool smm, halted;
} cases[] = {
    { "kernel",        EL1H,    HIGH,   HIGH + 16, HIGH + 32, HIGH, 0, false, false },
    { "kernel-sp-el0", EL1T,    HIGH,   HIGH + 16, HIGH + 32, HIGH, 0, false, false },
    { "user",          EL0,     0x4000, 0x8000,    0x8010,    0x44, 3, false, false },
    { "hypervisor",    EL2H,    0x4000, 0x8000,    0x8010,    0x44, 0, true,  false },
    { "firmware",      EL3H,    0x4000, 0x8000,    0x8010,    0x44, 0, true,  false },
    { "32-bit",        AARCH32, 0x4000, 0x8000,    0,         0,    3, true,  false },
    /* PSCI has not turned it on. */
    { "never-started", EL1H,    0x40200000, 0,     0,         0,    0, false, true  },
    { "user-of-zeros", EL0,     0,      0,         0,         0,    3, false, false },
};

/* Masks as measured on Debian's kernels */
static const struct {
    const char *name;
    const char *arch;
    uint64_t tcr;
    uint64_t signed_pc, plain_pc;
} signatures[] = {
    { "kernel-48", "aarch64", UINT64_C(16) << 16, UINT64_C(0x4180800008012340), HIGH },
    { "kernel-48-upper", "aarch64", UINT64_C(16) << 16, UINT64_C(0x419f800008012340), HIGH },
    { "kernel-52", "aarch64", UINT64_C(12) << 16, UINT64_C(0x4191800008012340), UINT64_C(0xfff1800008012340) },
    { "user-48",   "aarch64", 16, UINT64_C(0x0068aaaae0401c7c), UINT64_C(0x0000aaaae0401c7c) },
    { "user-39",   "aarch64", 25, UINT64_C(0x0068498040201c7c), UINT64_C(0x40201c7c) },
    { "unknown",   "aarch64", 0,  UINT64_C(0x0068498040201c7c), UINT64_C(0x498040201c7c) },
    { "not-signed", "aarch64", 25 | 25 << 16, 0x40201c7c, 0x40201c7c },
    { "x86",       "x86_64",  25, UINT64_C(0x0068498040201c7c), UINT64_C(0x0068498040201c7c) },
};
/* clang-format on */

static void
test_case(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    UprofRegs regs = { .flags = cases[i].pstate };

    regs.reg[UPROF_ARM_PC] = cases[i].pc;
    regs.reg[UPROF_ARM_SP] = cases[i].sp;
    regs.reg[UPROF_ARM_FP] = cases[i].fp;
    regs.reg[UPROF_ARM_LR] = cases[i].lr;
    uprof_aarch64_finish_regs(&regs);
    g_assert_cmphex(regs.pc, ==, cases[i].pc);
    g_assert_cmphex(regs.sp, ==, cases[i].sp);
    g_assert_cmphex(regs.fp, ==, cases[i].fp);
    g_assert_cmpuint(regs.word_bytes, ==, 8);
    g_assert_cmpuint(regs.privilege, ==, cases[i].privilege);
    g_assert_true(regs.smm == cases[i].smm);
    g_assert_true(regs.halted == cases[i].halted);
}

static void
test_signature(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    UprofRegs regs = { .word_bytes = 8 };

    regs.sys[UPROF_ARM_TCR] = signatures[i].tcr;
    g_assert_cmphex(uprof_regs_plain_address(uprof_arch_find(signatures[i].arch), &regs,
                                             signatures[i].signed_pc),
                    ==, signatures[i].plain_pc);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/aarch64-regs/case/%s", cases[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_case);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(signatures); i++) {
        g_autofree char *path = g_strdup_printf("/aarch64-regs/signature/%s", signatures[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_signature);
    }
    return g_test_run();
}
