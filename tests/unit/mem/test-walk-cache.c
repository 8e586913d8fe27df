/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../../src/base/sanitized-priv.h"
#include <string.h>

#include "alloc-watch.h"
#include "memory-guest.h"
#include "uprof/mem.h"

/*
 * Each copy is compared with the copy of another UprofMem (the oracle), whose cache is
 * cleared before. A copy may not allocate.
 *
 * The first MiB of the guest's RAM has the page tables. Above it, each word of 8 bytes has
 * its own gpa.
 */
enum {
    PAGE = UPROF_PAGE_BYTES,
    MIB = 1024 * 1024,
    RAM_LEN = 8 * MIB,
    DATA = MIB,
    ROOT = 0x1000,
    OTHER_ROOT = 0x2000,
    TABLES = 0x3000, /* the first page for further tables */
    LEVELS_MAX = 5,
    COPY_PAGES_MAX = UPROF_SNAPSHOT_BYTES_MAX / PAGE + 1,
    /* two walks for each page, a repeated copy, two others, one copy page by page */
    CALLS_MAX = 2 * COPY_PAGES_MAX * LEVELS_MAX + 4,
};

#define P UINT64_C(0x1)
#define PS UINT64_C(0x80)
#define ACCESSED_DIRTY UINT64_C(0x60)

typedef struct {
    const char *name;
    unsigned levels;
    unsigned index_bits;
    unsigned entry_bytes;
    unsigned large_max; /* highest level of large pages */
    uint64_t cr4, efer;
} Mode;

/* clang-format off */
static const Mode modes[] = {
    { "32-bit",  2, 10, 4, 2, UPROF_X86_CR4_PSE,                      0 },
    { "PAE",     3, 9,  8, 2, UPROF_X86_CR4_PAE,                      0 },
    { "4-level", 4, 9,  8, 3, UPROF_X86_CR4_PAE,                      UPROF_X86_EFER_LMA },
    { "5-level", 5, 9,  8, 3, UPROF_X86_CR4_PAE | UPROF_X86_CR4_LA57, UPROF_X86_EFER_LMA },
};
/* clang-format on */

static const Mode *const four_levels = &modes[2];

typedef struct {
    MemoryGuest *guest;
    UprofMem *mem, *oracle;
    const Mode *mode;
    UprofRegs regs;
    uint64_t next_table;
    uint64_t entries[LEVELS_MAX + 1]; /* gpa by level, of the page that was mapped last */
    uint8_t *got, *wanted;
} Fixture;

static bool in_copy;

static bool
is_in_copy(void)
{
    return in_copy;
}

static UprofRegs
make_regs(const Mode *mode, uint64_t root)
{
    UprofRegs regs = { .word_bytes = 8 };

    regs.sys[UPROF_X86_CR0] = UPROF_X86_CR0_PG;
    regs.sys[UPROF_X86_CR3] = root;
    regs.sys[UPROF_X86_CR4] = mode->cr4;
    regs.sys[UPROF_X86_EFER] = mode->efer;
    return regs;
}

static void
set_up(Fixture *fixture, const Mode *mode, size_t ram_len)
{
    const MemoryPlan plan = { .n_vcpus = 1, .grain = UPROF_GRAIN_GUEST, .ram_len = ram_len };

    *fixture = (Fixture){ .mode = mode, .next_table = TABLES, .regs = make_regs(mode, ROOT) };
    fixture->guest = memory_guest_open(&plan);
    for (uint64_t at = DATA; at < ram_len; at += 8)
        memory_guest_put_u64(fixture->guest, at, at);
    fixture->mem = uprof_mem_new(&fixture->guest->base, UPROF_LANE_SAMPLER);
    /* with slow_reads, the oracle caches complete tables, not the walks that are tested here */
    fixture->guest->base.slow_reads = true;
    fixture->oracle = uprof_mem_new(&fixture->guest->base, UPROF_LANE_SAMPLER);
    fixture->guest->base.slow_reads = false;
    fixture->got = g_malloc0(UPROF_SNAPSHOT_BYTES_MAX);
    fixture->wanted = g_malloc0(UPROF_SNAPSHOT_BYTES_MAX);
    alloc_watch_start(is_in_copy);
}

