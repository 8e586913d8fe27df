/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "../../../src/mem/mem-priv.h"
#include "memory-guest.h"
#include "uprof/mem.h"

/*
 * By default, tests use 4-level paging, and entry n of the table LAST maps the page at
 * GVA + n x 4096 to the page that the test puts there.
 */
enum {
    PAGE = UPROF_PAGE_BYTES,
    RAM_PAGES = 128,
    ROOT = 0x1000,
    T1 = 0x2000,
    T2 = 0x3000,
    LAST = 0x4000,
    GVA = 0x400000,
    PRESENT = 1,
    DATA_PAGE = 16, /* from this page on, each byte of RAM has the number of its page */
};

static MemoryGuest *
open_guest(bool slow, UprofRegs *regs)
{
    const MemoryPlan plan = {
        .n_vcpus = 1, .grain = UPROF_GRAIN_GUEST, .ram_len = RAM_PAGES * PAGE, .slow_reads = slow
    };
    MemoryGuest *guest = memory_guest_open(&plan);

    memory_guest_put_u64(guest, ROOT, T1 | PRESENT);
    memory_guest_put_u64(guest, T1, T2 | PRESENT);
    memory_guest_put_u64(guest, T2 + 2 * 8, LAST | PRESENT);
    for (unsigned page = DATA_PAGE; page < RAM_PAGES; page++)
        memset(guest->ram + page * PAGE, (int)page, PAGE);
    *regs = (UprofRegs){ .word_bytes = 8 };
    regs->sys[UPROF_X86_CR0] = UPROF_X86_CR0_PG;
    regs->sys[UPROF_X86_CR3] = ROOT;
    regs->sys[UPROF_X86_CR4] = UPROF_X86_CR4_PAE;
    regs->sys[UPROF_X86_EFER] = UPROF_X86_EFER_LMA;
    return guest;
}

static void
map_page(MemoryGuest *guest, unsigned n, unsigned page)
{
    memory_guest_put_u64(guest, LAST + n * 8, (uint64_t)page * PAGE | PRESENT);
}

/* clang-format off */
static const struct {
    const char *name;
    unsigned pages[4]; /* physical page of each virtual one; 0: not mapped */
    unsigned offset;   /* from GVA, where the copy begins */
    unsigned len;
    unsigned got;
    gint spans; /* spans of data in the read */
} copies[] = {
    { "one-byte",           { 20 },             0,    1,        1,            1 },
    { "one-page",           { 20 },             0,    PAGE,     PAGE,         1 },
    { "neighbors-merge",    { 20, 21, 22, 23 }, 0,    4 * PAGE, 4 * PAGE,     1 },
    { "scattered",          { 20, 30, 25, 24 }, 0,    4 * PAGE, 4 * PAGE,     4 },
    { "some-merge",         { 20, 21, 30, 31 }, 0,    4 * PAGE, 4 * PAGE,     2 },
    { "in-mid-page",        { 20, 21 },         100,  PAGE,     PAGE,         1 },
    { "first-missing",      { 0, 21 },          0,    2 * PAGE, 0,            0 },
    { "hole",               { 20, 0, 22 },      0,    3 * PAGE, PAGE,         1 },
    { "hole-after-half",    { 20, 0, 22 },      2048, 3 * PAGE, PAGE - 2048,  1 },
    { "same-page-twice",    { 20, 20 },         0,    2 * PAGE, 2 * PAGE,     2 },
    { "going-down",         { 21, 20 },         0,    2 * PAGE, 2 * PAGE,     2 },
};
/* clang-format on */

