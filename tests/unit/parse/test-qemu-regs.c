/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "../../../src/parse/qemu-regs-priv.h"
#include "uprof/error.h"
#include "uprof/qemu-regs.h"

/* Replies of QEMU 7.2, without most floating-point registers. */
/* clang-format off */
static const char long_mode[] =
    "RAX=ffffffff81234567 RBX=0000000000000000 RCX=00000000c0000080 RDX=0000000000000000\r\n"
    "RSI=0000000000000000 RDI=0000000000005000 RBP=0000000000006100 RSP=0000000000006000\r\n"
    "R8 =0000000000000000 R9 =0000000000000000 R10=0000000000000000 R11=0000000000000000\r\n"
    "R12=0000000000000000 R13=0000000000000000 R14=0000000000000000 R15=8899aabbccddeeff\r\n"
    "RIP=0000000000007cb9 RFL=00000086 [--S--P-] CPL=0 II=0 A20=1 SMM=0 HLT=0\r\n"
    "ES =0000 0000000000000000 0000ffff 00009300 DPL=0 DS   [-WA]\r\n"
    "CS =0008 0000000000000000 ffffffff 00af9a00 DPL=0 CS64 [-R-]\r\n"
    "SS =0010 0000000000000000 ffffffff 00cf9300 DPL=0 DS   [-WA]\r\n"
    "DS =0000 0000000000000000 0000ffff 00009300 DPL=0 DS   [-WA]\r\n"
    "FS =0000 0000000000000000 0000ffff 00009300 DPL=0 DS   [-WA]\r\n"
    "GS =0000 0000000000000000 0000ffff 00009300 DPL=0 DS   [-WA]\r\n"
    "LDT=0000 0000000000000000 0000ffff 00008200 DPL=0 LDT\r\n"
    "TR =0040 fffffe0000003000 0000ffff 00008b00 DPL=0 TSS64-busy\r\n"
    "GDT=     0000000000007c78 0000001f\r\n"
    "IDT=     0000000000000000 000003ff\r\n"
    "CR0=80000011 CR2=0000000000000000 CR3=0000000000001000 CR4=00000020\r\n"
    "DR0=0000000000000000 DR1=0000000000000000 DR2=0000000000000000 DR3=0000000000000000 \r\n"
    "DR6=00000000ffff0ff0 DR7=0000000000000400\r\n"
    "EFER=0000000000000500\r\n"
    "FCW=037f FSW=0000 [ST=0] FTW=00 MXCSR=00001f80\r\n"
    "FPR0=0000000000000000 0000 FPR1=0000000000000000 0000\r\n";

static const char compat_mode[] =
    "EAX=80000010 EBX=00000000 ECX=c0000080 EDX=00000000\r\n"
    "ESI=00000000 EDI=00005000 EBP=00006100 ESP=00006000\r\n"
    "EIP=00007ca8 EFL=00000086 [--S--P-] CPL=0 II=0 A20=1 SMM=0 HLT=0\r\n"
    "ES =0000 00000000 0000ffff 00009300 DPL=0 DS   [-WA]\r\n"
    "CS =0018 00000000 ffffffff 00c09b00 DPL=0 CS32 [-RA]\r\n"
    "SS =0010 00000000 ffffffff 00c09300 DPL=0 DS   [-WA]\r\n"
    "DS =0000 00000000 0000ffff 00009300 DPL=0 DS   [-WA]\r\n"
    "FS =0000 00000000 0000ffff 00009300 DPL=0 DS   [-WA]\r\n"
    "GS =0000 00000000 0000ffff 00009300 DPL=0 DS   [-WA]\r\n"
    "LDT=0000 00000000 0000ffff 00008200 DPL=0 LDT\r\n"
    "TR =0000 00000000 0000ffff 00008b00 DPL=0 TSS64-busy\r\n"
    "GDT=     0000000000007c78 0000001f\r\n"
    "IDT=     0000000000000000 000003ff\r\n"
    "CR0=80000011 CR2=0000000000000000 CR3=0000000000001000 CR4=00000020\r\n"
    "DR0=0000000000000000 DR1=0000000000000000 DR2=0000000000000000 DR3=0000000000000000 \r\n"
    "DR6=00000000ffff0ff0 DR7=0000000000000400\r\n"
    "EFER=0000000000000500\r\n"
    "FCW=037f FSW=0000 [ST=0] FTW=00 MXCSR=00001f80\r\n"
    "FPR0=0000000000000000 0000 FPR1=0000000000000000 0000\r\n";

