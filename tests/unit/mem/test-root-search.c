/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "memory-guest.h"
#include "uprof/mem.h"

/*
 * The guest's RAM begins where QEMU's machine "virt" has it. Its code and its stack are in the
 * upper half of the addresses.
 */
enum {
    RAM = 0x40000000,
    RAM_LEN = 4 * 1024 * 1024,
    CODE_GPA = RAM + 0x10000,
    STACK_GPA = RAM + 0x20000,
    LOW_GPA = RAM + 0x30000,
    STALE = RAM + 0x80000,   /* tables that lead to the code only */
    TABLES = RAM + 0x100000, /* tables that lead to code and stack */
    OTHER = RAM + 0x200000,  /* tables of the lower half */
    TABLE_BYTES = 0x10000,   /* from one table to the next */
    PAUSE_US = 120 * 1000,   /* after which a search is repeated */
};

#define CODE UINT64_C(0xffff800008010000)
#define STACK UINT64_C(0xffff80000a020000)
#define LOW UINT64_C(0x7000030000)
#define WORD UINT64_C(0x1122334455667788)

/* What QEMU says. */
static struct {
    bool is_off;    /* the guest has no page tables */
    bool is_silent; /* nothing is mapped for the code that runs */
    uint64_t lie;   /* added to each answer */
    unsigned n_asked;
} hypervisor;

static bool
translate(G_GNUC_UNUSED MemoryGuest *guest, unsigned vcpu, uint64_t gva, uint64_t *gpa)
{
    static const struct {
        uint64_t gva, gpa;
    } pages[] = { { CODE, CODE_GPA }, { STACK, STACK_GPA }, { LOW, LOW_GPA } };

    g_assert_cmpuint(vcpu, ==, 0);
    hypervisor.n_asked++;
    if (hypervisor.is_off) {
        *gpa = gva;
        return true;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(pages) && !hypervisor.is_silent; i++)
        if (gva - pages[i].gva < UPROF_PAGE_BYTES) {
            *gpa = pages[i].gpa + (gva - pages[i].gva) + hypervisor.lie;
            return true;
        }
    return false;
}

/* Maps a page by tables at @root, of 1 << @shift bytes a page and @n_levels levels. */
static void
map(MemoryGuest *guest, uint64_t root, unsigned shift, unsigned bits, uint64_t gva, uint64_t gpa)
{
    const unsigned level_bits = shift - 3;
    const unsigned n_levels = (bits - shift + level_bits - 1) / level_bits;
    uint64_t table = root;

    for (unsigned i = 0; i < n_levels; i++) {
        const unsigned low = shift + (n_levels - 1 - i) * level_bits;
        const unsigned n = MIN(level_bits, bits - low);
        const uint64_t at = table + (gva >> low & ((UINT64_C(1) << n) - 1)) * 8;
        table += TABLE_BYTES;
        memory_guest_put_u64(guest, at, (i + 1 < n_levels ? table : gpa) | 3);
    }
}

static MemoryGuest *
open_guest(void)
{
    const MemoryPlan plan = { .n_vcpus = 1,
                              .grain = UPROF_GRAIN_GUEST,
                              .ram_len = RAM_LEN,
                              .needs_roots = true,
                              .arch = "aarch64" };
    MemoryGuest *guest = memory_guest_open(&plan);

    memset(&hypervisor, 0, sizeof(hypervisor));
    guest->ram_gpa = RAM;
    guest->translation = translate;
    memory_guest_put_u64(guest, STACK_GPA + 0xff0, WORD);
    memory_guest_put_u64(guest, LOW_GPA + 0xff0, WORD + 1);
    return guest;
}

/* Returns: registers of the kernel, with what a search has found */
static UprofRegs
make_regs(const MemoryGuest *guest, uint64_t pc, uint64_t sp)
{
    UprofRegs regs = { .word_bytes = 8, .pc = pc, .sp = sp };

    memcpy(regs.sys, guest->base.found_sys, sizeof(regs.sys));
    return regs;
}

/* A sample: copies a word of the stack, and searches behind the hold. Returns: false if nothing was
 * copied */
static bool
sample(MemoryGuest *guest, UprofMem *mem, uint64_t pc, uint64_t sp, uint64_t *word)
{
    const UprofRegs regs = make_regs(guest, pc, sp);
    const size_t n = uprof_mem_copy(mem, 0, &regs, sp, word, sizeof(*word));

    uprof_mem_check(mem);
    return n == sizeof(*word);
}

/* clang-format off */
static const struct {
    const char *name;
    unsigned shift, bits;
} formats[] = {
    { "4k-48", 12, 48 },
    { "16k-48", 14, 48 },
    { "64k-48", 16, 48 },
};
/* clang-format on */