static void
test_copy(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    UprofRegs regs;
    g_autoptr(MemoryGuest) guest = open_guest(true, &regs);
    g_autoptr(UprofMem) mem = uprof_mem_new(&guest->base, UPROF_LANE_SAMPLER);
    uint8_t into[4 * PAGE];
    uint64_t gpa, left;

    for (unsigned n = 0; n < 4; n++)
        if (copies[i].pages[n])
            map_page(guest, n, copies[i].pages[n]);
    /* this caches the tables, so that later only data is read */
    uprof_mem_translate(mem, 0, &regs, GVA, &gpa, &left, NULL);
    guest->tally->spans = 0;
    memset(into, 0, sizeof(into));
    g_assert_cmpuint(uprof_mem_copy(mem, 0, &regs, GVA + copies[i].offset, into, copies[i].len), ==,
                     copies[i].got);
    g_assert_cmpint(guest->tally->spans, ==, copies[i].spans);
    for (unsigned at = 0; at < copies[i].got; at++)
        g_assert_cmpuint(into[at], ==, copies[i].pages[(copies[i].offset + at) / PAGE]);
}

/* A copy of neighboring pages ends where the guest's RAM ends. */
static void
test_copy_to_end_of_ram(void)
{
    UprofRegs regs = { .word_bytes = 8 };
    g_autoptr(MemoryGuest) guest = open_guest(false, &regs);
    g_autoptr(UprofMem) mem = uprof_mem_new(&guest->base, UPROF_LANE_SAMPLER);
    const UprofRegs flat = { .word_bytes = 8 };
    uint8_t into[4 * PAGE];

    memset(into, 0, sizeof(into));
    g_assert_cmpuint(
        uprof_mem_copy(mem, 0, &flat, (RAM_PAGES - 2) * PAGE + 100, into, sizeof(into)), ==,
        2 * PAGE - 100);
    g_assert_cmpuint(into[0], ==, RAM_PAGES - 2);
    g_assert_cmpuint(into[2 * PAGE - 101], ==, RAM_PAGES - 1);

    for (unsigned n = 0; n < 4; n++)
        map_page(guest, n, RAM_PAGES - 2 + n);
    g_assert_cmpuint(uprof_mem_copy(mem, 0, &regs, GVA, into, sizeof(into)), ==, 2 * PAGE);
    guest->hole = (RAM_PAGES - 1) * PAGE;
    guest->hole_end = RAM_PAGES * PAGE;
    g_assert_cmpuint(uprof_mem_copy(mem, 0, &regs, GVA, into, sizeof(into)), ==, PAGE);
}

static void
test_copy_wraps(void)
{
    UprofRegs regs;
    g_autoptr(MemoryGuest) guest = open_guest(false, &regs);
    g_autoptr(UprofMem) mem = uprof_mem_new(&guest->base, UPROF_LANE_SAMPLER);
    uint8_t into[2 * PAGE];

    /* the last page of the address space, and the first */
    memory_guest_put_u64(guest, ROOT + 511 * 8, T1 | PRESENT);
    memory_guest_put_u64(guest, T1 + 511 * 8, T2 | PRESENT);
    memory_guest_put_u64(guest, T2 + 511 * 8, LAST | PRESENT);
    memory_guest_put_u64(guest, T2, LAST | PRESENT);
    map_page(guest, 511, 20);
    map_page(guest, 0, 21);
    g_assert_cmpuint(uprof_mem_copy(mem, 0, &regs, UINT64_MAX - 15, into, sizeof(into)), ==, 16);
    g_assert_cmpuint(into[15], ==, 20);
}

static void
test_copy_is_not_kept(void)
{
    UprofRegs regs;
    g_autoptr(MemoryGuest) guest = open_guest(true, &regs);
    g_autoptr(UprofMem) mem = uprof_mem_new(&guest->base, UPROF_LANE_SAMPLER);
    uint8_t byte;

    map_page(guest, 0, 20);
    g_assert_cmpuint(uprof_mem_copy(mem, 0, &regs, GVA, &byte, 1), ==, 1);
    guest->ram[20 * PAGE] = 99;
    g_assert_cmpuint(uprof_mem_copy(mem, 0, &regs, GVA, &byte, 1), ==, 1);
    g_assert_cmpuint(byte, ==, 99);
}