static const char protected_mode[] =
    "EAX=00000000 EBX=02ade438 ECX=00000000 EDX=0001dc54\r\n"
    "ESI=0001c409 EDI=00000000 EBP=02ade438 ESP=000a1f44\r\n"
    "EIP=00010424 EFL=00000046 [---Z-P-] CPL=0 II=0 A20=1 SMM=0 HLT=0\r\n"
    "ES =0010 03f3d000 ffffffff 00cf9300 DPL=0 DS   [-WA]\r\n"
    "CS =0008 03f3d000 ffffffff 00cf9f00 DPL=0 CS32 [CRA]\r\n"
    "SS =0010 03f3d000 ffffffff 00cf9300 DPL=0 DS   [-WA]\r\n"
    "DS =0010 03f3d000 ffffffff 00cf9300 DPL=0 DS   [-WA]\r\n"
    "FS =0010 03f3d000 ffffffff 00cf9300 DPL=0 DS   [-WA]\r\n"
    "GS =0010 03f3d000 ffffffff 00cf9300 DPL=0 DS   [-WA]\r\n"
    "LDT=0000 00000000 0000ffff 00008200 DPL=0 LDT\r\n"
    "TR =0000 00000000 0000ffff 00008b00 DPL=0 TSS32-busy\r\n"
    "GDT=     0009cd30 00000047\r\n"
    "IDT=     03f5cfb0 000007ff\r\n"
    "CR0=00000011 CR2=00000000 CR3=00000000 CR4=00000000\r\n"
    "DR0=0000000000000000 DR1=0000000000000000 DR2=0000000000000000 DR3=0000000000000000 \r\n"
    "DR6=00000000ffff0ff0 DR7=0000000000000400\r\n"
    "EFER=0000000000000000\r\n"
    "FCW=037f FSW=0000 [ST=0] FTW=00 MXCSR=00001f80\r\n"
    "FPR0=0000000000000000 0000 FPR1=0000000000000000 0000\r\n";

static const char real_mode[] =
    "EAX=00000000 EBX=00000000 ECX=0000b79d EDX=00000000\r\n"
    "ESI=0000b79d EDI=00000000 EBP=0000b79d ESP=00006f94\r\n"
    "EIP=0000b7b9 EFL=00000246 [---Z-P-] CPL=0 II=0 A20=1 SMM=0 HLT=1\r\n"
    "ES =d980 000d9800 0000ffff 00009300\r\n"
    "CS =f000 000f0000 0000ffff 00009b00\r\n"
    "SS =0000 00000000 0000ffff 00009300\r\n"
    "DS =0000 00000000 0000ffff 00009300\r\n"
    "FS =0000 00000000 0000ffff 00009300\r\n"
    "GS =0000 00000000 0000ffff 00009300\r\n"
    "LDT=0000 00000000 0000ffff 00008200\r\n"
    "TR =0000 00000000 0000ffff 00008b00\r\n"
    "GDT=     00000000 00000000\r\n"
    "IDT=     00000000 000003ff\r\n"
    "CR0=00000010 CR2=00000000 CR3=00000000 CR4=00000000\r\n"
    "DR0=00000000 DR1=00000000 DR2=00000000 DR3=00000000 \r\n"
    "DR6=ffff0ff0 DR7=00000400\r\n"
    "EFER=0000000000000000\r\n"
    "FCW=037f FSW=0000 [ST=0] FTW=00 MXCSR=00001f80\r\n"
    "FPR0=0000000000000000 0000 FPR1=0000000000000000 0000\r\n";