static void
tear_down(Fixture *fixture)
{
    uprof_mem_free(fixture->mem);
    uprof_mem_free(fixture->oracle);
    g_free(fixture->got);
    g_free(fixture->wanted);
    memory_guest_close(fixture->guest);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Fixture, tear_down)

static gint
count_reads(const Fixture *fixture)
{
    return fixture->guest->tally->calls[MEMORY_READ];
}

/* Returns: the number of reads of the guest */
static gint
copy_window(Fixture *fixture, uint64_t gva, size_t len, size_t *got)
{
    const gint before = count_reads(fixture);

    memset(fixture->got, 0, len);
    in_copy = true;
    *got = uprof_mem_copy(fixture->mem, 0, &fixture->regs, gva, fixture->got, len);
    in_copy = false;
    g_assert_cmpint(alloc_watch_count(), ==, 0);
    g_assert_cmpint(count_reads(fixture) - before, <=, CALLS_MAX);
    return count_reads(fixture) - before;
}

/* Compares a copy with the copy of the oracle. Returns: the number of reads of the guest */
static gint
check_copy(Fixture *fixture, uint64_t gva, size_t len)
{
    size_t got;
    const gint calls = copy_window(fixture, gva, len, &got);

    uprof_mem_forget(fixture->oracle);
    const size_t wanted =
        uprof_mem_copy(fixture->oracle, 0, &fixture->regs, gva, fixture->wanted, len);
    g_assert_cmpmem(fixture->got, got, fixture->wanted, wanted);
    return calls;
}

/* Returns: the gpa of the byte at @offset of the last copy */
static uint64_t
read_source_gpa(const Fixture *fixture, size_t offset)
{
    uint64_t gpa;

    memcpy(&gpa, fixture->got + offset, sizeof(gpa));
    return GUINT64_FROM_LE(gpa);
}

static uint64_t
get_entry(const Fixture *fixture, uint64_t at)
{
    uint64_t entry = 0;

    memcpy(&entry, fixture->guest->ram + at, fixture->mode->entry_bytes);
    return GUINT64_FROM_LE(entry);
}

static void
put_entry(Fixture *fixture, uint64_t at, uint64_t entry)
{
    if (fixture->mode->entry_bytes == 4)
        memory_guest_put_u32(fixture->guest, at, (uint32_t)entry);
    else
        memory_guest_put_u64(fixture->guest, at, entry);
}

static uint64_t
mapped_len(const Mode *mode, unsigned level)
{
    return UINT64_C(1) << (12 + (level - 1) * mode->index_bits);
}

/* Maps the page of @gva to @gpa by an entry of level @leaf, and adds missing tables. */
static void
map_page(Fixture *fixture, uint64_t gva, uint64_t gpa, unsigned leaf)
{
    const Mode *mode = fixture->mode;
    uint64_t table = fixture->regs.sys[UPROF_X86_CR3];

    for (unsigned level = mode->levels; level >= leaf; level--) {
        const uint64_t index = gva / mapped_len(mode, level) & ((1u << mode->index_bits) - 1);
        const uint64_t at = table + index * mode->entry_bytes;
        fixture->entries[level] = at;
        if (level == leaf) {
            put_entry(fixture, at, gpa | P | (leaf > 1 ? PS : 0));
            return;
        }
        if (!(get_entry(fixture, at) & P) || (get_entry(fixture, at) & PS)) {
            put_entry(fixture, at, fixture->next_table | P);
            fixture->next_table += PAGE;
            g_assert_cmphex(fixture->next_table, <=, DATA);
        }
        table = get_entry(fixture, at) & ~UINT64_C(0xfff);
    }
}

/* A stack: five scattered pages of 4096 bytes, or a part of a large page. */
#define STACK (UINT64_C(0x40000000) + DATA)
enum { STACK_LEN = 16 * 1024, STACK_PAGES = 5, STACK_OFFSET = 0x768 };

static uint64_t
stack_page_gpa(unsigned n)
{
    return DATA + (20 + 3 * n) * PAGE;
}

static void
map_stack(Fixture *fixture, unsigned leaf)
{
    if (leaf > 1) {
        map_page(fixture, STACK, 0, leaf);
        return;
    }
    for (unsigned n = STACK_PAGES; n-- > 0;)
        map_page(fixture, STACK + n * PAGE, stack_page_gpa(n), 1);
}

