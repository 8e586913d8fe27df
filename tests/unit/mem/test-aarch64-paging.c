/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "memory-guest.h"
#include "uprof/mem.h"
#include "uprof/paging.h"

/* Tables are at fixed addresses. The entries of a case are pairs of address and value. */
enum {
    RAM_LEN = 0x80000,
    /* of 4 KiB */
    ROOT = 0x1000,
    T1 = 0x2000,
    T2 = 0x3000,
    T3 = 0x4000,
    T4 = 0x5000,
    /* of 16 KiB */
    ROOT16 = 0x4000,
    T16 = 0x8000,
    U16 = 0xc000,
    /* of 64 KiB */
    ROOT64 = 0x10000,
    T64 = 0x20000,
    U64 = 0x30000,
    ENTRIES_MAX = 5,
};

#define BIT(n) (UINT64_C(1) << (n))
#define TABLE UINT64_C(3)
#define BLOCK UINT64_C(1)
#define PAGE (UINT64_C(3) | BIT(10))
#define READ_ONLY BIT(7)
#define PXN BIT(53)
#define UXN BIT(54)

/* TCR_EL1 */
#define LOW(bits) ((uint64_t)(64 - (bits)))
#define LOW_16K (UINT64_C(2) << 14)
#define LOW_64K (UINT64_C(1) << 14)
#define LOW_OFF BIT(7)
#define HIGH(bits) (LOW(bits) << 16 | UINT64_C(2) << 30)
#define TAGS BIT(37)
#define DS BIT(59)

#define NONE UINT64_MAX
/* Index 1 on each of the levels */
#define ONES_4K UINT64_C(0x8040201234)
#define ONES_16K UINT64_C(0x1002004234)
#define ONES_64K UINT64_C(0x20010234)