static bool
read_page(UprofMem *mem, const UprofRegs *regs, uint64_t gva, uint8_t *byte)
{
    return uprof_mem_read(mem, 0, regs, gva, byte, 1);
}

static void
test_read_remembers(void)
{
    const UprofRegs flat = { .word_bytes = 8 };
    UprofRegs regs;
    g_autoptr(MemoryGuest) guest = open_guest(false, &regs);
    g_autoptr(UprofMem) mem = uprof_mem_new(&guest->base, UPROF_LANE_WORKER);
    uint8_t byte;

    uprof_mem_begin_sample(mem, 0, 0);
    g_assert_true(read_page(mem, &flat, 20 * PAGE, &byte));
    g_assert_false(
        read_page(mem, &flat, RAM_PAGES * PAGE, &byte)); /* a missing page is cached, too */
    const gint spans = guest->tally->spans;
    guest->ram[20 * PAGE] = 99;
    for (unsigned i = 0; i < 3; i++) {
        uprof_mem_begin_sample(mem, i, 0);
        g_assert_true(read_page(mem, &flat, 20 * PAGE, &byte));
        g_assert_cmpuint(byte, ==, 20);
        g_assert_false(read_page(mem, &flat, RAM_PAGES * PAGE, &byte));
    }
    g_assert_cmpint(guest->tally->spans, ==, spans);
}

static void
test_read_across_pages(void)
{
    UprofRegs regs;
    g_autoptr(MemoryGuest) guest = open_guest(false, &regs);
    g_autoptr(UprofMem) mem = uprof_mem_new(&guest->base, UPROF_LANE_WORKER);
    uint8_t into[2 * PAGE];

    map_page(guest, 0, 30);
    map_page(guest, 1, 20);
    uprof_mem_begin_sample(mem, 0, 0);
    g_assert_true(uprof_mem_read(mem, 0, &regs, GVA + PAGE - 1, into, 2));
    g_assert_cmpuint(into[0], ==, 30);
    g_assert_cmpuint(into[1], ==, 20);
    g_assert_true(uprof_mem_read(mem, 0, &regs, GVA, into, sizeof(into)));
    g_assert_false(uprof_mem_read(mem, 0, &regs, GVA + PAGE, into, PAGE + 1));
}

/* Cached pages are dropped only by the passing time of snapshots, and by resets of the guest. */
static void
test_read_forgets(void)
{
    /* clang-format off */
    static const struct {
        const char *name;
        uint64_t time_ns;
        uint32_t resets;
        bool forgets;
    } steps[] = {
        { "soon",          1,                         0, false },
        { "not-yet",       UPROF_MEM_KEEP_NS - 1,     0, false },
        { "old",           UPROF_MEM_KEEP_NS,         0, true },
        { "again-not-yet", 2 * UPROF_MEM_KEEP_NS - 1, 0, false },
        { "again-old",     2 * UPROF_MEM_KEEP_NS,     0, true },
        { "reset",         2 * UPROF_MEM_KEEP_NS + 1, 1, true },
        { "same-reset",    2 * UPROF_MEM_KEEP_NS + 2, 1, false },
        { "time-goes-back", 0,                        1, true },
    };
    /* clang-format on */
    const UprofRegs flat = { .word_bytes = 8 };
    UprofRegs regs;
    g_autoptr(MemoryGuest) guest = open_guest(false, &regs);
    g_autoptr(UprofMem) mem = uprof_mem_new(&guest->base, UPROF_LANE_WORKER);
    uint8_t byte;

    uprof_mem_begin_sample(mem, 0, 0);
    g_assert_true(read_page(mem, &flat, 20 * PAGE, &byte));
    for (size_t i = 0; i < G_N_ELEMENTS(steps); i++) {
        const gint spans = guest->tally->spans;
        g_test_message("%s", steps[i].name);
        uprof_mem_begin_sample(mem, steps[i].time_ns, steps[i].resets);
        g_assert_true(read_page(mem, &flat, 20 * PAGE, &byte));
        g_assert_cmpint(guest->tally->spans - spans, ==, steps[i].forgets);
    }
    const gint spans = guest->tally->spans;
    uprof_mem_forget(mem);
    g_assert_true(read_page(mem, &flat, 20 * PAGE, &byte));
    g_assert_cmpint(guest->tally->spans, ==, spans + 1);
}