static gint
check_stack(Fixture *fixture)
{
    return check_copy(fixture, STACK + STACK_OFFSET, STACK_LEN);
}

typedef enum {
    CHANGE_NONE,
    CHANGE_FLAGS,
    CHANGE_NEIGHBOR, /* the last entry of the table, which no walk uses */
    CHANGE_UNMAP,
    CHANGE_REMAP,
    CHANGE_TABLE_GONE,
    CHANGE_DATA,
} Change;

/* clang-format off */
static const struct {
    const char *name;
    Change change;
    bool one_read; /* a copy after the change needs only one read */
} changes[] = {
    { "nothing",            CHANGE_NONE,       true },
    { "accessed-and-dirty", CHANGE_FLAGS,      true },
    { "neighbor",           CHANGE_NEIGHBOR,   true },
    { "unmapped",           CHANGE_UNMAP,      false },
    { "remapped",           CHANGE_REMAP,      false },
    { "table-gone",         CHANGE_TABLE_GONE, false },
    { "data",               CHANGE_DATA,       true },
};
/* clang-format on */

/* Changes the entry of @level that leads to the first page of the stack. */
static void
apply_change(Fixture *fixture, Change change, unsigned level, unsigned leaf)
{
    const uint64_t at = fixture->entries[level];
    const uint64_t table = at & ~UINT64_C(0xfff);
    const uint64_t entry = get_entry(fixture, at);

    switch (change) {
    case CHANGE_NONE:
        return;
    case CHANGE_FLAGS:
        put_entry(fixture, at, entry ^ ACCESSED_DIRTY);
        return;
    case CHANGE_NEIGHBOR:
        put_entry(fixture, table + PAGE - fixture->mode->entry_bytes, 0x7000 | P);
        return;
    case CHANGE_UNMAP:
        put_entry(fixture, at, entry & ~P);
        return;
    case CHANGE_REMAP:
        put_entry(fixture, at, 0);
        /* the guest has no memory after the second page of 1 GiB */
        if (leaf == 2)
            map_page(fixture, STACK, mapped_len(fixture->mode, leaf), leaf);
        else
            map_page(fixture, STACK, DATA + PAGE, 1);
        return;
    case CHANGE_TABLE_GONE:
        fixture->guest->hole = table;
        fixture->guest->hole_end = table + PAGE;
        return;
    case CHANGE_DATA:
        memset(fixture->guest->ram + DATA + 2 * PAGE, 0x5a, 2 * MIB);
        return;
    }
}

/* @n_before: copies between the first one and the change; the later ones are repeated copies */
static void
check_change(const Mode *mode, unsigned leaf, unsigned level, size_t i, unsigned n_before)
{
    g_auto(Fixture) fixture = { 0 };

    g_test_message("%s, pages of level %u, entry of level %u, %u copies before", mode->name, leaf,
                   level, n_before);
    set_up(&fixture, mode, RAM_LEN);
    map_stack(&fixture, leaf);
    g_assert_cmpint(check_stack(&fixture), >, 1);
    for (unsigned n = 0; n < n_before; n++)
        g_assert_cmpint(check_stack(&fixture), ==, 1);
    g_assert_cmphex(read_source_gpa(&fixture, 8), ==,
                    (leaf > 1 ? (uint64_t)DATA : stack_page_gpa(0)) + STACK_OFFSET + 8);

    apply_change(&fixture, changes[i].change, level, leaf);
    if (changes[i].one_read)
        g_assert_cmpint(check_stack(&fixture), ==, 1);
    else
        g_assert_cmpint(check_stack(&fixture), >, 1);
    /* an unreadable entry is read again in each copy */
    if (changes[i].change != CHANGE_TABLE_GONE)
        g_assert_cmpint(check_stack(&fixture), ==, 1);
    fixture.guest->hole_end = 0;
    fixture.guest->hole = 0;
    check_stack(&fixture);
    g_assert_cmpint(check_stack(&fixture), ==, 1);
}

/* Applies a change to the entry of each level, in each mode and for each page size. */
static void
test_change(gconstpointer data)
{
    for (size_t m = 0; m < G_N_ELEMENTS(modes); m++)
        for (unsigned leaf = 1; leaf <= modes[m].large_max; leaf++)
            for (unsigned level = leaf; level <= modes[m].levels; level++)
                for (unsigned n_before = 1; n_before <= 3; n_before++)
                    check_change(&modes[m], leaf, level, GPOINTER_TO_SIZE(data), n_before);
}

