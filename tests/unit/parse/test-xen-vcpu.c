/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "uprof/xen-vcpu.h"

/*
 * A second, independent table of offsets: Xen 4.17, xen/include/public,
 * arch-x86/xen.h with arch-x86/xen-x86_64.h and xen-x86_32.h, arch-x86/hvm/save.h.
 */
enum {
    WIDE_FLAGS = 512,
    WIDE_REGS = 520, /* struct cpu_user_regs: r15 first */
    WIDE_CONTROL = 4984,
    WIDE_EVENT_CALLBACK = 5112,
    NARROW_FLAGS = 512,
    NARROW_REGS = 516, /* ebx first */
    NARROW_CONTROL = 2716,
    HVM_CR0 = 656,
    HVM_CR4 = 680,
    HVM_SELECTORS = 736, /* cs, ds, es, fs, gs, ss, tr, ldtr: 4 bytes each */
    HVM_BASES = 808,     /* cs, ds, es, fs, gs, ss, tr, ldtr, idtr, gdtr: 8 bytes each */
    HVM_ATTRIBUTES = 888,
    HVM_EFER = 992,
};

#define PG_PE (UPROF_X86_CR0_PG | UPROF_X86_CR0_PE)
#define CODE_64 0xa9bu
#define CODE_32 0xc9bu
#define CODE_16 0x9bu
#define DATA_BIG 0xc93u
#define DATA_SMALL 0x93u

typedef struct {
    uint8_t wide[UPROF_XEN_CONTEXT_BYTES];
    uint8_t narrow[UPROF_XEN_NARROW_CONTEXT_BYTES];
    uint8_t cpu[UPROF_XEN_HVM_CPU_BYTES];
} Bytes;

static void
put(uint8_t *at, unsigned len, uint64_t value)
{
    for (unsigned i = 0; i < len; i++)
        at[i] = (uint8_t)(value >> (8 * i));
}

/* Each register has its own value: 0x..00 and the index of its 8 bytes */
static void
put_wide(uint8_t *context, uint16_t cs, uint64_t flags, uint64_t cr0, uint64_t cr1, uint64_t cr3,
         uint64_t cr4)
{
    put(context + WIDE_FLAGS, 8, flags);
    for (unsigned i = 0; i < 25; i++)
        put(context + WIDE_REGS + i * 8, 8, UINT64_C(0xffff000000000000) + i);
    put(context + WIDE_REGS + 17 * 8, 8, cs);
    put(context + WIDE_CONTROL, 8, cr0);
    put(context + WIDE_CONTROL + 8, 8, cr1);
    put(context + WIDE_CONTROL + 24, 8, cr3);
    put(context + WIDE_CONTROL + 32, 8, cr4);
}

static void
put_narrow(uint8_t *context, uint16_t cs, uint32_t flags, uint32_t cr3)
{
    put(context + NARROW_FLAGS, 4, flags);
    for (unsigned i = 0; i < 17; i++)
        put(context + NARROW_REGS + i * 4, 4, 0xc0000000u + i);
    put(context + NARROW_REGS + 9 * 4, 4, cs);
    put(context + NARROW_CONTROL, 4, 0x8005003b);
    put(context + NARROW_CONTROL + 12, 4, cr3);
    put(context + NARROW_CONTROL + 16, 4, 0x2660);
}

static void
put_cpu(uint8_t *cpu, uint16_t cs, uint32_t cs_attributes, uint64_t cs_base, uint32_t ss_attributes,
        uint64_t ss_base, uint64_t efer)
{
    put(cpu + HVM_SELECTORS, 4, cs);
    for (unsigned i = 0; i < 10; i++)
        put(cpu + HVM_BASES + i * 8, 8, 0x1000u * (i + 1));
    put(cpu + HVM_BASES, 8, cs_base);
    put(cpu + HVM_BASES + 5 * 8, 8, ss_base);
    put(cpu + HVM_ATTRIBUTES, 4, cs_attributes);
    put(cpu + HVM_ATTRIBUTES + 5 * 4, 4, ss_attributes);
    put(cpu + HVM_EFER, 8, efer);
}

#define SLICE(bytes) ((UprofSlice){ bytes, sizeof(bytes) })