static const char reset_state[] =
    "EAX=00000000 EBX=00000000 ECX=00000000 EDX=00060fb1\r\n"
    "ESI=00000000 EDI=00000000 EBP=00000000 ESP=00000000\r\n"
    "EIP=0000fff0 EFL=00000002 [-------] CPL=0 II=0 A20=1 SMM=0 HLT=0\r\n"
    "ES =0000 00000000 0000ffff 00009300\r\n"
    "CS =f000 ffff0000 0000ffff 00009b00\r\n"
    "SS =0000 00000000 0000ffff 00009300\r\n"
    "DS =0000 00000000 0000ffff 00009300\r\n"
    "FS =0000 00000000 0000ffff 00009300\r\n"
    "GS =0000 00000000 0000ffff 00009300\r\n"
    "LDT=0000 00000000 0000ffff 00008200\r\n"
    "TR =0000 00000000 0000ffff 00008b00\r\n"
    "GDT=     00000000 0000ffff\r\n"
    "IDT=     00000000 0000ffff\r\n"
    "CR0=60000010 CR2=00000000 CR3=00000000 CR4=00000000\r\n"
    "DR0=0000000000000000 DR1=0000000000000000 DR2=0000000000000000 DR3=0000000000000000 \r\n"
    "DR6=00000000ffff0ff0 DR7=0000000000000400\r\n"
    "EFER=0000000000000000\r\n"
    "FCW=037f FSW=0000 [ST=0] FTW=00 MXCSR=00001f80\r\n"
    "FPR0=0000000000000000 0000 FPR1=0000000000000000 0000\r\n";
/* clang-format on */

/* QEMU 7.2 of a guest with `-cpu max` */
/* clang-format off */
static const char arm_64[] =
    " PC=0000000040201b58 X00=fa7333c4343afb8a X01=000000000001f081\r\n"
    "X02=0000000009000018 X03=0000000000000000 X04=0000000009000000\r\n"
    "X05=0000000000000073 X06=0000000040001b28 X07=0000000001000000\r\n"
    "X08=0000000009000000 X09=0000000000000000 X10=0000000003000000\r\n"
    "X11=0000000000001ba8 X12=0000000040203000 X13=0000000000000000\r\n"
    "X14=0000000000000000 X15=0000000000000000 X16=0000000000000000\r\n"
    "X17=0000000000000000 X18=0000000000000000 X19=0000000040209000\r\n"
    "X20=0000000040204000 X21=0000000000000000 X22=0000000000000000\r\n"
    "X23=0000000000000000 X24=0000000000000000 X25=0000000000000000\r\n"
    "X26=0000000000000000 X27=0000000000000000 X28=0000000000000000\r\n"
    "X29=ffffffffc0009fa0 X30=0068498040201c7c  SP=ffffffffc0009f80\r\n"
    "PSTATE=000003c5 ---- EL1h  SVCR=00000000 --  BTYPE=0    FPU disabled\r\n";

/* The same of a processor that was never turned on, with `-cpu cortex-a57` */
static const char arm_off[] =
    " PC=0000000040200000 X00=0000000000000000 X01=0000000000000000\r\n"
    "X02=0000000000000000 X03=0000000000000000 X04=0000000000000000\r\n"
    "X05=0000000000000000 X06=0000000000000000 X07=0000000000000000\r\n"
    "X08=0000000000000000 X09=0000000000000000 X10=0000000000000000\r\n"
    "X11=0000000000000000 X12=0000000000000000 X13=0000000000000000\r\n"
    "X14=0000000000000000 X15=0000000000000000 X16=0000000000000000\r\n"
    "X17=0000000000000000 X18=0000000000000000 X19=0000000000000000\r\n"
    "X20=0000000000000000 X21=0000000000000000 X22=0000000000000000\r\n"
    "X23=0000000000000000 X24=0000000000000000 X25=0000000000000000\r\n"
    "X26=0000000000000000 X27=0000000000000000 X28=0000000000000000\r\n"
    "X29=0000000000000000 X30=0000000000000000  SP=0000000000000000\r\n"
    "PSTATE=400003c5 -Z-- EL1h    FPU disabled\r\n";