/* A large page is replaced by small ones elsewhere, and back: walks of the old size are dropped. */
static void
test_split_and_join(void)
{
    for (size_t m = 0; m < G_N_ELEMENTS(modes); m++) {
        for (unsigned leaf = 2; leaf <= modes[m].large_max; leaf++) {
            g_auto(Fixture) fixture = { 0 };
            set_up(&fixture, &modes[m], RAM_LEN);
            for (unsigned round = 0; round < 3; round++) {
                g_test_message("%s, level %u, round %u", modes[m].name, leaf, round);
                map_stack(&fixture, leaf);
                for (unsigned n = 0; n < STACK_PAGES; n++)
                    check_copy(&fixture, STACK + n * PAGE, PAGE);
                /* a recent copy of the old mapping may be tried first */
                g_assert_cmpint(check_stack(&fixture), <=, 2);
                g_assert_cmpint(check_stack(&fixture), ==, 1);
                g_assert_cmphex(read_source_gpa(&fixture, 8), ==, DATA + STACK_OFFSET + 8);
                put_entry(&fixture, fixture.entries[leaf], 0);
                map_stack(&fixture, 1);
                g_assert_cmpint(check_stack(&fixture), >, 1);
                for (unsigned n = 0; n < STACK_PAGES; n++)
                    check_copy(&fixture, STACK + n * PAGE, PAGE);
                /* a recent copy of the old mapping may be tried first */
                g_assert_cmpint(check_stack(&fixture), <=, 2);
                g_assert_cmpint(check_stack(&fixture), ==, 1);
                g_assert_cmphex(read_source_gpa(&fixture, 8), ==,
                                stack_page_gpa(0) + STACK_OFFSET + 8);
            }
        }
    }
}

/* One walk is enough for all addresses of a large page. */
static void
test_large_page_is_walked_once(void)
{
    g_auto(Fixture) fixture = { 0 };

    set_up(&fixture, four_levels, RAM_LEN);
    map_page(&fixture, 0, 0, 2);
    map_page(&fixture, 2 * MIB, 4 * MIB, 2);
    check_copy(&fixture, 2 * MIB - PAGE, 2 * PAGE);
    for (uint64_t gva = DATA; gva < 4 * MIB - UPROF_SNAPSHOT_BYTES_MAX; gva += 61 * PAGE + 123)
        g_assert_cmpint(check_copy(&fixture, gva, UPROF_SNAPSHOT_BYTES_MAX), ==, 1);
}

/* One read has each entry once, and the data, with one span for adjacent pages. */
static void
test_spans(void)
{
    /* clang-format off */
    static const struct {
        const char *name;
        uint64_t gva;
        unsigned n_pages;
        unsigned stride; /* in pages, from the gpa of one page to the next */
        gint spans;
    } cases[] = {
        { "together",      0x400000,           4,  1, 1 + 3 + 1 },
        { "scattered",     0x400000,           5,  2, 5 + 3 + 1 },
        { "longest",       0x400000,           16, 2, 16 + 3 + 1 },
        /* adjacent in RAM: two entries of the upper table, and the ends of the two lower tables */
        { "two-tables",    0x400000 - 2 * PAGE, 4, 1, 1 + 2 + 1 + 2 },
        { "two-of-second", 0x40000000 - PAGE,   2, 1, 1 + 1 + 1 + 2 + 2 },
    };
    /* clang-format on */
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_auto(Fixture) fixture = { 0 };
        g_test_message("%s", cases[i].name);
        set_up(&fixture, four_levels, 2 * MIB);
        for (unsigned n = 0; n < cases[i].n_pages; n++)
            map_page(&fixture, cases[i].gva + n * PAGE, DATA + n * cases[i].stride * PAGE, 1);
        check_copy(&fixture, cases[i].gva, cases[i].n_pages * PAGE);
        const gint before = fixture.guest->tally->spans;
        size_t got;
        g_assert_cmpint(copy_window(&fixture, cases[i].gva, cases[i].n_pages * PAGE, &got), ==, 1);
        g_assert_cmpint(fixture.guest->tally->spans - before, ==, cases[i].spans);
        /* data is read first: a guest could change an entry between its read and the data's */
        g_assert_cmphex(fixture.guest->first_gpa, ==, DATA);
        g_assert_cmpuint(got, ==, cases[i].n_pages * PAGE);
    }
}

