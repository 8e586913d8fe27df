/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "memory-guest.h"
#include "uprof/mem.h"

/*
 * Each case has its tables at fixed addresses: the root at ROOT, the next levels in the pages
 * after it. The entries of a case are pairs of address and value.
 */
enum {
    RAM_LEN = 0x20000,
    ROOT = 0x1000,
    T1 = 0x2000,
    T2 = 0x3000,
    T3 = 0x4000,
    T4 = 0x5000,
    ENTRIES_MAX = 5,
};

#define P UINT64_C(0x1)
#define PS UINT64_C(0x80)
#define NX (UINT64_C(1) << 63)
#define FLAGS UINT64_C(0x67) /* present, writable, user, accessed, dirty */

#define PG UPROF_X86_CR0_PG
#define PSE UPROF_X86_CR4_PSE
#define PAE UPROF_X86_CR4_PAE
#define LA57 UPROF_X86_CR4_LA57
#define LMA UPROF_X86_EFER_LMA
#define NXE UPROF_X86_EFER_NXE

#define NONE UINT64_MAX

/* clang-format off */
static const struct {
    const char *name;
    uint64_t cr0, cr4, efer, cr3;
    struct {
        uint64_t at; /* gpa; 0: end of the list */
        uint64_t value;
    } entries[ENTRIES_MAX];
    uint64_t gva;
    uint64_t gpa; /* NONE: not mapped */
    uint64_t left;
    bool no_execute;
    uint64_t xen_pv;
} cases[] = {
    { "off",                    0,  0, 0, 0x5000, { { 0 } }, 0x12345678, 0x12345678, 0x988, false },
    { "off-cuts-to-32-bits",    0,  0, 0, 0, { { 0 } }, 0x100000ffe, 0xffe, 2, false },
    { "off-last-byte",          0,  0, 0, 0, { { 0 } }, 0xffffffff, 0xffffffff, 1, false },

    { "32bit",                  PG, 0, 0, ROOT, { { ROOT + 1 * 4, T1 | FLAGS }, { T1 + 2 * 4, 0xabcde000 | FLAGS } }, 0x402345, 0xabcde345, 0xcbb, false },
    { "32bit-last-page",        PG, 0, 0, ROOT, { { ROOT + 1023 * 4, T1 | P }, { T1 + 1023 * 4, 0x7000 | P } }, 0xffffffff, 0x7fff, 1, false },
    { "32bit-no-pse-bit-7",     PG, 0, 0, ROOT, { { ROOT, T1 | PS | P }, { T1, 0x9000 | P } }, 0x10, 0x9010, 0xff0, false },
    { "32bit-pse-4m",           PG, PSE, 0, ROOT, { { ROOT + 1 * 4, 0x00800000 | PS | P } }, 0x7abcde, 0xbabcde, 0x54322, false },
    { "32bit-pse-small",        PG, PSE, 0, ROOT, { { ROOT, T1 | P }, { T1, 0x9000 | P } }, 0x10, 0x9010, 0xff0, false },
    { "32bit-pse-36",           PG, PSE, 0, ROOT, { { ROOT, 0x00c00000 | 0xffu << 13 | PS | P } }, 0x123456, UINT64_C(0xff00d23456), 0x2dcbaa, false },
    { "32bit-has-no-nx",   PG, 0, NXE, ROOT, { { ROOT, T1 | P }, { T1, 0x9000 | P } }, 0, 0x9000, 0x1000, false },
    { "32bit-no-directory",     PG, 0, 0, ROOT, { { ROOT, T1 } , { T1, 0x9000 | P } }, 0x10, NONE, 0, false },
    { "32bit-no-page",          PG, 0, 0, ROOT, { { ROOT, T1 | P }, { T1, 0x9000 } }, 0x10, NONE, 0, false },
    { "32bit-flags-in-cr3",     PG, 0, 0, ROOT | 0x18, { { ROOT, T1 | P }, { T1, 0x9000 | P } }, 0x10, 0x9010, 0xff0, false },
    { "32bit-cuts-address",     PG, 0, 0, ROOT, { { ROOT, T1 | P }, { T1, 0x9000 | P } }, UINT64_C(0xffffffff00000010), 0x9010, 0xff0, false },

    { "pae",                    PG, PAE, 0, ROOT, { { ROOT + 3 * 8, T1 | P }, { T1 + 2 * 8, T2 | P }, { T2 + 1 * 8, UINT64_C(0x912345000) | P } }, 0xc0401234, UINT64_C(0x912345234), 0xdcc, false },
    { "pae-root-in-mid-page",   PG, PAE, 0, ROOT | 0x7e0, { { ROOT + 0x7e0 + 8, T1 | P }, { T1, T2 | P }, { T2, 0x9000 | P } }, 0x40000000, 0x9000, 0x1000, false },
    { "pae-root-ignores-low",   PG, PAE, 0, ROOT | 0x1f, { { ROOT, T1 | P }, { T1, T2 | P }, { T2, 0x9000 | P } }, 0, 0x9000, 0x1000, false },
    { "pae-2m",                 PG, PAE, 0, ROOT, { { ROOT, T1 | P }, { T1 + 8, 0x40000000 | PS | P } }, 0x2abcde, 0x400abcde, 0x154322, false },
    { "pae-nx",                 PG, PAE, NXE, ROOT, { { ROOT, T1 | P }, { T1, T2 | P }, { T2, 0x9000 | P | NX } }, 0, 0x9000, 0x1000, true },
    { "pae-reserved-ps",        PG, PAE, 0, ROOT, { { ROOT, T1 | PS | P } }, 0, NONE, 0, false },
    { "pae-no-root-entry",      PG, PAE, 0, ROOT, { { ROOT, T1 | P } }, 0x40000000, NONE, 0, false },

    { "4level",                 PG, PAE, LMA, ROOT, { { ROOT + 256 * 8, T1 | FLAGS }, { T1 + 8, T2 | FLAGS }, { T2 + 2 * 8, T3 | FLAGS }, { T3 + 3 * 8, 0xabc000 | FLAGS } }, UINT64_C(0xffff800040403fff), 0xabcfff, 1, false },
    { "4level-low-half",        PG, PAE, LMA, ROOT, { { ROOT + 255 * 8, T1 | P }, { T1 + 511 * 8, T2 | P }, { T2 + 511 * 8, T3 | P }, { T3 + 511 * 8, 0x9000 | P } }, UINT64_C(0x7fffffffffff), 0x9fff, 1, false },
    { "4level-2m",              PG, PAE, LMA, ROOT, { { ROOT, T1 | P }, { T1, T2 | P }, { T2 + 8, UINT64_C(0xfffffffe00000) | PS | P } }, 0x3fffff, UINT64_C(0xfffffffffffff), 1, false },
    { "4level-1g",              PG, PAE, LMA, ROOT, { { ROOT, T1 | P }, { T1 + 8, UINT64_C(0x8040000000) | PS | P } }, 0x7fffffff, UINT64_C(0x807fffffff), 1, false },
    { "4level-2m-with-pat",       PG, PAE, LMA, ROOT, { { ROOT, T1 | P }, { T1, T2 | P }, { T2, UINT64_C(0x200000) | 0x1000 | PS | P } }, 0x10, 0x200010, 0x1ffff0, false },
    { "4level-nx-on-top",       PG, PAE, LMA | NXE, ROOT, { { ROOT, T1 | P | NX }, { T1, T2 | P }, { T2, T3 | P }, { T3, 0x9000 | P } }, 0, 0x9000, 0x1000, true },
    { "4level-nx-on-1g",        PG, PAE, LMA | NXE, ROOT, { { ROOT, T1 | P }, { T1, UINT64_C(0x40000000) | PS | P | NX } }, 0, 0x40000000, 0x40000000, true },
    { "4level-nx-not-enabled",  PG, PAE, LMA, ROOT, { { ROOT, T1 | P }, { T1, T2 | P }, { T2, T3 | P }, { T3, 0x9000 | P | NX } }, 0, 0x9000, 0x1000, false },
    { "4level-software-bits",   PG, PAE, LMA, ROOT, { { ROOT, T1 | P | UINT64_C(0x7ff) << 52 }, { T1, T2 | P | 0xe00 }, { T2, T3 | P }, { T3, 0x9000 | P } }, 0, 0x9000, 0x1000, false },
    { "4level-reserved-ps",     PG, PAE, LMA, ROOT, { { ROOT, T1 | PS | P } }, 0, NONE, 0, false },
    { "4level-pcid-in-cr3",     PG, PAE, LMA, ROOT | 0xfff | (UINT64_C(1) << 63), { { ROOT, T1 | P }, { T1, UINT64_C(0x40000000) | PS | P } }, 1, 0x40000001, 0x3fffffff, false },
    { "4level-not-canonical",   PG, PAE, LMA, ROOT, { { ROOT + 256 * 8, T1 | P }, { T1, UINT64_C(0x40000000) | PS | P } }, UINT64_C(0x800000000000), NONE, 0, false },
    { "4level-not-canonical-2", PG, PAE, LMA, ROOT, { { ROOT, T1 | P }, { T1, UINT64_C(0x40000000) | PS | P } }, UINT64_C(0xffff000000000000), NONE, 0, false },
    { "4level-not-canonical-3", PG, PAE, LMA, ROOT, { { ROOT, T1 | P }, { T1, UINT64_C(0x40000000) | PS | P } }, UINT64_C(1) << 63, NONE, 0, false },
    { "4level-table-outside",   PG, PAE, LMA, ROOT, { { ROOT, 0x40000000 | P } }, 0, NONE, 0, false },
    { "4level-root-outside",    PG, PAE, LMA, UINT64_C(0xfffffffffffff000), { { 0 } }, 0, NONE, 0, false },
    { "4level-self",            PG, PAE, LMA, ROOT, { { ROOT + 511 * 8, ROOT | P } }, UINT64_C(0xffffffffffffffff), ROOT + 0xfff, 1, false },
    { "4level-self-as-data",    PG, PAE, LMA, ROOT, { { ROOT + 511 * 8, ROOT | P }, { ROOT, T1 | P } }, UINT64_C(0xfffffffffffff000) - 511 * 0x1000, T1, 0x1000, false },

    { "5level",                 PG, PAE | LA57, LMA, ROOT, { { ROOT + 8, T1 | P }, { T1 + 8, T2 | P }, { T2 + 8, T3 | P }, { T3 + 8, T4 | P }, { T4 + 8, 0x9000 | P } }, UINT64_C(0x1008040201ff0), 0x9ff0, 0x10, false },
    { "5level-high",            PG, PAE | LA57, LMA, ROOT, { { ROOT + 256 * 8, T1 | P }, { T1, T2 | P }, { T2, UINT64_C(0x80000000) | PS | P } }, UINT64_C(0xff00000000000010), 0x80000010, 0x3ffffff0, false },
    { "5level-reserved-ps",     PG, PAE | LA57, LMA, ROOT, { { ROOT, T1 | P }, { T1, T2 | PS | P } }, 0, NONE, 0, false },
    { "xen-pv64",       0,  0, 0, ROOT, { { ROOT, T1 | FLAGS }, { T1, T2 | FLAGS }, { T2 + 2 * 8, T3 | FLAGS }, { T3 + 16 * 8, 0x9000 | FLAGS } }, 0x410f80, 0x9f80, 0x80, false, 64 },
    { "xen-pv64-no-large", 0, 0, 0, ROOT, { { ROOT, T1 | P }, { T1, T2 | P }, { T2, 0x200000 | PS | P } }, 0x10, NONE, 0, false, 64 },
    { "xen-pv64-owned-by-xen", 0, 0, 0, ROOT, { { ROOT + 256 * 8, T1 | P }, { T1, T2 | P }, { T2, T3 | P }, { T3, 0x9000 | P } }, UINT64_C(0xffff800000000010), NONE, 0, false, 64 },
    { "xen-pv64-above-xen", 0, 0, 0, ROOT, { { ROOT + 272 * 8, T1 | P }, { T1, T2 | P }, { T2, T3 | P }, { T3, 0x9000 | P | NX } }, UINT64_C(0xffff880000000010), 0x9010, 0xff0, false, 64 },
    { "xen-pv64-not-canonical", 0, 0, 0, ROOT, { { ROOT, T1 | P } }, UINT64_C(0x800000000000), NONE, 0, false, 64 },
    { "xen-pv32",       0,  0, NXE, ROOT, { { ROOT + 3 * 8, T1 | P }, { T1, T2 | P }, { T2 + 8, UINT64_C(0x912345000) | P | NX } }, 0xc0001234, UINT64_C(0x912345234), 0xdcc, true, 32 },
    { "xen-pv32-no-large", 0, 0, 0, ROOT, { { ROOT, T1 | P }, { T1, 0x200000 | PS | P } }, 0, NONE, 0, false, 32 },
    { "5level-not-canonical",   PG, PAE | LA57, LMA, ROOT, { { ROOT + 256 * 8, T1 | P }, { T1, T2 | P }, { T2, UINT64_C(0x80000000) | PS | P } }, UINT64_C(0x100000000000000), NONE, 0, false },
};