static void
test_found(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_autoptr(MemoryGuest) guest = open_guest();
    g_autoptr(UprofMem) mem = uprof_mem_new(&guest->base, UPROF_LANE_SAMPLER);
    uint64_t word;

    map(guest, STALE, formats[i].shift, formats[i].bits, CODE, CODE_GPA);
    map(guest, TABLES, formats[i].shift, formats[i].bits, CODE, CODE_GPA);
    map(guest, TABLES, formats[i].shift, formats[i].bits, STACK, STACK_GPA);
    g_assert_false(sample(guest, mem, CODE + 0x10, STACK + 0xff0, &word));
    g_assert_true(sample(guest, mem, CODE + 0x10, STACK + 0xff0, &word));
    g_assert_cmphex(word, ==, WORD);
    g_assert_cmphex(guest->base.found_sys[UPROF_ARM_TTBR1], ==, TABLES);
    /* the lower half has no tables */
    g_assert_false(sample(guest, mem, CODE, LOW + 0xff0, &word));
    g_assert_cmpint(guest->base.resets, ==, 0);
}

/* A root, and the table below it, both translate the addresses. The search finds the root. */
static void
test_highest_table(void)
{
    g_autoptr(MemoryGuest) guest = open_guest();
    g_autoptr(UprofMem) mem = uprof_mem_new(&guest->base, UPROF_LANE_SAMPLER);
    uint64_t word;

    map(guest, OTHER, 12, 48, LOW, LOW_GPA);
    g_assert_false(sample(guest, mem, LOW + 0x10, LOW + 0xff0, &word));
    g_assert_true(sample(guest, mem, LOW + 0x10, LOW + 0xff0, &word));
    g_assert_cmphex(word, ==, WORD + 1);
    g_assert_cmphex(guest->base.found_sys[UPROF_ARM_TTBR0], ==, OTHER);
    g_assert_cmphex(guest->base.found_sys[UPROF_ARM_TCR] & 0x3f, ==, 16);
}

static void
test_both_halves(void)
{
    g_autoptr(MemoryGuest) guest = open_guest();
    g_autoptr(UprofMem) mem = uprof_mem_new(&guest->base, UPROF_LANE_SAMPLER);
    uint64_t word;

    map(guest, OTHER, 12, 39, LOW, LOW_GPA);
    map(guest, TABLES, 12, 48, STACK, STACK_GPA);
    g_assert_false(sample(guest, mem, LOW + 0x10, STACK + 0xff0, &word));
    g_assert_true(sample(guest, mem, LOW + 0x10, STACK + 0xff0, &word));
    g_assert_cmphex(word, ==, WORD);
    g_assert_cmphex(guest->base.found_sys[UPROF_ARM_TTBR0], ==, OTHER);
    g_assert_cmphex(guest->base.found_sys[UPROF_ARM_TTBR1], ==, TABLES);
}

/* Without page tables, addresses are physical. After a reset a guest has none. */
static void
test_reset(void)
{
    g_autoptr(MemoryGuest) guest = open_guest();
    g_autoptr(UprofMem) mem = uprof_mem_new(&guest->base, UPROF_LANE_SAMPLER);
    uint64_t word;

    map(guest, TABLES, 12, 48, CODE, CODE_GPA);
    map(guest, TABLES, 12, 48, STACK, STACK_GPA);
    g_assert_false(sample(guest, mem, CODE, STACK + 0xff0, &word));
    g_assert_true(sample(guest, mem, CODE, STACK + 0xff0, &word));
    memset(guest->ram + (TABLES - RAM), 0, RAM_LEN - (TABLES - RAM));
    hypervisor.is_off = true;
    g_usleep(PAUSE_US);
    g_assert_false(sample(guest, mem, CODE_GPA, STACK_GPA + 0xff0, &word));
    g_assert_true(sample(guest, mem, CODE_GPA, STACK_GPA + 0xff0, &word));
    g_assert_cmphex(word, ==, WORD);
    g_assert_cmpuint(guest->base.found_sys[UPROF_ARM_SCTLR], ==, 0);
    g_assert_cmpint(guest->base.resets, ==, 1);
}

static void
must_not_find(MemoryGuest *guest, UprofMem *mem)
{
    uint64_t word;

    for (unsigned i = 0; i < 3; i++)
        g_assert_false(sample(guest, mem, CODE + 0x10, STACK + 0xff0, &word));
}