/* clang-format off */
static const struct {
    const char *name;
    uint64_t tcr, ttbr; /* of the half of @gva */
    struct {
        uint64_t at; /* gpa; 0: end of the list */
        uint64_t value;
    } entries[ENTRIES_MAX];
    uint64_t gva;
    uint64_t gpa; /* NONE: not mapped */
    uint64_t left;
    bool no_execute, no_write;
} cases[] = {
    { "4k-39",        LOW(39), ROOT, { { ROOT + 8, T1 | TABLE }, { T1 + 8, T2 | TABLE }, { T2 + 8, 0x9000 | PAGE } }, 0x40201234, 0x9234, 0xdcc },
    { "4k-39-2m",     LOW(39), ROOT, { { ROOT + 8, T1 | TABLE }, { T1 + 8, 0x80200000 | BLOCK } }, 0x40201234, 0x80201234, 0x1fedcc },
    { "4k-39-1g",     LOW(39), ROOT, { { ROOT + 8, 0x80000000 | BLOCK } }, 0x40201234, 0x80201234, 0x3fdfedcc },
    { "4k-48",        LOW(48), ROOT, { { ROOT + 8, T1 | TABLE }, { T1 + 8, T2 | TABLE }, { T2 + 8, T3 | TABLE }, { T3 + 8, 0x9000 | PAGE } }, ONES_4K, 0x9234, 0xdcc },
    { "4k-48-no-512g", LOW(48), ROOT, { { ROOT + 8, UINT64_C(0x8000000000) | BLOCK } }, ONES_4K, NONE },
    { "4k-48-upper",  HIGH(48), ROOT | UINT64_C(0x5a) << 48 | 1, { { ROOT + 257 * 8, T1 | TABLE }, { T1 + 8, T2 | TABLE }, { T2 + 8, T3 | TABLE }, { T3 + 8, 0x9000 | PAGE } }, ONES_4K | UINT64_C(0xffff800000000000), 0x9234, 0xdcc },
    { "4k-52",        LOW(52) | DS, ROOT, { { ROOT + 8, T1 | TABLE }, { T1 + 8, T2 | TABLE }, { T2 + 8, T3 | TABLE }, { T3 + 8, T4 | TABLE }, { T4 + 8, 0x9000 | PAGE | UINT64_C(1) << 8 } }, ONES_4K | BIT(48), BIT(50) | 0x9234, 0xdcc },
    { "4k-52-512g",   LOW(52) | DS, ROOT, { { ROOT + 8, T1 | TABLE }, { T1 + 8, UINT64_C(0x8000000000) | BLOCK } }, ONES_4K | BIT(48), ONES_4K, UINT64_C(0x8000000000) - UINT64_C(0x40201234) },
    { "4k-52-no-ds",  LOW(52), ROOT, { { ROOT + 8, T1 | TABLE } }, ONES_4K, NONE },
    { "16k-47",       LOW(47) | LOW_16K, ROOT16, { { ROOT16 + 8, T16 | TABLE }, { T16 + 8, U16 | TABLE }, { U16 + 8, 0x10000 | PAGE } }, ONES_16K, 0x10234, 0x3dcc },
    { "16k-32m",      LOW(47) | LOW_16K, ROOT16, { { ROOT16 + 8, T16 | TABLE }, { T16 + 8, 0x2000000 | BLOCK } }, ONES_16K, 0x2004234, 0x1ffbdcc },
    { "16k-no-64g",   LOW(47) | LOW_16K, ROOT16, { { ROOT16 + 8, UINT64_C(0x1000000000) | BLOCK } }, ONES_16K, NONE },
    { "16k-64g",      LOW(47) | LOW_16K | DS, ROOT16, { { ROOT16 + 8, UINT64_C(0x1000000000) | BLOCK } }, ONES_16K, ONES_16K, UINT64_C(0x1000000000) - 0x2004234 },
    { "16k-48",       LOW(48) | LOW_16K, ROOT, { { ROOT + 8, ROOT16 | TABLE }, { ROOT16 + 8, T16 | TABLE }, { T16 + 8, U16 | TABLE }, { U16 + 8, 0x10000 | PAGE } }, ONES_16K | BIT(47), 0x10234, 0x3dcc },
    { "64k-42",       LOW(42) | LOW_64K, ROOT64, { { ROOT64 + 8, T64 | TABLE }, { T64 + 8, 0x30000 | PAGE } }, ONES_64K, 0x30234, 0xfdcc },
    { "64k-512m",     LOW(42) | LOW_64K, ROOT64, { { ROOT64 + 8, 0x20000000 | BLOCK } }, ONES_64K, 0x20010234, 0x1ffefdcc },
    { "64k-52-bits",  LOW(52) | LOW_64K, ROOT64, { { ROOT64 + 8, T64 | TABLE }, { T64 + 8, U64 | TABLE }, { U64 + 8, 0x40000 | PAGE } }, ONES_64K | BIT(42), 0x40234, 0xfdcc },
    { "64k-52-frame", LOW(42) | LOW_64K, ROOT64, { { ROOT64 + 8, T64 | TABLE }, { T64 + 8, 0x30000 | 0xa000 | PAGE } }, ONES_64K, UINT64_C(0xa000000030234), 0xfdcc },
    { "not-canonical", LOW(39), ROOT, { { ROOT + 8, 0x80000000 | BLOCK } }, BIT(39) | 0x40000000, NONE },
    { "upper-not-canonical", HIGH(39), ROOT, { { ROOT + 8, 0x80000000 | BLOCK } }, UINT64_C(0xffff800040000000), NONE },
    { "tag",          LOW(39) | TAGS, ROOT, { { ROOT + 8, 0x80000000 | BLOCK } }, UINT64_C(0xab00000040000010), 0x80000010, 0x3ffffff0 },
    { "tag-not-ignored", LOW(39), ROOT, { { ROOT + 8, 0x80000000 | BLOCK } }, UINT64_C(0xab00000040000010), NONE },
    { "half-is-off",  LOW(39) | LOW_OFF, ROOT, { { ROOT + 8, 0x80000000 | BLOCK } }, 0x40000000, NONE },
    { "no-such-size", LOW(39) | LOW_16K | LOW_64K, ROOT, { { ROOT + 8, 0x80000000 | BLOCK } }, 0x40000000, NONE },
    { "too-many-bits", LOW(59) | DS, ROOT, { { ROOT + 8, 0x80000000 | BLOCK } }, 0x40000000, NONE },
    { "too-few-bits", LOW(14), ROOT, { { ROOT, 0x80000000 | PAGE } }, 0x10, NONE },
    { "no-table",     LOW(39), ROOT, { { ROOT + 8, T1 | 2 }, { T1 + 8, T2 | TABLE } }, 0x40201234, NONE },
    { "block-on-lowest", LOW(39), ROOT, { { ROOT + 8, T1 | TABLE }, { T1 + 8, T2 | TABLE }, { T2 + 8, 0x9000 | BLOCK } }, 0x40201234, NONE },
    { "table-outside", LOW(39), ROOT, { { ROOT + 8, 0x40000000 | TABLE } }, 0x40201234, NONE },
    { "root-outside", LOW(48), UINT64_C(0xfffffffff000), { { 0 } }, 0x40201234, NONE },
    { "self",         LOW(39), ROOT, { { ROOT + 8, ROOT | PAGE } }, 0x40201234, ROOT + 0x234, 0xdcc },
    { "no-execute",   LOW(39), ROOT, { { ROOT + 8, 0x80000000 | BLOCK | PXN | UXN } }, 0x40000000, 0x80000000, 0x40000000, .no_execute = true },
    { "user-only",    LOW(39), ROOT, { { ROOT + 8, 0x80000000 | BLOCK | PXN } }, 0x40000000, 0x80000000, 0x40000000 },
    { "no-execute-above", LOW(39), ROOT, { { ROOT + 8, T1 | TABLE | BIT(59) | BIT(60) }, { T1 + 8, 0x80200000 | BLOCK } }, 0x40200000, 0x80200000, 0x200000, .no_execute = true },
    { "read-only",    LOW(39), ROOT, { { ROOT + 8, 0x80000000 | BLOCK | READ_ONLY } }, 0x40000000, 0x80000000, 0x40000000, .no_write = true },
    { "clean",        LOW(39), ROOT, { { ROOT + 8, 0x80000000 | BLOCK | READ_ONLY | BIT(51) } }, 0x40000000, 0x80000000, 0x40000000 },
    { "read-only-above", LOW(39), ROOT, { { ROOT + 8, T1 | TABLE | BIT(62) }, { T1 + 8, 0x80200000 | BLOCK } }, 0x40200000, 0x80200000, 0x200000, .no_write = true },
};