/* A process of 32-bit code (QEMU, target/arm/cpu.c) */
static const char arm_32[] =
    "R00=00000000 R01=00000001 R02=00000002 R03=00000003\r\n"
    "R04=00000000 R05=00000000 R06=00000000 R07=00000000\r\n"
    "R08=00000000 R09=00000000 R10=00000000 R11=00000000\r\n"
    "R12=00000000 R13=fffef7a0 R14=00010400 R15=00010428\r\n"
    "PSR=60000010 -ZC- A S usr32\r\n";
/* clang-format on */

static UprofSlice
slice_of(const char *text)
{
    return (UprofSlice){ text, strlen(text) };
}

/* clang-format off */
static const struct {
    const char *name;
    const char *text;
    const char *arch;
    UprofRegs regs; /* but for most of reg[] */
    uint64_t rax;
} modes[] = {
    { "long", long_mode, "x86_64", .rax = UINT64_C(0xffffffff81234567), .regs = {
        .pc = 0x7cb9, .sp = 0x6000, .fp = 0x6100, .flags = 0x86, .word_bytes = 8,
        .sys = { 0x80000011, 0x1000, 0x20, 0x500, 0, 0x7c78, UINT64_C(0xfffffe0000003000) } } },
    { "compat", compat_mode, "x86_64", .rax = 0x80000010, .regs = {
        .pc = 0x7ca8, .sp = 0x6000, .fp = 0x6100, .flags = 0x86, .word_bytes = 4,
        .sys = { 0x80000011, 0x1000, 0x20, 0x500, 0, 0x7c78, 0 } } },
    { "protected", protected_mode, "x86_64", .rax = 0, .regs = {
        .pc = 0x03f3d000 + 0x00010424, .sp = 0x03f3d000 + 0x000a1f44,
        .fp = 0x03f3d000 + 0x02ade438, .flags = 0x46, .word_bytes = 4,
        .sys = { 0x11, 0, 0, 0, 0x03f5cfb0, 0x0009cd30, 0 } } },
    { "real", real_mode, "i686", .rax = 0, .regs = {
        .pc = 0xf0000 + 0xb7b9, .sp = 0x6f94, .fp = 0xb79d, .flags = 0x246, .word_bytes = 2,
        .halted = true, .sys = { 0x10, 0, 0, 0, 0 } } },
    { "reset", reset_state, "i686", .rax = 0, .regs = {
        .pc = 0xfffffff0, .sp = 0, .fp = 0, .flags = 0x2, .word_bytes = 2,
        .halted = true, .sys = { 0x60000010, 0, 0, 0, 0 } } },
    { "aarch64", arm_64, "aarch64", .rax = UINT64_C(0xfa7333c4343afb8a), .regs = {
        .pc = 0x40201b58, .sp = UINT64_C(0xffffffffc0009f80), .fp = UINT64_C(0xffffffffc0009fa0),
        .flags = 0x3c5, .word_bytes = 8 } },
    { "aarch64-off", arm_off, "aarch64", .rax = 0, .regs = {
        .pc = 0x40200000, .flags = 0x400003c5, .word_bytes = 8, .halted = true } },
    { "aarch64-32-bit", arm_32, "aarch64", .rax = 0, .regs = {
        .pc = 0x10428, .sp = 0xfffef7a0, .flags = 0x60000010, .word_bytes = 8, .privilege = 3,
        .smm = true } },
};
/* clang-format on */