/* The longest copy, with the most walks. */
static void
test_longest(void)
{
    for (size_t m = 0; m < G_N_ELEMENTS(modes); m++) {
        g_auto(Fixture) fixture = { 0 };
        set_up(&fixture, &modes[m], 2 * MIB);
        for (unsigned n = 0; n < COPY_PAGES_MAX; n++)
            map_page(&fixture, STACK + n * PAGE, DATA + (COPY_PAGES_MAX - n) * PAGE, 1);
        for (unsigned round = 0; round < 3; round++) {
            const gint calls = check_copy(&fixture, STACK + 1, UPROF_SNAPSHOT_BYTES_MAX);
            g_assert_cmpint(calls, ==, 1 + (round == 0) * COPY_PAGES_MAX * modes[m].levels);
        }
        /* the last copy walks page 0; when its check fails, it walks only the other pages again */
        uprof_mem_forget(fixture.mem);
        check_copy(&fixture, STACK + PAGE, UPROF_SNAPSHOT_BYTES_MAX);
        put_entry(&fixture, fixture.entries[1], DATA | P);
        g_assert_cmpint(check_copy(&fixture, STACK + 1, UPROF_SNAPSHOT_BYTES_MAX), ==,
                        2 + COPY_PAGES_MAX * (gint)modes[m].levels);
    }
}

/* The stack ends within the window: the unmapped page after it is cached, and checked. */
static void
test_end_of_stack(void)
{
    for (size_t m = 0; m < G_N_ELEMENTS(modes); m++) {
        g_auto(Fixture) fixture = { 0 };
        set_up(&fixture, &modes[m], 2 * MIB);
        map_page(&fixture, STACK, DATA, 1);
        check_stack(&fixture);
        g_assert_cmpint(check_stack(&fixture), ==, 1);
        /* the page below is unmapped, too, so that only entries are read */
        check_copy(&fixture, STACK - PAGE, PAGE);
        g_assert_cmpint(check_copy(&fixture, STACK - PAGE, PAGE), ==, 1);
        map_page(&fixture, STACK + PAGE, DATA + 2 * PAGE, 1);
        g_assert_cmpint(check_stack(&fixture), >, 1);
        g_assert_cmpint(check_stack(&fixture), ==, 1);
        g_assert_cmphex(read_source_gpa(&fixture, PAGE - STACK_OFFSET), ==, DATA + 2 * PAGE);
    }
}

/* Missing data does not make the walks invalid. */
static void
test_missing_data(void)
{
    g_auto(Fixture) fixture = { 0 };

    set_up(&fixture, four_levels, 2 * MIB);
    for (unsigned n = 0; n < STACK_PAGES; n++)
        map_page(&fixture, STACK + n * PAGE, DATA + n * PAGE, 1);
    check_stack(&fixture);
    fixture.guest->hole = DATA + 2 * PAGE;
    fixture.guest->hole_end = DATA + 3 * PAGE;
    size_t got;
    g_assert_cmpint(copy_window(&fixture, STACK, STACK_LEN, &got), ==,
                    2); /* all pages at once, then page by page */
    g_assert_cmpuint(got, ==, 2 * PAGE);
    check_stack(&fixture);
}

/* The bytes of a missing span are ignored, even if they equal the cached entry. */
static void
test_missing_entry(void)
{
    g_auto(Fixture) fixture = { 0 };
    size_t got;

    set_up(&fixture, four_levels, 2 * MIB);
    map_page(&fixture, STACK, DATA, 1);
    memset(fixture.guest->ram + fixture.entries[1], 0xa5,
           8); /* the memory guest fills missing spans with this byte */
    copy_window(&fixture, STACK, 8, &got);
    g_assert_cmpint(copy_window(&fixture, STACK, 8, &got), ==, 1);
    fixture.guest->hole = fixture.entries[1] & ~UINT64_C(0xfff);
    fixture.guest->hole_end = fixture.guest->hole + PAGE;
    g_assert_cmpint(copy_window(&fixture, STACK, 8, &got), >, 1);
    g_assert_cmpuint(got, ==, 0);
}