static void
test_general_registers(void)
{
    /* index of each register in struct cpu_user_regs, by DWARF number */
    static const uint8_t places[] = { 10, 12, 11, 5, 13, 14, 4, 19, 9, 8, 7, 6, 3, 2, 1, 0, 16 };
    Bytes bytes = { { 0 } };
    UprofRegs regs;
    g_autoptr(GError) error = NULL;

    put_wide(bytes.wide, 0xe033, 4, PG_PE, 0, 0x5000, 0);
    g_assert_true(uprof_xen_pv_regs_parse(SLICE(bytes.wide), 8, &regs, &error));
    g_assert_no_error(error);
    for (unsigned i = 0; i < UPROF_X86_N_REGS; i++)
        g_assert_cmphex(regs.reg[i], ==, UINT64_C(0xffff000000000000) + places[i]);
    g_assert_cmphex(regs.flags, ==, UINT64_C(0xffff000000000012));
    g_assert_cmphex(regs.pc, ==, regs.reg[UPROF_X86_RIP]);
    g_assert_cmphex(regs.sp, ==, regs.reg[UPROF_X86_RSP]);
    g_assert_cmphex(regs.fp, ==, regs.reg[UPROF_X86_RBP]);
    g_assert_false(regs.halted || regs.smm);
}

static void
test_narrow_registers(void)
{
    static const uint8_t places[] = { 6, 2, 1, 0, 3, 4, 5, 11 };
    Bytes bytes = { { 0 } };
    UprofRegs regs;

    put_narrow(bytes.narrow, 0xe019, 4, 0x00001000);
    g_assert_true(uprof_xen_pv_regs_parse(SLICE(bytes.narrow), 4, &regs, NULL));
    for (unsigned i = 0; i < G_N_ELEMENTS(places); i++)
        g_assert_cmphex(regs.reg[i], ==, 0xc0000000u + places[i]);
    g_assert_cmphex(regs.pc, ==, 0xc0000008);
    g_assert_cmphex(regs.sp, ==, 0xc000000b);
    g_assert_cmphex(regs.flags, ==, 0xc000000a);
    g_assert_cmpuint(regs.word_bytes, ==, 4);
    g_assert_cmpuint(regs.sys[UPROF_X86_XEN_PV], ==, 32);
}

/* clang-format off */
static const struct {
    const char *name;
    uint16_t cs;
    uint64_t flags, user_root, root;
    uint8_t word_bytes, privilege;
    uint64_t cr3;
} pv_cases[] = {
    { "kernel",        0xe033, 0x04, 0x7000, 0x5000, 8, 0, 0x5000 },
    { "kernel-others", 0xe033, 0x24, 0x7000, 0x5000, 8, 0, 0x5000 },
    { "user",          0xe033, 0x20, 0x7000, 0x5000, 8, 3, 0x7000 },
    { "user-no-root",  0xe033, 0x00, 0,      0x5000, 8, 3, 0x5000 },
    { "user-32",       0xe023, 0x00, 0x7000, 0x5000, 4, 3, 0x7000 },
    { "user-flags",    0xe033, 0x00, UINT64_C(0xfff0000000007fff), 0, 8, 3, 0x7000 },
    { "all-ones",      0xffff, UINT64_MAX, UINT64_MAX, UINT64_MAX, 8, 0, UINT64_MAX },
};

static const struct {
    const char *name;
    uint32_t cr3;
    uint64_t root;
} narrow_roots[] = {
    { "low",    0x00005000, 0x5000 },
    { "high",   0x00005001, UINT64_C(0x100005000) },
    { "ones",   0xffffffff, UINT64_C(0xffffffff000) },
    { "zero",   0,          0 },
};

static const struct {
    const char *name;
    uint16_t cs, cpu_cs;
    uint32_t cs_attributes, ss_attributes;
    uint64_t cs_base, ss_base, cr0, efer;
    uint8_t word_bytes, privilege;
    uint64_t pc, sp;
} hvm_cases[] = {
    { "64",   0x10, 0x10, CODE_64, DATA_BIG, 0, 0, PG_PE, UPROF_X86_EFER_LMA, 8, 0,
      UINT64_C(0xffff000000000010), UINT64_C(0xffff000000000013) },
    { "64-user", 0x33, 0x33, CODE_64, DATA_BIG, 0, 0, PG_PE, UPROF_X86_EFER_LMA, 8, 3,
      UINT64_C(0xffff000000000010), UINT64_C(0xffff000000000013) },
    { "compatible", 0x23, 0x23, CODE_32, DATA_BIG, 0, 0, PG_PE, UPROF_X86_EFER_LMA, 4, 3, 0x10, 0x13 },
    { "32",   0x08, 0x08, CODE_32, DATA_BIG, 0, 0, UPROF_X86_CR0_PE, 0, 4, 0, 0x10, 0x13 },
    { "32-bases", 0x08, 0x08, CODE_32, DATA_BIG, 0x10000, 0xffffffff, UPROF_X86_CR0_PE, 0, 4, 0, 0x10010, 0x12 },
    { "real", 0xf003, 0xf003, CODE_16, DATA_SMALL, 0xf0000, 0x20000, 0, 0, 2, 0, 0xf0010, 0x20013 },
    { "long-without-lma", 0x08, 0x08, CODE_64, DATA_BIG, 0, 0, UPROF_X86_CR0_PE, 0, 2, 0, 0x10, 0x13 },
};
/* clang-format on */