static void
test_read_costs_no_more_than_fresh_max(void)
{
    const UprofRegs flat = { .word_bytes = 8 };
    UprofRegs regs;
    g_autoptr(MemoryGuest) guest = open_guest(false, &regs);
    g_autoptr(UprofMem) mem = uprof_mem_new(&guest->base, UPROF_LANE_WORKER);
    uint8_t byte;

    uprof_mem_begin_sample(mem, 0, 0);
    for (unsigned page = 0; page < UPROF_MEM_FRESH_MAX; page++)
        g_assert_true(read_page(mem, &flat, page * PAGE, &byte));
    g_assert_false(read_page(mem, &flat, UPROF_MEM_FRESH_MAX * PAGE, &byte));
    g_assert_true(read_page(mem, &flat, 0, &byte)); /* a cached page does not count as fresh */
    g_assert_cmpint(guest->tally->spans, ==, UPROF_MEM_FRESH_MAX);
    uprof_mem_begin_sample(mem, 1, 0);
    g_assert_true(read_page(mem, &flat, UPROF_MEM_FRESH_MAX * PAGE, &byte));
    /* uprof_mem_read_always() ignores the limit and leaves the count as it is */
    for (unsigned page = 1; page <= UPROF_MEM_FRESH_MAX; page++)
        g_assert_true(uprof_mem_read_always(mem, 0, &flat, (UPROF_MEM_FRESH_MAX + page) * PAGE,
                                            &byte, sizeof(byte)));
    g_assert_false(uprof_mem_is_spent(mem));
    const gint spans = guest->tally->spans;
    g_assert_true(read_page(mem, &flat, 2 * UPROF_MEM_FRESH_MAX * PAGE, &byte));
    g_assert_cmpint(guest->tally->spans, ==, spans);
}

/* The number of cached pages is bounded, however much of a large guest is read. */
static void
test_read_keeps_no_more_than_pages_max(void)
{
    const UprofRegs flat = { .word_bytes = 8 };
    UprofRegs regs;
    g_autoptr(MemoryGuest) guest = open_guest(false, &regs);
    g_autoptr(UprofMem) mem = uprof_mem_new(&guest->base, UPROF_LANE_WORKER);
    uint8_t byte;

    uprof_mem_begin_sample(mem, 0, 0);
    g_assert_true(read_page(mem, &flat, 20 * PAGE, &byte));
    /* holes are cached like pages */
    for (uint64_t page = RAM_PAGES; page < RAM_PAGES + UPROF_MEM_PAGES_MAX; page++) {
        if (page % UPROF_MEM_FRESH_MAX == 0)
            uprof_mem_begin_sample(mem, 0, 0);
        read_page(mem, &flat, page * PAGE, &byte);
    }
    const gint spans = guest->tally->spans;
    uprof_mem_begin_sample(mem, 0, 0);
    g_assert_true(read_page(mem, &flat, 20 * PAGE, &byte));
    g_assert_cmpint(guest->tally->spans, ==, spans + 1);
}

typedef enum { CHANGE_NONE, CHANGE_USED, CHANGE_UNUSED, CHANGE_FLAGS, CHANGE_GONE } Change;