static const struct {
    uint64_t sctlr, tcr;
    const char *name;
} modes[] = {
    { 0,                 LOW(39),           "off"          },
    { UPROF_ARM_SCTLR_M, LOW(39),           "4 KiB pages"  },
    { UPROF_ARM_SCTLR_M, LOW(39) | LOW_16K, "16 KiB pages" },
    { UPROF_ARM_SCTLR_M, LOW(42) | LOW_64K, "64 KiB pages" },
    { UPROF_ARM_SCTLR_M, LOW(42) | LOW_OFF, "unknown"      },
};
/* clang-format on */

static UprofRegs
make_regs(uint64_t tcr, uint64_t ttbr)
{
    UprofRegs regs = { .word_bytes = 8 };

    regs.sys[UPROF_ARM_SCTLR] = UPROF_ARM_SCTLR_M;
    regs.sys[UPROF_ARM_TCR] = tcr;
    regs.sys[UPROF_ARM_TTBR0] = regs.sys[UPROF_ARM_TTBR1] = ttbr;
    return regs;
}

static MemoryGuest *
open_guest(size_t ram_len, bool slow)
{
    const MemoryPlan plan = { .n_vcpus = 1,
                              .grain = UPROF_GRAIN_GUEST,
                              .ram_len = ram_len,
                              .slow_reads = slow,
                              .arch = "aarch64" };

    return memory_guest_open(&plan);
}