static void
test_pv(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    Bytes bytes = { { 0 } };
    UprofRegs regs;

    put_wide(bytes.wide, pv_cases[i].cs, pv_cases[i].flags, PG_PE, pv_cases[i].user_root,
             pv_cases[i].root, 0x2660);
    put(bytes.wide + WIDE_EVENT_CALLBACK, 8, UINT64_C(0xffffffff81001234));
    g_assert_true(uprof_xen_pv_regs_parse(SLICE(bytes.wide), 8, &regs, NULL));
    g_assert_cmpuint(regs.word_bytes, ==, pv_cases[i].word_bytes);
    g_assert_cmpuint(regs.privilege, ==, pv_cases[i].privilege);
    g_assert_cmphex(regs.sys[UPROF_X86_CR3], ==, pv_cases[i].cr3);
    g_assert_cmphex(regs.sys[UPROF_X86_CR4], ==, 0x2660);
    g_assert_cmpuint(regs.sys[UPROF_X86_XEN_PV], ==, 64);
    g_assert_cmphex(regs.sys[UPROF_X86_XEN_ENTRY], ==, UINT64_C(0xffffffff81001234));
    g_assert_cmphex(regs.sys[UPROF_X86_XEN_ROOT], ==, pv_cases[i].root);
}

static void
test_narrow_root(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    Bytes bytes = { { 0 } };
    UprofRegs regs;

    put_narrow(bytes.narrow, 0xe019, 0, narrow_roots[i].cr3);
    g_assert_true(uprof_xen_pv_regs_parse(SLICE(bytes.narrow), 4, &regs, NULL));
    g_assert_cmphex(regs.sys[UPROF_X86_CR3], ==, narrow_roots[i].root);
    g_assert_cmpuint(regs.privilege, ==, 3);
}

static void
test_hvm(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    Bytes bytes = { { 0 } };
    UprofXenHvmCpu cpu;
    UprofRegs regs;
    uint16_t cs = 0;

    put_cpu(bytes.cpu, hvm_cases[i].cpu_cs, hvm_cases[i].cs_attributes, hvm_cases[i].cs_base,
            hvm_cases[i].ss_attributes, hvm_cases[i].ss_base, hvm_cases[i].efer);
    g_assert_true(uprof_xen_hvm_cpu_parse(SLICE(bytes.cpu), &cpu, NULL));
    g_assert_cmpuint(cpu.cs, ==, hvm_cases[i].cpu_cs);
    put_wide(bytes.wide, hvm_cases[i].cs, 0, hvm_cases[i].cr0, 0, 0x5000, 0x20);
    g_assert_true(uprof_xen_hvm_regs_parse(SLICE(bytes.wide), &cpu, &regs, &cs, NULL));
    g_assert_cmpuint(cs, ==, hvm_cases[i].cs);
    g_assert_cmpuint(regs.word_bytes, ==, hvm_cases[i].word_bytes);
    g_assert_cmpuint(regs.privilege, ==, hvm_cases[i].privilege);
    g_assert_cmphex(regs.pc, ==, hvm_cases[i].pc);
    g_assert_cmphex(regs.sp, ==, hvm_cases[i].sp);
    g_assert_cmphex(regs.sys[UPROF_X86_CR3], ==, 0x5000);
    g_assert_cmphex(regs.sys[UPROF_X86_CR4], ==, 0x20);
    g_assert_cmphex(regs.sys[UPROF_X86_EFER], ==, hvm_cases[i].efer);
    g_assert_cmphex(regs.sys[UPROF_X86_TR], ==, 0x7000);
    g_assert_cmphex(regs.sys[UPROF_X86_IDT], ==, 0x9000);
    g_assert_cmphex(regs.sys[UPROF_X86_GDT], ==, 0xa000);
    g_assert_cmpuint(regs.sys[UPROF_X86_XEN_PV], ==, 0);
}