/* clang-format off */
static const struct {
    const char *name;
    bool slow;
    Change change;
    uint64_t table; /* gpa of the changed entry */
    bool same;
} checks[] = {
    { "nothing",             true,  CHANGE_NONE,   0,          true },
    { "last-level",          true,  CHANGE_USED,   LAST,       false },
    { "root",                true,  CHANGE_USED,   ROOT,       false },
    { "middle",              true,  CHANGE_USED,   T2 + 2 * 8, false },
    { "entry-not-used",      true,  CHANGE_UNUSED, LAST + 8,   true },
    { "accessed-and-dirty",  true,  CHANGE_FLAGS,  LAST,       true },
    { "accessed-on-top",     true,  CHANGE_FLAGS,  ROOT,       true },
    { "table-vanished",      true,  CHANGE_GONE,   LAST,       false },
    { "fast-guest",          false, CHANGE_USED,   LAST,       true },
};
/* clang-format on */

static void
test_check(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    UprofRegs regs;
    g_autoptr(MemoryGuest) guest = open_guest(checks[i].slow, &regs);
    g_autoptr(UprofMem) mem = uprof_mem_new(&guest->base, UPROF_LANE_SAMPLER);
    const uint64_t at = checks[i].table;
    uint8_t byte;
    uint64_t entry;

    map_page(guest, 0, 20);
    g_assert_cmpuint(uprof_mem_copy(mem, 0, &regs, GVA, &byte, 1), ==, 1);
    g_assert_true(uprof_mem_check(mem));
    g_assert_cmpuint(uprof_mem_copy(mem, 0, &regs, GVA, &byte, 1), ==, 1);
    memcpy(&entry, guest->ram + at, sizeof(entry));
    if (checks[i].change == CHANGE_USED || checks[i].change == CHANGE_UNUSED)
        memory_guest_put_u64(guest, at, entry ^ 0x200000);
    if (checks[i].change == CHANGE_FLAGS)
        memory_guest_put_u64(guest, at, entry ^ 0x60);
    if (checks[i].change == CHANGE_GONE) {
        guest->hole = at;
        guest->hole_end = at + PAGE;
    }
    g_assert_cmpint(uprof_mem_check(mem), ==, checks[i].same);
    g_assert_true(uprof_mem_check(mem)); /* no table was used since the last check */
    if (checks[i].slow && checks[i].change == CHANGE_USED && at == LAST) {
        /* the next copy uses the changed entry */
        map_page(guest, 0, 21);
        g_assert_cmpuint(uprof_mem_copy(mem, 0, &regs, GVA, &byte, 1), ==, 1);
        g_assert_cmpuint(byte, ==, 21);
    }
}

/* Of two 4-byte entries in the same 8 bytes, each has its own accessed and dirty bits. */
static void
test_check_narrow(void)
{
    UprofRegs regs = { .word_bytes = 4 };
    UprofRegs unused;
    g_autoptr(MemoryGuest) guest = open_guest(true, &unused);
    g_autoptr(UprofMem) mem = uprof_mem_new(&guest->base, UPROF_LANE_SAMPLER);
    uint8_t byte;

    regs.sys[UPROF_X86_CR0] = UPROF_X86_CR0_PG;
    regs.sys[UPROF_X86_CR3] = 0x5000;
    memory_guest_put_u32(guest, 0x5000, 0x6000 | PRESENT);
    memory_guest_put_u32(guest, 0x6000, 20 * PAGE | PRESENT);
    memory_guest_put_u32(guest, 0x6004, 21 * PAGE | PRESENT);
    for (unsigned n = 0; n < 2; n++) {
        g_assert_cmpuint(uprof_mem_copy(mem, 0, &regs, n * PAGE, &byte, 1), ==, 1);
        g_assert_cmpuint(byte, ==, 20 + n);
        memory_guest_put_u32(guest, 0x6000, 20 * PAGE | PRESENT | 0x60);
        memory_guest_put_u32(guest, 0x6004, 21 * PAGE | PRESENT | (n ? 0x20 : 0x60));
        g_assert_true(uprof_mem_check(mem));
        g_assert_cmpuint(uprof_mem_copy(mem, 0, &regs, n * PAGE, &byte, 1), ==, 1);
        memory_guest_put_u32(guest, 0x6000 + n * 4, (22 + n) * PAGE | PRESENT);
        g_assert_false(uprof_mem_check(mem));
        memory_guest_put_u32(guest, 0x6000 + n * 4, (20 + n) * PAGE | PRESENT);
    }
}