static void
check_walk(size_t i, UprofLane lane, bool slow)
{
    g_autoptr(MemoryGuest) guest = open_guest(RAM_LEN, slow);
    g_autoptr(UprofMem) mem = uprof_mem_new(&guest->base, lane);
    const UprofRegs regs = make_regs(cases[i].tcr, cases[i].ttbr);
    UprofMapping mapping;

    for (unsigned j = 0; j < ENTRIES_MAX && cases[i].entries[j].at; j++)
        memory_guest_put_u64(guest, cases[i].entries[j].at, cases[i].entries[j].value);
    /* the second time from the cache */
    for (unsigned round = 0; round < 2; round++) {
        const bool ok = uprof_mem_find(mem, 0, &regs, cases[i].gva, &mapping);
        g_assert_cmpint(ok, ==, cases[i].gpa != NONE);
        if (!ok)
            continue;
        g_assert_cmphex(mapping.gpa, ==, cases[i].gpa);
        g_assert_cmphex(mapping.left, ==, cases[i].left);
        g_assert_cmpint(mapping.executable, ==, !cases[i].no_execute);
        g_assert_cmpint(mapping.writable, ==, !cases[i].no_write);
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

/* clang-format off */
static const struct {
    const char *name;
    uint64_t tcr; /* with the upper half only */
    uint64_t root;
    uint64_t want_tcr, want_ttbr;
} processes[] = {
    { "4k-48",     HIGH(48) | LOW_OFF,                      0x4000, HIGH(48) | LOW(48) | TAGS, 0x4000 },
    { "4k-52",     HIGH(52) | DS | LOW_OFF,                 BIT(49) | 0x4000, HIGH(52) | DS | LOW(52) | TAGS, 0x4000 | BIT(3) },
    { "16k-47",    LOW(47) << 16 | BIT(30) | LOW(39),       0x4000, LOW(47) << 16 | BIT(30) | LOW_16K | LOW(47) | TAGS, 0x4000 },
    { "64k-42",    LOW(42) << 16 | UINT64_C(3) << 30,       0x4000, LOW(42) << 16 | UINT64_C(3) << 30 | LOW_64K | LOW(42) | TAGS, 0x4000 },
    { "no-upper",  HIGH(48) | BIT(23) | LOW(39),            0x4000, HIGH(48) | BIT(23) | LOW(39), ROOT },
};
/* clang-format on */

/* The tables of a process have the format of those of the kernel. */
static void
test_process(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    UprofRegs regs = make_regs(processes[i].tcr, ROOT);

    uprof_paging_use_process(uprof_arch_find("aarch64"), &regs, processes[i].root);
    g_assert_cmphex(regs.sys[UPROF_ARM_TCR], ==, processes[i].want_tcr);
    g_assert_cmphex(regs.sys[UPROF_ARM_TTBR0], ==, processes[i].want_ttbr);
    g_assert_cmphex(regs.sys[UPROF_ARM_TTBR1], ==, ROOT);
}

static void
test_off(void)
{
    g_autoptr(MemoryGuest) guest = open_guest(RAM_LEN, false);
    g_autoptr(UprofMem) mem = uprof_mem_new(&guest->base, UPROF_LANE_SAMPLER);
    const UprofRegs regs = { .word_bytes = 8 };
    uint64_t gpa, left;

    g_assert_true(uprof_mem_translate(mem, 0, &regs, 0x12345678, &gpa, &left, NULL));
    g_assert_cmphex(gpa, ==, 0x12345678);
    g_assert_cmphex(left, ==, 0x988);
}

static void
test_modes(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(modes); i++) {
        UprofRegs regs = make_regs(modes[i].tcr, 0);
        regs.sys[UPROF_ARM_SCTLR] = modes[i].sctlr;
        g_assert_cmpstr(uprof_paging_name(uprof_arch_find("aarch64"), &regs), ==, modes[i].name);
    }
}

/* A copy repeats when the kernel changes nothing but its own bits of an entry, and the address only
 * then. */
static void
test_changed_entry(void)
{
    enum { DATA = 0x9000, OTHER = 0xa000 };
    g_autoptr(MemoryGuest) guest = open_guest(RAM_LEN, false);
    g_autoptr(UprofMem) mem = uprof_mem_new(&guest->base, UPROF_LANE_SAMPLER);
    const UprofRegs regs = make_regs(LOW(39), ROOT);
    uint64_t word;

    memory_guest_put_u64(guest, ROOT + 8, T1 | TABLE);
    memory_guest_put_u64(guest, T1 + 8, T2 | TABLE);
    memory_guest_put_u64(guest, T2 + 8, DATA | TABLE);
    memory_guest_put_u64(guest, DATA, 1);
    memory_guest_put_u64(guest, OTHER, 2);
    for (unsigned i = 0; i < 3; i++)
        g_assert_cmpuint(uprof_mem_copy(mem, 0, &regs, 0x40201000, &word, sizeof(word)), ==, 8);
    gint before = guest->tally->spans;
    memory_guest_put_u64(guest, T2 + 8, DATA | PAGE | BIT(55));
    g_assert_cmpuint(uprof_mem_copy(mem, 0, &regs, 0x40201000, &word, sizeof(word)), ==, 8);
    g_assert_cmpuint(word, ==, 1);
    g_assert_cmpint(guest->tally->spans - before, ==, 4);
    memory_guest_put_u64(guest, T2 + 8, OTHER | PAGE);
    g_assert_cmpuint(uprof_mem_copy(mem, 0, &regs, 0x40201000, &word, sizeof(word)), ==, 8);
    g_assert_cmpuint(word, ==, 2);
}

/* Random tables: each walk ends after at most one read for each level. */
static void
test_random(void)
{
    enum { ROUNDS = 400, WALKS = 50, LEVELS_MAX = 5, RANDOM_LEN = 0x20000 };
    static const uint64_t kinds[] = { LOW(39),           LOW(48),           LOW(52) | DS,
                                      LOW(47) | LOW_16K, LOW(42) | LOW_64K, LOW(52) | LOW_64K };

    for (unsigned round = 0; round < ROUNDS; round++) {
        g_autoptr(MemoryGuest) guest = open_guest(RANDOM_LEN, false);
        g_autoptr(UprofMem) mem = uprof_mem_new(&guest->base, UPROF_LANE_SAMPLER);
        const uint64_t tcr = kinds[round % G_N_ELEMENTS(kinds)];
        for (size_t at = 0; at < guest->ram_len; at += 8) {
            uint64_t entry = (uint64_t)g_test_rand_int() << 32 | (uint32_t)g_test_rand_int();
            /* half of the entries lead into RAM, so that walks get deep */
            if (entry & 0x100)
                entry = (entry & (RANDOM_LEN - 1) & ~UINT64_C(0xf00)) | TABLE;
            memory_guest_put_u64(guest, at, entry);
        }
        for (unsigned walk = 0; walk < WALKS; walk++) {
            const UprofRegs regs =
                make_regs(tcr, (uint64_t)g_test_rand_int_range(0, RANDOM_LEN) & ~UINT64_C(0x3f));
            const uint64_t gva = ((uint64_t)g_test_rand_int() << 32 | (uint32_t)g_test_rand_int()) &
                                 (BIT(64 - (tcr & 0x3f)) - 1);
            const gint before = guest->tally->spans;
            uint64_t gpa, left;
            if (uprof_mem_translate(mem, 0, &regs, gva, &gpa, &left, NULL)) {
                g_assert_cmpuint(left, >, 0);
                g_assert_cmpuint(left, <=, BIT(42));
                g_assert_cmphex(gpa >> 52, ==, 0);
            }
            g_assert_cmpint(guest->tally->spans - before, <=, LEVELS_MAX);
        }
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/aarch64-paging/walk/%s", cases[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_walk);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(processes); i++) {
        g_autofree char *path = g_strdup_printf("/aarch64-paging/process/%s", processes[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_process);
    }
    g_test_add_func("/aarch64-paging/off", test_off);
    g_test_add_func("/aarch64-paging/modes", test_modes);
    g_test_add_func("/aarch64-paging/changed-entry", test_changed_entry);
    g_test_add_func("/aarch64-paging/random-tables", test_random);
    return g_test_run();
}
