/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <glib.h>

#include "uprof/snapshot.h"

#define PE UPROF_X86_CR0_PE
#define LMA UPROF_X86_EFER_LMA
#define HIGH UINT64_C(0xffffffff81234567)

/* clang-format off */
static const struct {
    const char *name;
    uint64_t cr0, efer;
    UprofX86Segments segments; /* cs_base, ss_base, cs_long, cs_big, ss_big */
    uint64_t rip, rsp, rbp;
    bool was_halted;
    uint64_t pc, sp, fp;
    uint8_t word_bytes;
    bool halted;
} cases[] = {
    /* 64-bit code has no segment bases; D of CS and B of SS are ignored. */
    { "64-bit",           PE, LMA, { 0, 0, true, false, true },
      HIGH, HIGH + 8, HIGH + 16, false, HIGH, HIGH + 8, HIGH + 16, 8, false },
    { "64-bit-bases",     PE, LMA, { 0x1000, 0x2000, true, true, false },
      HIGH, HIGH + 8, HIGH + 16, false, HIGH, HIGH + 8, HIGH + 16, 8, false },
    { "64-bit-halted",    PE, LMA, { 0, 0, true, false, true }, 1, 2, 3, true, 1, 2, 3, 8, true },
    /* L of CS counts only in long mode; long mode without L is compatibility mode. */
    { "compatible",       PE, LMA, { 0, 0, false, true, true },
      0x7ca8, 0x6000, 0x6100, false, 0x7ca8, 0x6000, 0x6100, 4, false },
    { "compatible-16",    PE, LMA, { 0, 0, false, false, false },
      0x7ca8, 0x16000, 0x16100, false, 0x7ca8, 0x6000, 0x6100, 2, false },
    { "l-without-lma",    PE, 0,   { 0, 0, true, true, true },
      0x7ca8, 0x6000, 0x6100, false, 0x7ca8, 0x6000, 0x6100, 4, false },
    { "32-bit-bases",     PE, 0,   { 0x03f3d000, 0x10000000, false, true, true },
      0x10424, 0xa1f44, 0xade438, false, 0x03f4d424, 0x100a1f44, 0x10ade438, 4, false },
    /* The upper 32 bits are left over from 64-bit code. */
    { "32-bit-left-over", PE, 0,   { 0, 0, false, true, true },
      HIGH, HIGH + 8, HIGH + 16, false, 0x81234567, 0x8123456f, 0x81234577, 4, false },
    { "32-bit-wraps",     PE, 0,   { 0xfffff000, 0xffffff00, false, true, true },
      0x2000, 0x200, 0x100, false, 0x1000, 0x100, 0, 4, false },
    /* A 16-bit stack with 32-bit code, and the reverse. */
    { "small-stack",      PE, 0,   { 0, 0x20000, false, true, false },
      0x10424, 0x7001f44, 0x700e438, false, 0x10424, 0x21f44, 0x2e438, 4, false },
    { "16-bit-big-stack", PE, 0,   { 0x1000, 0, false, false, true },
      0x424, 0x71f44, 0x7e438, false, 0x1424, 0x71f44, 0x7e438, 2, false },
    { "real-mode",        0, 0,    { 0xf0000, 0x20000, false, false, false },
      0xb7b9, 0x6f94, 0xb79d, false, 0xfb7b9, 0x26f94, 0x2b79d, 2, false },
    { "real-mode-halted", 0, 0,    { 0xf0000, 0, false, false, false },
      0xb7b9, 0x6f94, 0xb79d, true, 0xfb7b9, 0x6f94, 0xb79d, 2, true },
    /* A vCPU in its reset state has not run. A vCPU in any other state has. */
    { "reset",            0x60000010, 0, { 0xffff0000, 0, false, false, false },
      0xfff0, 0, 0, false, 0xfffffff0, 0, 0, 2, true },
    { "behind-reset",     0x60000010, 0, { 0xffff0000, 0, false, false, false },
      0xfff1, 0, 0, false, 0xfffffff1, 0, 0, 2, false },
    { "old-reset",        0x60000010, 0, { 0xf0000, 0, false, false, false },
      0xfff0, 0, 0, false, 0xffff0, 0, 0, 2, false },
    { "protected-reset",  0x60000010 | PE, 0, { 0xffff0000, 0, false, false, false },
      0xfff0, 0, 0, false, 0xfffffff0, 0, 0, 2, false },
};
/* clang-format on */

static void
test_case(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    UprofRegs regs = { .flags = 0x246, .privilege = 3, .halted = cases[i].was_halted, .smm = true };

    regs.reg[UPROF_X86_RIP] = cases[i].rip;
    regs.reg[UPROF_X86_RSP] = cases[i].rsp;
    regs.reg[UPROF_X86_RBP] = cases[i].rbp;
    regs.reg[UPROF_X86_RAX] = HIGH;
    regs.sys[UPROF_X86_CR0] = cases[i].cr0;
    regs.sys[UPROF_X86_EFER] = cases[i].efer;
    uprof_x86_finish_regs(&regs, &cases[i].segments);
    g_assert_cmphex(regs.pc, ==, cases[i].pc);
    g_assert_cmphex(regs.sp, ==, cases[i].sp);
    g_assert_cmphex(regs.fp, ==, cases[i].fp);
    g_assert_cmpuint(regs.word_bytes, ==, cases[i].word_bytes);
    g_assert_cmpint(regs.halted, ==, cases[i].halted);
    /* The general registers stay the same. */
    g_assert_cmphex(regs.reg[UPROF_X86_RIP], ==, cases[i].rip);
    g_assert_cmphex(regs.reg[UPROF_X86_RSP], ==, cases[i].rsp);
    g_assert_cmphex(regs.reg[UPROF_X86_RBP], ==, cases[i].rbp);
    g_assert_cmphex(regs.reg[UPROF_X86_RAX], ==, HIGH);
    g_assert_cmphex(regs.flags, ==, 0x246);
    g_assert_cmpuint(regs.privilege, ==, 3);
    g_assert_true(regs.smm);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/x86/%s", cases[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_case);
    }
    return g_test_run();
}