/* With more address spaces than cached tables, changes of tables that were dropped still count. */
static void
test_check_more_tables_than_cached(void)
{
    enum { SPACES = 20 };
    UprofRegs regs;
    g_autoptr(MemoryGuest) guest = open_guest(true, &regs);
    g_autoptr(UprofMem) mem = uprof_mem_new(&guest->base, UPROF_LANE_SAMPLER);
    uint8_t byte;

    /* each space has tables of its own; a shared T1 or T2 would make them one space */
    for (unsigned space = 0; space < SPACES; space++) {
        const uint64_t root = (DATA_PAGE + 4 * space) * PAGE;
        for (unsigned level = 0; level < 3; level++) {
            memset(guest->ram + root + level * PAGE, 0, PAGE);
            memory_guest_put_u64(guest, root + level * PAGE + (level == 2 ? 2 * 8 : 0),
                                 (root + (level + 1) * PAGE) | PRESENT);
        }
        memory_guest_put_u64(guest, root + 3 * PAGE, (uint64_t)(RAM_PAGES - 1) * PAGE | PRESENT);
    }
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned space = 0; space < SPACES; space++) {
            regs.sys[UPROF_X86_CR3] = (DATA_PAGE + 4 * space) * PAGE;
            g_assert_cmpuint(uprof_mem_copy(mem, 0, &regs, GVA, &byte, 1), ==, 1);
            g_assert_cmpuint(byte, ==, RAM_PAGES - 1);
        }
        g_assert_true(uprof_mem_check(mem));
    }
    /* the changed table is used from the cache first, then dropped in favor of others */
    regs.sys[UPROF_X86_CR3] = (DATA_PAGE + 4 * (SPACES - 1)) * PAGE;
    memory_guest_put_u64(guest, regs.sys[UPROF_X86_CR3] + 3 * PAGE, DATA_PAGE * PAGE | PRESENT);
    for (unsigned space = SPACES; space-- > 0;) {
        regs.sys[UPROF_X86_CR3] = (DATA_PAGE + 4 * space) * PAGE;
        g_assert_cmpuint(uprof_mem_copy(mem, 0, &regs, GVA, &byte, 1), ==, 1);
    }
    g_assert_false(uprof_mem_check(mem));
}

/* After the release, the pages that a copy missed are read once, as far as they are mapped. */
static void
test_check_reads_missed(void)
{
    UprofRegs regs = { .word_bytes = 8 };
    g_autoptr(MemoryGuest) guest = open_guest(false, &regs);
    uint8_t into[4 * PAGE];

    guest->base.maps_outside_holds = true;
    guest->base.n_vcpus = 2;
    g_autoptr(UprofMem) mem = uprof_mem_new(&guest->base, UPROF_LANE_SAMPLER);
    for (unsigned n = 0; n < 4; n++)
        map_page(guest, n, DATA_PAGE + n);
    guest->hole = (DATA_PAGE + 1) * PAGE;
    guest->hole_end = (DATA_PAGE + 2) * PAGE;
    g_assert_cmpuint(uprof_mem_copy(mem, 0, &regs, GVA, into, sizeof(into)), ==, PAGE);
    /* the copy for another vCPU ends at an unmapped page */
    g_assert_cmpuint(uprof_mem_copy(mem, 1, &regs, GVA + 3 * PAGE, into, 2 * PAGE), ==, PAGE);
    guest->hole_end = guest->hole;
    gint before = guest->tally->bytes;
    g_assert_true(uprof_mem_check(mem));
    /* four entries in each of four walks, and one byte in each of three pages */
    g_assert_cmpint(guest->tally->bytes, ==, before + 4 * 4 * 8 + 3);

    before = guest->tally->bytes;
    g_assert_true(uprof_mem_check(mem));
    g_assert_cmpint(guest->tally->bytes, ==, before);
    g_assert_cmpuint(uprof_mem_copy(mem, 0, &regs, GVA, into, sizeof(into)), ==, 4 * PAGE);
    before = guest->tally->bytes;
    g_assert_true(uprof_mem_check(mem));
    g_assert_cmpint(guest->tally->bytes, ==, before);
}