static void
test_not_found(void)
{
    g_autoptr(MemoryGuest) guest = open_guest();
    g_autoptr(UprofMem) mem = uprof_mem_new(&guest->base, UPROF_LANE_SAMPLER);

    map(guest, TABLES, 12, 48, CODE, CODE_GPA);
    map(guest, TABLES, 12, 48, STACK, STACK_GPA);
    hypervisor.lie = UPROF_PAGE_BYTES;
    must_not_find(guest, mem);
    /* Searches that fail come with growing pauses. */
    const unsigned n_asked = hypervisor.n_asked;
    must_not_find(guest, mem);
    g_assert_cmpuint(hypervisor.n_asked, ==, n_asked);
}

/* The tables of a process are not the kernel's. */
static void
test_user_mode(void)
{
    g_autoptr(MemoryGuest) guest = open_guest();
    g_autoptr(UprofMem) mem = uprof_mem_new(&guest->base, UPROF_LANE_SAMPLER);
    UprofRegs regs = make_regs(guest, LOW, LOW + 0xff0);
    uint64_t word;

    map(guest, OTHER, 12, 48, LOW, LOW_GPA);
    regs.privilege = 3;
    g_assert_cmpuint(uprof_mem_copy(mem, 0, &regs, regs.sp, &word, sizeof(word)), ==, 0);
    g_assert_true(uprof_mem_check(mem));
    g_assert_cmpuint(hypervisor.n_asked, ==, 0);
}

/* Each page of RAM is a root of the right tables. The reads of a search are limited nevertheless.
 */
static void
test_hostile(void)
{
    enum { ENTRIES_MAX = 200 * 1000 + 1000, BLOCK_SPANS = 256 * 16 + 16 };
    g_autoptr(MemoryGuest) guest = open_guest();
    g_autoptr(UprofMem) mem = uprof_mem_new(&guest->base, UPROF_LANE_SAMPLER);
    const uint64_t in_root = (CODE >> 39 & 511) * 8;
    uint64_t word;

    map(guest, TABLES, 12, 48, CODE, CODE_GPA);
    map(guest, TABLES, 12, 48, STACK, STACK_GPA);
    for (uint64_t page = 0; page < RAM_LEN; page += UPROF_PAGE_BYTES)
        if (page + RAM - TABLES >= 4 * TABLE_BYTES || page + RAM < TABLES)
            memory_guest_put_u64(guest, RAM + page + in_root, (TABLES + TABLE_BYTES) | 3);
    g_assert_false(sample(guest, mem, CODE + 0x10, STACK + 0xff0, &word));
    /* the search may also end by its time */
    g_assert_cmpint(guest->tally->spans, >, 10 * 1000);
    g_assert_cmpint(guest->tally->spans, <=, ENTRIES_MAX + BLOCK_SPANS);
    g_assert_true(sample(guest, mem, CODE + 0x10, STACK + 0xff0, &word));
    g_assert_cmphex(word, ==, WORD);
}

/* While a process runs, the hypervisor says nothing about the kernel: the roots stay, and a search
 * is soon repeated. */
static void
test_silent(void)
{
    g_autoptr(MemoryGuest) guest = open_guest();
    g_autoptr(UprofMem) mem = uprof_mem_new(&guest->base, UPROF_LANE_SAMPLER);
    uint64_t word;

    map(guest, TABLES, 12, 48, CODE, CODE_GPA);
    map(guest, TABLES, 12, 48, STACK, STACK_GPA);
    hypervisor.is_silent = true;
    for (unsigned i = 0; i < 4; i++) {
        g_assert_false(sample(guest, mem, CODE + 0x10, STACK + 0xff0, &word));
        g_usleep(PAUSE_US);
    }
    hypervisor.is_silent = false;
    g_assert_false(sample(guest, mem, CODE + 0x10, STACK + 0xff0, &word));
    g_assert_true(sample(guest, mem, CODE + 0x10, STACK + 0xff0, &word));
    hypervisor.is_silent = true;
    g_usleep(PAUSE_US);
    g_assert_false(sample(guest, mem, CODE + 0x10, STACK + 0x10000, &word));
    g_assert_true(sample(guest, mem, CODE + 0x10, STACK + 0xff0, &word));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(formats); i++) {
        g_autofree char *path = g_strdup_printf("/root-search/found/%s", formats[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_found);
    }
    g_test_add_func("/root-search/highest-table", test_highest_table);
    g_test_add_func("/root-search/both-halves", test_both_halves);
    g_test_add_func("/root-search/reset", test_reset);
    g_test_add_func("/root-search/not-found", test_not_found);
    g_test_add_func("/root-search/user-mode", test_user_mode);
    g_test_add_func("/root-search/hostile", test_hostile);
    g_test_add_func("/root-search/silent", test_silent);
    return g_test_run();
}