/* Address spaces with equal addresses, and spaces that differ only in the paging mode. */
static void
test_spaces(void)
{
    g_auto(Fixture) fixture = { 0 };

    set_up(&fixture, four_levels, RAM_LEN);
    map_stack(&fixture, 1);
    fixture.regs.sys[UPROF_X86_CR3] = OTHER_ROOT;
    for (unsigned n = 0; n < STACK_PAGES; n++)
        map_page(&fixture, STACK + n * PAGE, DATA + n * PAGE, 1);
    for (unsigned round = 0; round < 6; round++) {
        const bool other = round % 2;
        fixture.regs.sys[UPROF_X86_CR3] = other ? OTHER_ROOT : ROOT;
        fixture.regs.sys[UPROF_X86_CR3] |= round; /* process-context identifier */
        const gint calls = check_stack(&fixture);
        g_assert_cmpint(calls == 1, ==, round >= 2);
        g_assert_cmphex(read_source_gpa(&fixture, 8), ==,
                        (other ? (uint64_t)DATA : stack_page_gpa(0)) + STACK_OFFSET + 8);
    }
    for (unsigned round = 0; round < 3; round++) {
        for (size_t m = 0; m < G_N_ELEMENTS(modes); m++) {
            fixture.regs = make_regs(&modes[m], ROOT);
            check_stack(&fixture);
            check_copy(&fixture, 0, STACK_LEN);
            fixture.regs.sys[UPROF_X86_CR0] = 0;
            check_copy(&fixture, DATA, STACK_LEN);
        }
    }
}

/* Bit 7 of an entry in a 32-bit page directory counts only with CR4.PSE. */
static void
test_space_without_pse(void)
{
    g_auto(Fixture) fixture = { 0 };

    set_up(&fixture, &modes[0], RAM_LEN);
    put_entry(&fixture, ROOT, 0x400000 | PS | P);
    put_entry(&fixture, 0x400000, DATA | P);
    for (unsigned round = 0; round < 3; round++) {
        fixture.regs.sys[UPROF_X86_CR4] = UPROF_X86_CR4_PSE;
        g_assert_cmpint(check_copy(&fixture, 8, 8) == 1, ==, round > 0);
        g_assert_cmphex(read_source_gpa(&fixture, 0), ==, 0x400008);
        fixture.regs.sys[UPROF_X86_CR4] = 0;
        g_assert_cmpint(check_copy(&fixture, 8, 8) == 1, ==, round > 0);
        g_assert_cmphex(read_source_gpa(&fixture, 0), ==, DATA + 8);
    }
}

/* Two cached walks may have different values of the same entry. */
static void
test_entry_of_two_ages(void)
{
    for (unsigned backwards = 0; backwards < 2; backwards++) {
        g_auto(Fixture) fixture = { 0 };
        set_up(&fixture, four_levels, 2 * MIB);
        map_stack(&fixture, 1);
        check_stack(&fixture);
        put_entry(&fixture, fixture.entries[2], 0);
        for (unsigned n = 0; n < STACK_PAGES; n++)
            map_page(&fixture, STACK + n * PAGE, DATA + n * PAGE, 1);
        check_copy(&fixture, STACK + (backwards ? (STACK_PAGES - 1) * PAGE : 0), PAGE);
        g_assert_cmpint(check_stack(&fixture), >, 1);
        g_assert_cmphex(read_source_gpa(&fixture, 8), ==, DATA + STACK_OFFSET + 8);
        g_assert_cmpint(check_stack(&fixture), ==, 1);
    }
}

static void
test_forget(void)
{
    g_auto(Fixture) fixture = { 0 };

    set_up(&fixture, four_levels, 2 * MIB);
    map_stack(&fixture, 1);
    const gint calls = check_stack(&fixture);
    g_assert_cmpint(check_stack(&fixture), ==, 1);
    uprof_mem_forget(fixture.mem);
    g_assert_cmpint(check_stack(&fixture), ==, calls);
    g_assert_cmpint(check_stack(&fixture), ==, 1);
}