/* Reads the pages of each row of copies[] that are complete. */
static void
test_read_pages(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    UprofRegs regs;
    g_autoptr(MemoryGuest) guest = open_guest(true, &regs);
    g_autoptr(UprofMem) mem = uprof_mem_new(&guest->base, UPROF_LANE_WORKER);
    static uint8_t into[4][PAGE];
    UprofMemPage pages[4];

    for (unsigned n = 0; n < 4; n++) {
        if (copies[i].pages[n])
            map_page(guest, n, copies[i].pages[n]);
        pages[n] = (UprofMemPage){ .gva = GVA + n * PAGE, .into = into[n] };
    }
    uprof_mem_read_pages(mem, 0, &regs, pages, 4);
    const gint spans = guest->tally->spans;
    uprof_mem_read_pages(mem, 0, &regs, pages, 4);
    if (copies[i].len == 4 * PAGE)
        g_assert_cmpint(guest->tally->spans - spans, ==, copies[i].spans);
    for (unsigned n = 0; n < 4; n++) {
        g_assert_cmpint(pages[n].is_missing, ==, copies[i].pages[n] == 0);
        if (!pages[n].is_missing)
            g_assert_cmpuint(into[n][PAGE - 1], ==, copies[i].pages[n]);
    }
}

/* A page that is missing leaves its neighbors, with which it would be read together. */
static void
test_read_pages_hole(void)
{
    UprofRegs regs;
    g_autoptr(MemoryGuest) guest = open_guest(false, &regs);
    g_autoptr(UprofMem) mem = uprof_mem_new(&guest->base, UPROF_LANE_WORKER);
    static uint8_t into[3][PAGE];
    UprofMemPage pages[3];

    for (unsigned n = 0; n < 3; n++) {
        map_page(guest, n, 20 + n);
        pages[n] = (UprofMemPage){ .gva = GVA + n * PAGE, .into = into[n] };
    }
    guest->hole = 21 * PAGE;
    guest->hole_end = 22 * PAGE;
    uprof_mem_read_pages(mem, 0, &regs, pages, 3);
    g_assert_false(pages[0].is_missing);
    g_assert_true(pages[1].is_missing);
    g_assert_false(pages[2].is_missing);
    g_assert_cmpuint(into[2][0], ==, 22);
}

/* Pieces are read as they are now, also across pages; a missing page spoils only its piece. */
static void
test_read_pieces(gconstpointer is_slow)
{
    UprofRegs regs;
    g_autoptr(MemoryGuest) guest = open_guest(is_slow != NULL, &regs);
    g_autoptr(UprofMem) mem = uprof_mem_new(&guest->base, UPROF_LANE_WORKER);
    uint8_t near[4], across[4], apart[4], none[4];
    UprofMemPiece pieces[] = {
        { .gva = GVA + 8, .into = near, .len = sizeof(near) },
        { .gva = GVA + PAGE - 2, .into = across, .len = sizeof(across) },
        { .gva = GVA + 2 * PAGE - 2, .into = apart, .len = sizeof(apart) },
        { .gva = GVA + 3 * PAGE - 2, .into = none, .len = sizeof(none) },
    };

    map_page(guest, 0, 20);
    map_page(guest, 1, 21);
    map_page(guest, 2, 30);
    for (unsigned n = 0; n < 2; n++) {
        const gint calls = guest->tally->calls[MEMORY_READ], spans = guest->tally->spans;
        memory_guest_put_u32(guest, 20 * PAGE + 8, n);
        uprof_mem_read_pieces(mem, 0, &regs, pieces, G_N_ELEMENTS(pieces));
        g_assert_cmpuint(near[0], ==, n);
        g_assert_cmpuint(across[0], ==, 20);
        g_assert_cmpuint(across[3], ==, 21);
        g_assert_cmpuint(apart[1], ==, 21);
        g_assert_cmpuint(apart[2], ==, 30);
        for (unsigned i = 0; i < G_N_ELEMENTS(pieces); i++)
            g_assert_cmpint(pieces[i].is_missing, ==, i == 3);
        if (n > 0) {
            g_assert_cmpint(guest->tally->calls[MEMORY_READ] - calls, ==, 1);
            g_assert_cmpint(guest->tally->spans - spans, ==, 5);
        }
    }
}