static void
test_mode(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    const UprofRegs *expected = &modes[i].regs;
    UprofRegs regs;
    g_autoptr(GError) error = NULL;

    const bool ok = uprof_qemu_regs_parse(slice_of(modes[i].text), uprof_arch_find(modes[i].arch),
                                          &regs, &error);

    g_assert_no_error(error);
    g_assert_true(ok);
    g_assert_cmphex(regs.pc, ==, expected->pc);
    g_assert_cmphex(regs.sp, ==, expected->sp);
    g_assert_cmphex(regs.fp, ==, expected->fp);
    g_assert_cmphex(regs.flags, ==, expected->flags);
    g_assert_cmpmem(regs.sys, sizeof(regs.sys), expected->sys, sizeof(expected->sys));
    g_assert_cmpuint(regs.word_bytes, ==, expected->word_bytes);
    g_assert_cmpuint(regs.privilege, ==, expected->privilege);
    g_assert_true(regs.halted == expected->halted);
    g_assert_true(regs.smm == expected->smm);
    g_assert_cmphex(regs.reg[UPROF_X86_RAX], ==, modes[i].rax);
}

/* The same text with one change for each row. */
/* clang-format off */
static const struct {
    const char *name;
    const char *text;
    const char *from, *to;
    const char *error; /* NULL: must parse */
} cases[] = {
    { "unchanged",         long_mode,   "", "", NULL },
    { "user",              long_mode,   "CPL=0", "CPL=3", NULL },
    { "unknown-name",      long_mode,   "CR4=", "APX=zz R16=1 CR4=", NULL },
    { "unknown-line",      long_mode,   "GDT=", "what a line = this\r\n=\r\nGDT=", NULL },
    { "plain-newlines",    long_mode,   "\r\n", "\n", NULL },
    { "twice",             long_mode,   "CR4=00000020", "CR4=00000020 CR4=zz", NULL },
    { "not-a-whole-word",  long_mode,   "RAX=", "XRAX=", "info registers line *: no 'RAX'*" },
    { "empty",             long_mode,   NULL, "", "info registers line 0: no 'EIP' up to here" },
    { "no-pc",             long_mode,   "RIP", "RIQ", "*: no 'EIP' up to here" },
    { "no-cr3",            long_mode,   "CR3", "CR9", "*: no 'CR3' up to here" },
    { "no-r8",             long_mode,   "R8 =", "R7 =", "*: no 'R8' up to here" },
    { "no-tr",             long_mode,   "TR =", "TS =", "*: no 'TR' up to here" },
    { "no-gdt",            long_mode,   "GDT=", "GDU=", "*: no 'GDT' up to here" },
    { "task-cut",          long_mode,   "TR =0040 fffffe0000003000 0000ffff 00008b00 DPL=0 TSS64-busy", "TR =0040", "*: bad value of 'TR'" },
    { "no-efer",           long_mode,   "EFER=", "EFES=", "*: no 'EFER' up to here" },
    { "no-eax",            compat_mode, "EAX", "EAY", "*: no 'EAX' up to here" },
    { "no-value",          long_mode,   "R15=8899aabbccddeeff", "R15=",
      "info registers line 4: bad value of 'R15'" },
    { "not-hexadecimal",   long_mode,   "RFL=0", "RFL=x", "*line 5: bad value of 'RFL'" },
    { "too-long",          long_mode,   "RAX=f", "RAX=1f", "*line 1: bad value of 'RAX'" },
    { "64-bits-in-32",     compat_mode, "EAX=8", "EAX=18", "*: bad value of 'EAX'" },
    { "privilege-4",       long_mode,   "CPL=0", "CPL=4", "*: bad value of 'CPL'" },
    { "halted-2",          long_mode,   "HLT=0", "HLT=2", "*: bad value of 'HLT'" },
    { "segment-cut",       long_mode,   " 00af9a00 DPL=0 CS64 [-R-]", "", "*: bad value of 'CS'" },
    { "segment-flags",     long_mode,   "00af9a00", "100af9a00", "*: bad value of 'CS'" },
    { "short-form-of-64",  compat_mode, "00c09b00", "00a09b00",
      "*: 'EIP' of a CPU that runs 64-bit code" },
};
/* clang-format on */