static const struct {
    const char *name;
    uint64_t cr0, cr4, efer;
    const char *word;
} modes[] = {
    { "off",               0,  PAE,        LMA, "off" },
    { "32bit",             PG, 0,          0,   "32-bit" },
    { "32bit-la57",        PG, LA57,       0,   "32-bit" },
    { "pae",               PG, PAE,        0,   "PAE" },
    { "4level",            PG, PAE,        LMA, "4-level" },
    { "5level",            PG, PAE | LA57, LMA, "5-level" },
};
/* clang-format on */

static UprofRegs
make_regs(uint64_t cr0, uint64_t cr4, uint64_t efer, uint64_t cr3)
{
    UprofRegs regs = { .word_bytes = 8 };

    regs.sys[UPROF_X86_CR0] = cr0;
    regs.sys[UPROF_X86_CR3] = cr3;
    regs.sys[UPROF_X86_CR4] = cr4;
    regs.sys[UPROF_X86_EFER] = efer;
    return regs;
}

static void
check_walk(size_t i, UprofLane lane, bool slow)
{
    const MemoryPlan plan = {
        .n_vcpus = 1, .grain = UPROF_GRAIN_GUEST, .ram_len = RAM_LEN, .slow_reads = slow
    };
    g_autoptr(MemoryGuest) guest = memory_guest_open(&plan);
    g_autoptr(UprofMem) mem = uprof_mem_new(&guest->base, lane);
    UprofRegs regs = make_regs(cases[i].cr0, cases[i].cr4, cases[i].efer, cases[i].cr3);
    regs.sys[UPROF_X86_XEN_PV] = cases[i].xen_pv;
    const bool narrow = strcmp(uprof_paging_name(guest->base.arch, &regs), "32-bit") == 0;
    uint64_t gpa = 1, left = 2;
    bool executable = false;

    for (unsigned j = 0; j < ENTRIES_MAX && cases[i].entries[j].at; j++) {
        if (narrow)
            memory_guest_put_u32(guest, cases[i].entries[j].at,
                                 (uint32_t)cases[i].entries[j].value);
        else
            memory_guest_put_u64(guest, cases[i].entries[j].at, cases[i].entries[j].value);
    }
    /* the second time from the cache */
    for (unsigned round = 0; round < 2; round++) {
        const bool ok = uprof_mem_translate(mem, 0, &regs, cases[i].gva, &gpa, &left, &executable);
        g_assert_cmpint(ok, ==, cases[i].gpa != NONE);
        if (!ok)
            continue;
        g_assert_cmphex(gpa, ==, cases[i].gpa);
        g_assert_cmphex(left, ==, cases[i].left);
        g_assert_cmpint(executable, ==, !cases[i].no_execute);
        g_assert_true(uprof_mem_translate(mem, 0, &regs, cases[i].gva, &gpa, &left, NULL));
    }
    g_assert_true(uprof_mem_check(mem));
}