static void
test_hvm_modes(void)
{
    Bytes bytes = { { 0 } };
    UprofRegs regs = { 0 };
    UprofXenHvmCpu cpu;

    bytes.cpu[HVM_CR0] = UPROF_X86_CR0_PE;
    bytes.cpu[HVM_CR4] = UPROF_X86_CR4_PAE;
    g_assert_true(uprof_xen_hvm_cpu_parse(SLICE(bytes.cpu), &cpu, NULL));
    g_assert_cmphex(cpu.cr0, ==, UPROF_X86_CR0_PE);
    g_assert_cmphex(cpu.cr4, ==, UPROF_X86_CR4_PAE);
    g_assert_false(uprof_xen_hvm_cpu_fits(&cpu, &regs));
    regs.sys[UPROF_X86_CR0] = UPROF_X86_CR0_PE | UPROF_X86_CR0_TS;
    regs.sys[UPROF_X86_CR4] = UPROF_X86_CR4_PAE;
    g_assert_true(uprof_xen_hvm_cpu_fits(&cpu, &regs));
}

/* Every wrong length is refused, and leaves the output unchanged. */
static void
test_lengths(void)
{
    static const size_t lens[] = { 0, 1, 512, 2799, 2800, 2801, 5167, 5169, 8192 };
    static const uint8_t bytes[8192];
    const UprofRegs untouched = { .pc = 42 };
    const UprofXenHvmCpu cpu = { .efer = 42 };

    for (size_t i = 0; i < G_N_ELEMENTS(lens); i++) {
        const UprofSlice slice = { bytes, lens[i] };
        UprofRegs regs = untouched;
        for (unsigned word_bytes = 4; word_bytes <= 8; word_bytes += 4) {
            g_autoptr(GError) error = NULL;
            if (word_bytes == 4 && lens[i] == UPROF_XEN_NARROW_CONTEXT_BYTES)
                continue;
            g_assert_false(uprof_xen_pv_regs_parse(slice, word_bytes, &regs, &error));
            g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
            g_assert_true(g_pattern_match_simple("vcpu_guest_context byte 0: * bytes, not *",
                                                 error->message));
        }
        g_autoptr(GError) error = NULL;
        g_assert_false(uprof_xen_hvm_regs_parse(slice, &cpu, &regs, NULL, &error));
        g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
        g_assert_cmpmem(&regs, sizeof(regs), &untouched, sizeof(untouched));
    }
}

static void
test_cpu_lengths(void)
{
    static const uint8_t bytes[4096];
    UprofXenHvmCpu cpu = { .efer = 42 };

    for (size_t len = 0; len < UPROF_XEN_HVM_CPU_BYTES; len += 103) {
        g_autoptr(GError) error = NULL;
        g_assert_false(uprof_xen_hvm_cpu_parse((UprofSlice){ bytes, len }, &cpu, &error));
        g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
        g_assert_cmpuint(cpu.efer, ==, 42);
    }
    /* newer versions may append fields, which are not read */
    g_assert_true(uprof_xen_hvm_cpu_parse(SLICE(bytes), &cpu, NULL));
    g_assert_cmpuint(cpu.efer, ==, 0);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/xen-vcpu/hvm-modes", test_hvm_modes);

    g_test_add_func("/xen-vcpu/general-registers", test_general_registers);
    g_test_add_func("/xen-vcpu/narrow-registers", test_narrow_registers);
    g_test_add_func("/xen-vcpu/lengths", test_lengths);
    g_test_add_func("/xen-vcpu/cpu-lengths", test_cpu_lengths);
    for (size_t i = 0; i < G_N_ELEMENTS(pv_cases); i++) {
        g_autofree char *path = g_strdup_printf("/xen-vcpu/pv/%s", pv_cases[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_pv);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(narrow_roots); i++) {
        g_autofree char *path = g_strdup_printf("/xen-vcpu/narrow-root/%s", narrow_roots[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_narrow_root);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(hvm_cases); i++) {
        g_autofree char *path = g_strdup_printf("/xen-vcpu/hvm/%s", hvm_cases[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_hvm);
    }
    return g_test_run();
}