/* clang-format off */
static const struct {
    const char *name;
    const char *from, *to;
    const char *error; /* NULL: must parse */
} arm_cases[] = {
    { "hypervisor",  "PSTATE=000003c5", "PSTATE=000003c9", NULL },
    { "more-flags",  "FPU disabled", "FPU disabled GCS=zz", NULL },
    { "no-pc",       " PC=", " QC=", "*: no 'R13' up to here" },
    { "no-sp",       " SP=", " SQ=", "*: no 'SP' up to here" },
    { "no-x17",      "X17=", "Y17=", "*: no 'X17' up to here" },
    { "no-pstate",   "PSTATE", "PSTATS", "*: no 'PSTATE' up to here" },
    { "long-pstate", "PSTATE=0", "PSTATE=100000000000000000", "*: bad value of 'PSTATE'" },
    { "long-x00",    "X00=f", "X00=1f", "*line 1: bad value of 'X00'" },
    { "no-value",    "X30=0068498040201c7c  SP=ffffffffc0009f80", "X30=", "*line 11: bad value of 'X30'" },
};
/* clang-format on */

static char *
replace(const char *text, const char *from, const char *to)
{
    if (!from)
        return g_strdup(to);
    if (!*from)
        return g_strdup(text);

    g_auto(GStrv) parts = g_strsplit(text, from, -1);
    g_assert_cmpuint(g_strv_length(parts), >=, 2);
    return g_strjoinv(to, parts);
}

static void
test_case(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_autofree char *text = replace(cases[i].text, cases[i].from, cases[i].to);
    const UprofRegs untouched = { .pc = 42 };
    UprofRegs regs = untouched;
    g_autoptr(GError) error = NULL;

    const bool ok = uprof_qemu_regs_parse(slice_of(text), uprof_arch_find("x86_64"), &regs, &error);

    if (!cases[i].error) {
        g_assert_no_error(error);
        g_assert_true(ok);
        g_assert_cmphex(regs.pc, ==, 0x7cb9);
        return;
    }
    g_assert_false(ok);
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
    g_assert_true(g_pattern_match_simple(cases[i].error, error->message));
    g_assert_cmpmem(&regs, sizeof(regs), &untouched, sizeof(untouched));
}

static void
test_arm_case(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_autofree char *text = replace(arm_64, arm_cases[i].from, arm_cases[i].to);
    UprofRegs regs = { .pc = 42 };
    g_autoptr(GError) error = NULL;

    const bool ok =
        uprof_qemu_regs_parse(slice_of(text), uprof_arch_find("aarch64"), &regs, &error);

    if (!arm_cases[i].error) {
        g_assert_no_error(error);
        g_assert_true(ok);
        g_assert_cmphex(regs.pc, ==, 0x40201b58);
        return;
    }
    g_assert_false(ok);
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
    g_assert_true(g_pattern_match_simple(arm_cases[i].error, error->message));
    g_assert_cmpuint(regs.pc, ==, 42);
}

static void
test_stack_of_16_bits(void)
{
    g_autofree char *text =
        replace(protected_mode, "03f3d000 ffffffff 00cf9300", "00020000 ffffffff 00009300");
    UprofRegs regs;

    g_assert_true(uprof_qemu_regs_parse(slice_of(text), uprof_arch_find("x86_64"), &regs, NULL));
    g_assert_cmphex(regs.sp, ==, 0x20000 + 0x1f44);
    g_assert_cmphex(regs.fp, ==, 0x20000 + 0xe438);
    g_assert_cmphex(regs.reg[UPROF_X86_RSP], ==, 0xa1f44);
}

static void
test_every_register(void)
{
    static const char *const names[] = { "RAX", "RDX", "RCX", "RBX", "RSI", "RDI",
                                         "RBP", "RSP", "R8 ", "R9 ", "R10", "R11",
                                         "R12", "R13", "R14", "R15", "RIP" };
    g_autoptr(GString) text = g_string_new(NULL);
    UprofRegs regs;

    for (unsigned i = 0; i < G_N_ELEMENTS(names); i++)
        g_string_append_printf(text, "%s=%016x ", names[i], 0x100 + i);
    g_string_append(text, strstr(long_mode, "RFL="));
    g_assert_true(
        uprof_qemu_regs_parse(slice_of(text->str), uprof_arch_find("x86_64"), &regs, NULL));
    for (unsigned i = 0; i < UPROF_X86_N_REGS; i++)
        g_assert_cmphex(regs.reg[i], ==, 0x100 + i);
}