/* With more pages and address spaces than fit, the latest ones are cached. */
static void
test_more_than_fits(void)
{
    enum { PAGES = 2000, SPACES = 40 };
    g_auto(Fixture) fixture = { 0 };

    set_up(&fixture, four_levels, RAM_LEN);
    for (unsigned n = 0; n < PAGES; n++)
        map_page(&fixture, STACK + n * PAGE, DATA + n * 7 % (RAM_LEN / PAGE - 256) * PAGE, 1);
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned n = 0; n < PAGES - STACK_PAGES; n++) {
            check_copy(&fixture, STACK + n * PAGE + 8, STACK_LEN);
            g_assert_cmpint(check_copy(&fixture, STACK + n * PAGE + 8, STACK_LEN), ==, 1);
        }
    }
    /* the spaces share the tables below the root: 40 x 5 walks fit, whatever their hashes */
    for (unsigned space = 1; space < SPACES; space++)
        memcpy(fixture.guest->ram + DATA / 2 + space * PAGE, fixture.guest->ram + ROOT, PAGE);
    gint calls = 0;
    for (unsigned round = 0; round < 3; round++) {
        calls = 0;
        for (unsigned space = 1; space < SPACES; space++) {
            fixture.regs.sys[UPROF_X86_CR3] = DATA / 2 + space * PAGE;
            calls += check_stack(&fixture);
        }
    }
    g_assert_cmpint(calls, <, 2 * SPACES);
}

/* A table that maps itself is read as data and as a table. */
static void
test_self_map(void)
{
    g_auto(Fixture) fixture = { 0 };

    set_up(&fixture, four_levels, 2 * MIB);
    map_stack(&fixture, 1);
    put_entry(&fixture, ROOT + 511 * 8, ROOT | P);
    const uint64_t pte = UINT64_C(0xffffff8000000000) + STACK / PAGE * 8;
    const uint64_t root = UINT64_C(0xfffffffffffff000);
    for (unsigned round = 0; round < 4; round++) {
        check_copy(&fixture, pte, STACK_LEN);
        check_copy(&fixture, root, STACK_LEN);
        check_stack(&fixture);
        if (round == 1)
            map_page(&fixture, STACK, DATA, 1);
    }
    g_assert_cmpint(check_copy(&fixture, root, PAGE), ==, 1);
}

/*
 * Random tables that change now and then, with loops, tables as data, large pages and holes.
 * There are few pages and addresses, so that walks repeat.
 */
enum { WILD_PAGES = 12, WILD_LEN = WILD_PAGES * PAGE };

static uint64_t
make_wild_entry(void)
{
    uint64_t entry = (uint64_t)g_test_rand_int_range(0, WILD_PAGES + 1) * PAGE | P;

    if (g_test_rand_int_range(0, 8) == 0)
        entry = PS | P;
    if (g_test_rand_int_range(0, 16) == 0)
        entry &= ~P;
    return entry | ((uint64_t)g_test_rand_int() & ACCESSED_DIRTY);
}

static void
put_wild_entries(Fixture *fixture, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        /* make_wild_gva() uses the lowest and highest indices */
        const uint64_t index = (uint64_t)g_test_rand_int_range(-12, 12) & 511;
        const uint64_t at = (uint64_t)g_test_rand_int_range(0, WILD_PAGES) * PAGE + index * 8;
        memory_guest_put_u64(fixture->guest, at, make_wild_entry() | make_wild_entry() << 32);
        if (g_test_rand_int_range(0, 2))
            memory_guest_put_u64(fixture->guest, at, make_wild_entry());
    }
}

static uint64_t
make_wild_gva(void)
{
    const uint64_t tops[] = { 0, 0, 1, 2, 510, 511 };
    uint64_t gva = 0;

    for (unsigned level = 0; level < LEVELS_MAX; level++)
        gva |= tops[g_test_rand_int_range(0, G_N_ELEMENTS(tops))] << (12 + level * 9);
    if (g_test_rand_int_range(0, 2))
        gva = (uint64_t)((int64_t)(gva << 16) >> 16); /* canonical with four levels */
    else
        gva = (uint64_t)((int64_t)(gva << 7) >> 7);
    return gva + (uint64_t)g_test_rand_int_range(0, PAGE);
}

static void
set_up_wild(Fixture *fixture)
{
    set_up(fixture, four_levels, WILD_LEN);
    put_wild_entries(fixture, 3000);
}