static void
test_walk(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);

    check_walk(i, UPROF_LANE_SAMPLER, false);
    check_walk(i, UPROF_LANE_SAMPLER, true);
    check_walk(i, UPROF_LANE_WORKER, false);
}

static void
test_mode(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    const UprofRegs regs = make_regs(modes[i].cr0, modes[i].cr4, modes[i].efer, 0);

    g_assert_cmpstr(uprof_paging_name(uprof_arch_find("x86_64"), &regs), ==, modes[i].word);
}

/* Random tables: each walk ends after at most one read for each level. */
static void
test_random(void)
{
    enum { ROUNDS = 400, WALKS = 50, LEVELS_MAX = 5 };
    static const uint64_t cr4s[] = { 0, PSE, PAE, PAE, PAE | LA57 };
    static const uint64_t efers[] = { 0, 0, NXE, LMA | NXE, LMA };
    const MemoryPlan plan = { .n_vcpus = 1, .grain = UPROF_GRAIN_NONE, .ram_len = 0x8000 };

    for (unsigned round = 0; round < ROUNDS; round++) {
        g_autoptr(MemoryGuest) guest = memory_guest_open(&plan);
        g_autoptr(UprofMem) mem = uprof_mem_new(&guest->base, UPROF_LANE_SAMPLER);
        const unsigned kind = g_test_rand_int_range(0, G_N_ELEMENTS(cr4s));
        for (size_t at = 0; at < guest->ram_len; at += 8) {
            uint64_t entry = (uint64_t)g_test_rand_int() << 32 | (uint32_t)g_test_rand_int();
            /* half of the entries lead into RAM, so that walks get deep */
            if (entry & 0x100)
                entry = (entry & 0x7fff) | P;
            memory_guest_put_u64(guest, at, entry);
        }
        for (unsigned walk = 0; walk < WALKS; walk++) {
            const UprofRegs regs =
                make_regs(PG, cr4s[kind], efers[kind], g_test_rand_int_range(0, 0x8000));
            const uint64_t gva = (uint64_t)(gint64)(gint32)g_test_rand_int() << 17 >> 1;
            const gint before = guest->tally->spans;
            uint64_t gpa, left;
            if (uprof_mem_translate(mem, 0, &regs, gva, &gpa, &left, NULL)) {
                g_assert_cmpuint(left, >, 0);
                g_assert_cmpuint(left, <=, UINT64_C(1) << 30);
                g_assert_cmphex(gpa >> 52, ==, 0);
            }
            g_assert_cmpint(guest->tally->spans - before, <=, LEVELS_MAX);
        }
    }
}

static void
add_cases(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/x86-paging/walk/%s", cases[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_walk);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(modes); i++) {
        g_autofree char *path = g_strdup_printf("/x86-paging/mode/%s", modes[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_mode);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    add_cases();
    g_test_add_func("/x86-paging/random-tables", test_random);
    return g_test_run();
}