static void
test_unknown_architecture(void)
{
    const UprofArch arch = { .name = "s390x" };
    UprofRegs regs = { .pc = 42 };
    g_autoptr(GError) error = NULL;

    g_assert_false(uprof_qemu_regs_parse(slice_of(long_mode), &arch, &regs, &error));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_UNSUPPORTED);
    g_assert_cmpstr(error->message, ==, "QEMU's registers of architecture 's390x' are not known");
    g_assert_cmpuint(regs.pc, ==, 42);
}

static void
test_too_long(void)
{
    const size_t len = UPROF_QEMU_REGS_BYTES_MAX + 1;
    g_autofree char *text = g_strnfill(len, ' ');
    UprofSlice block = { NULL, 0 };
    UprofRegs regs;
    g_autoptr(GError) error = NULL;

    g_assert_false(
        uprof_qemu_regs_parse((UprofSlice){ text, len }, uprof_arch_find("x86_64"), &regs, &error));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
    g_assert_cmpstr(error->message, ==, "info registers line 0: 4194305 bytes are too many");
    g_assert_false(uprof_qemu_regs_find((UprofSlice){ text, len }, 0, &block));
    g_assert_true(uprof_qemu_regs_find((UprofSlice){ text, len - 1 }, 0, &block));
}

/* clang-format off */
static const struct {
    const char *name;
    const char *text;
    unsigned cpu;
    const char *block; /* NULL: none */
} blocks[] = {
    { "first",         "\r\nCPU#0\r\na\r\n\r\nCPU#1\r\nb\r\n", 0,  "a\r\n\r\n" },
    { "last",          "\r\nCPU#0\r\na\r\n\r\nCPU#1\r\nb\r\n", 1,  "b\r\n" },
    { "none-such",     "\r\nCPU#0\r\na\r\n\r\nCPU#1\r\nb\r\n", 2,  NULL },
    { "whole-number",  "CPU#12\na\n",                            1,  NULL },
    { "hole",          "CPU#0\na\nCPU#7\nb\n",                   7,  "b\n" },
    { "no-heading",    "RAX=1\n",                                0,  "RAX=1\n" },
    { "no-heading-1",  "RAX=1\n",                                1,  NULL },
    { "nothing",       "",                                       0,  NULL },
    { "empty-block",   "CPU#0\n",                                0,  "" },
    { "huge-number",   "CPU#4294967296\na\n",                    0,  "CPU#4294967296\na\n" },
    { "twice",         "CPU#0\na\nCPU#0\nb\n",                   0,  "a\n" },
};
/* clang-format on */

static void
test_find(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    UprofSlice block = slice_of("untouched");

    const bool ok = uprof_qemu_regs_find(slice_of(blocks[i].text), blocks[i].cpu, &block);

    const char *expected = ok ? blocks[i].block : "untouched";
    g_assert_true(ok == (blocks[i].block != NULL));
    g_assert_cmpmem(block.data, block.len, expected, strlen(expected));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(modes); i++) {
        g_autofree char *path = g_strdup_printf("/qemu-regs/mode/%s", modes[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_mode);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/qemu-regs/case/%s", cases[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_case);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(arm_cases); i++) {
        g_autofree char *path = g_strdup_printf("/qemu-regs/aarch64/%s", arm_cases[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_arm_case);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(blocks); i++) {
        g_autofree char *path = g_strdup_printf("/qemu-regs/find/%s", blocks[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_find);
    }
    g_test_add_func("/qemu-regs/stack-of-16-bits", test_stack_of_16_bits);
    g_test_add_func("/qemu-regs/every-register", test_every_register);
    g_test_add_func("/qemu-regs/unknown-architecture", test_unknown_architecture);
    g_test_add_func("/qemu-regs/too-long", test_too_long);
    return g_test_run();
}