static void
choose_space(Fixture *fixture)
{
    fixture->regs = make_regs(&modes[g_test_rand_int_range(0, G_N_ELEMENTS(modes))],
                              (uint64_t)g_test_rand_int_range(0, 3) * PAGE);
}

static void
test_wild(void)
{
    enum { ROUNDS = IS_SANITIZED ? 10 : 40, COPIES = 500, GVAS = 8 };

    unsigned one_reads = 0;
    for (unsigned round = 0; round < ROUNDS; round++) {
        g_auto(Fixture) fixture = { 0 };
        uint64_t gvas[GVAS];
        set_up_wild(&fixture);
        for (unsigned i = 0; i < GVAS; i++)
            gvas[i] = make_wild_gva();
        for (unsigned i = 0; i < COPIES; i++) {
            if (i % 3 == 0)
                put_wild_entries(&fixture, 2);
            if (i % 20 == 0) {
                fixture.guest->hole = (uint64_t)g_test_rand_int_range(0, 2 * WILD_PAGES) * PAGE;
                fixture.guest->hole_end = fixture.guest->hole + PAGE;
            }
            if (i % 2 == 0)
                choose_space(&fixture);
            const size_t len = (size_t)g_test_rand_int_range(1, UPROF_SNAPSHOT_BYTES_MAX + 1);
            if (check_copy(&fixture, gvas[g_test_rand_int_range(0, GVAS)], len) == 1)
                one_reads++;
        }
    }
    /* many copies needed no walk */
    g_assert_cmpuint(one_reads, >, ROUNDS * COPIES / 10);
}

static void
change_in_read(MemoryGuest *guest, MemoryCall call, gint n)
{
    if (call == MEMORY_READ)
        put_wild_entries(guest->hook_data, 20);
}

/* If tables change between reads, a copy may have any bytes, but it ends. */
static void
test_wild_between_reads(void)
{
    enum { COPIES = IS_SANITIZED ? 2500 : 10000 };
    g_auto(Fixture) fixture = { 0 };
    size_t got;

    set_up_wild(&fixture);
    fixture.guest->hook = change_in_read;
    fixture.guest->hook_data = &fixture;
    for (unsigned i = 0; i < COPIES; i++) {
        choose_space(&fixture);
        copy_window(&fixture, make_wild_gva(), UPROF_SNAPSHOT_BYTES_MAX, &got);
        g_assert_cmpuint(got, <=, UPROF_SNAPSHOT_BYTES_MAX);
    }
}

/* The test's own check: alloc-watch sees an allocation during a copy. */
static void
test_alloc_watch(void)
{
    alloc_watch_start(is_in_copy);
    in_copy = true;
    g_autofree char *seen = g_malloc(100);
    in_copy = false;
    g_assert_nonnull(seen);
    g_assert_cmpint(alloc_watch_count(), ==, 1);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(changes); i++) {
        g_autofree char *path = g_strdup_printf("/walk-cache/change/%s", changes[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_change);
    }
    g_test_add_func("/walk-cache/split-and-join", test_split_and_join);
    g_test_add_func("/walk-cache/large-page-is-walked-once", test_large_page_is_walked_once);
    g_test_add_func("/walk-cache/spans", test_spans);
    g_test_add_func("/walk-cache/longest", test_longest);
    g_test_add_func("/walk-cache/end-of-stack", test_end_of_stack);
    g_test_add_func("/walk-cache/missing-data", test_missing_data);
    g_test_add_func("/walk-cache/missing-entry", test_missing_entry);
    g_test_add_func("/walk-cache/spaces", test_spaces);
    g_test_add_func("/walk-cache/space-without-pse", test_space_without_pse);
    g_test_add_func("/walk-cache/entry-of-two-ages", test_entry_of_two_ages);
    g_test_add_func("/walk-cache/forget", test_forget);
    g_test_add_func("/walk-cache/more-than-fits", test_more_than_fits);
    g_test_add_func("/walk-cache/self-map", test_self_map);
    g_test_add_func("/walk-cache/wild", test_wild);
    g_test_add_func("/walk-cache/wild-between-reads", test_wild_between_reads);
    g_test_add_func("/walk-cache/alloc-watch", test_alloc_watch);
    return g_test_run();
}