/* Between the two steps of a read, another one can be made. */
static void
test_begun_pieces(void)
{
    UprofRegs regs;
    g_autoptr(MemoryGuest) guest = open_guest(false, &regs);
    g_autoptr(UprofMem) mem = uprof_mem_new(&guest->base, UPROF_LANE_WORKER);
    uint8_t one[4], other[4], none[4];
    UprofMemPiece begun[] = {
        { .gva = GVA + 8, .into = one, .len = sizeof(one) },
        { .gva = GVA + 3 * PAGE, .into = none, .len = sizeof(none) },
    };
    UprofMemPiece between = { .gva = GVA + PAGE, .into = other, .len = sizeof(other) };

    map_page(guest, 0, 20);
    map_page(guest, 1, 21);
    for (unsigned n = 0; n < 2; n++) {
        uprof_mem_begin_pieces(mem, 0, &regs, begun, G_N_ELEMENTS(begun));
        g_assert_cmpuint(one[0], !=, 20);
        uprof_mem_read_pieces(mem, 0, &regs, &between, 1);
        uprof_mem_end_pieces(mem);
        uprof_mem_end_pieces(mem); /* of nothing */
        g_assert_cmpuint(one[0], ==, 20);
        g_assert_cmpuint(other[0], ==, 21);
        g_assert_false(begun[0].is_missing || between.is_missing);
        g_assert_true(begun[1].is_missing);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(copies); i++) {
        g_autofree char *path = g_strdup_printf("/mem/copy/%s", copies[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_copy);
    }
    g_test_add_func("/mem/copy/to-end-of-ram", test_copy_to_end_of_ram);
    g_test_add_func("/mem/copy/wraps", test_copy_wraps);
    g_test_add_func("/mem/copy/is-not-kept", test_copy_is_not_kept);
    g_test_add_func("/mem/read/remembers", test_read_remembers);
    g_test_add_func("/mem/read/across-pages", test_read_across_pages);
    g_test_add_data_func("/mem/read/pieces", NULL, test_read_pieces);
    g_test_add_data_func("/mem/read/slow-pieces", "slow", test_read_pieces);
    g_test_add_func("/mem/read/begun-pieces", test_begun_pieces);
    g_test_add_func("/mem/read/forgets", test_read_forgets);
    g_test_add_func("/mem/read/fresh-max", test_read_costs_no_more_than_fresh_max);
    g_test_add_func("/mem/read/pages-max", test_read_keeps_no_more_than_pages_max);
    for (size_t i = 0; i < G_N_ELEMENTS(checks); i++) {
        g_autofree char *path = g_strdup_printf("/mem/check/%s", checks[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_check);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(copies); i++) {
        g_autofree char *path = g_strdup_printf("/mem/read-pages/%s", copies[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_read_pages);
    }
    g_test_add_func("/mem/read-pages/hole-in-ram", test_read_pages_hole);
    g_test_add_func("/mem/check/reads-missed", test_check_reads_missed);
    g_test_add_func("/mem/check/narrow", test_check_narrow);
    g_test_add_func("/mem/check/more-tables-than-cached", test_check_more_tables_than_cached);
    uprof_mem_free(NULL);
    return g_test_run();
}
