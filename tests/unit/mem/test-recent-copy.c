/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "../../../src/mem/recent-copy-priv.h"
#include "memory-guest.h"

/* Two pages of a stack, in another order in RAM, and their page-table entries. */
enum { PAGE = UPROF_PAGE_BYTES, N_PAGES = 2, RAM_LEN = 16 * PAGE, TABLE = PAGE, SPACE = 5 };

#define STACK UINT64_C(0x7f0000000000)
#define ACCESSED UINT64_C(0x20)

static const uint64_t frames[N_PAGES] = { 9 * PAGE, 4 * PAGE };

typedef struct {
    MemoryGuest *guest;
    UprofWalkCache *walks;
    UprofRecentCopy recent;
    uint8_t bytes[N_PAGES * PAGE];
} Fixture;

static uint64_t
make_entry(unsigned page)
{
    return frames[page] | 1;
}

/* Copies both pages by their walks. The first copy makes the walks; later ones find them cached. */
static void
copy_pages(Fixture *fixture)
{
    UprofSpan spans[N_PAGES + UPROF_CHECK_SPANS_MAX];

    uprof_walk_cache_begin_copy(fixture->walks);
    for (unsigned i = 0; i < N_PAGES; i++) {
        UprofWalk walk = { .frame = frames[i],
                           .page_len = PAGE,
                           .mapped = true,
                           .entry_bytes = 8,
                           .n_entries = 1,
                           .entries = { { TABLE + 16 * i, make_entry(i) } } };
        if (!uprof_walk_cache_find(fixture->walks, SPACE, STACK + i * PAGE, &walk))
            uprof_walk_cache_keep(fixture->walks, SPACE, STACK + i * PAGE, &walk);
        spans[i] = (UprofSpan){ .gpa = walk.frame, .into = fixture->bytes, .len = PAGE };
    }
    const unsigned n_checks = uprof_walk_cache_get_spans(fixture->walks, spans + N_PAGES);
    uprof_guest_read(&fixture->guest->base, UPROF_LANE_SAMPLER, spans, N_PAGES + n_checks);
    uprof_recent_copy_keep(&fixture->recent, fixture->walks, SPACE, STACK, N_PAGES * PAGE, spans,
                           N_PAGES);
    g_assert_true(uprof_walk_cache_check(fixture->walks, spans + N_PAGES, n_checks));
}

static void
set_up(Fixture *fixture)
{
    const MemoryPlan plan = { .n_vcpus = 1, .grain = UPROF_GRAIN_GUEST, .ram_len = RAM_LEN };

    fixture->guest = memory_guest_open(&plan);
    fixture->walks = uprof_walk_cache_new();
    for (uint64_t at = 2 * PAGE; at < RAM_LEN; at += 8)
        memory_guest_put_u64(fixture->guest, at, at);
    for (unsigned i = 0; i < N_PAGES; i++)
        memory_guest_put_u64(fixture->guest, TABLE + 16 * i, make_entry(i));
    copy_pages(fixture);
    copy_pages(fixture);
}

static void
tear_down(Fixture *fixture)
{
    uprof_walk_cache_free(fixture->walks);
    memory_guest_close(fixture->guest);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Fixture, tear_down)

static bool
repeat_copy(Fixture *fixture, uint64_t space, uint64_t gva, size_t len)
{
    memset(fixture->bytes, 0, sizeof(fixture->bytes));
    return uprof_recent_copy_repeat(&fixture->recent, &fixture->guest->base, UPROF_LANE_SAMPLER,
                                    space, gva, fixture->bytes, len);
}

/* Returns: the gpa of the 8 bytes at @offset of the last copy: RAM has its gpa in each word */
static uint64_t
read_source_gpa(const Fixture *fixture, size_t offset)
{
    uint64_t gpa;

    memcpy(&gpa, fixture->bytes + offset, sizeof(gpa));
    return GUINT64_FROM_LE(gpa);
}

/* One read repeats a copy from any address in the same pages. */
static void
test_same_pages(void)
{
    g_auto(Fixture) fixture = { 0 };

    set_up(&fixture);
    const gint before = fixture.guest->tally->calls[MEMORY_READ];
    g_assert_true(repeat_copy(&fixture, SPACE, STACK, N_PAGES * PAGE));
    g_assert_cmphex(read_source_gpa(&fixture, 0), ==, frames[0]);
    g_assert_cmphex(read_source_gpa(&fixture, PAGE), ==, frames[1]);
    g_assert_true(repeat_copy(&fixture, SPACE, STACK + PAGE - 8, 16));
    g_assert_cmphex(read_source_gpa(&fixture, 0), ==, frames[0] + PAGE - 8);
    g_assert_cmphex(read_source_gpa(&fixture, 8), ==, frames[1]);
    g_assert_true(repeat_copy(&fixture, SPACE, STACK + 64, PAGE));
    g_assert_cmphex(read_source_gpa(&fixture, PAGE - 8), ==, frames[1] + 64 - 8);
    g_assert_cmpint(fixture.guest->tally->calls[MEMORY_READ], ==, before + 3);
}

/* Requests for other pages read nothing, and the recent copy stays valid. */
static void
test_other_pages(void)
{
    g_auto(Fixture) fixture = { 0 };

    set_up(&fixture);
    const gint before = fixture.guest->tally->calls[MEMORY_READ];
    g_assert_false(repeat_copy(&fixture, SPACE + 1, STACK, N_PAGES * PAGE));
    g_assert_false(repeat_copy(&fixture, SPACE, STACK - 8, PAGE));
    g_assert_false(repeat_copy(&fixture, SPACE, STACK + PAGE, PAGE));
    g_assert_false(repeat_copy(&fixture, SPACE, STACK, PAGE));
    g_assert_false(repeat_copy(&fixture, SPACE, STACK + 8, N_PAGES * PAGE));
    g_assert_cmpint(fixture.guest->tally->calls[MEMORY_READ], ==, before);
    g_assert_true(repeat_copy(&fixture, SPACE, STACK, N_PAGES * PAGE));
}

static void
test_entry_changed(void)
{
    g_auto(Fixture) fixture = { 0 };

    set_up(&fixture);
    memory_guest_put_u64(fixture.guest, TABLE + 16, make_entry(1) | ACCESSED);
    g_assert_true(repeat_copy(&fixture, SPACE, STACK, N_PAGES * PAGE));
    memory_guest_put_u64(fixture.guest, TABLE + 16, make_entry(0));
    g_assert_false(repeat_copy(&fixture, SPACE, STACK, N_PAGES * PAGE));
    memory_guest_put_u64(fixture.guest, TABLE + 16, make_entry(1));
    g_assert_false(repeat_copy(&fixture, SPACE, STACK, N_PAGES * PAGE));
    copy_pages(&fixture);
    g_assert_true(repeat_copy(&fixture, SPACE, STACK, N_PAGES * PAGE));
}

/* A copy is not repeated if the memory of its data or of its page table is missing. */
static void
test_memory_gone(void)
{
    const uint64_t gone[] = { frames[1], TABLE };

    for (size_t i = 0; i < G_N_ELEMENTS(gone); i++) {
        g_auto(Fixture) fixture = { 0 };
        set_up(&fixture);
        fixture.guest->hole = gone[i];
        fixture.guest->hole_end = gone[i] + PAGE;
        g_assert_false(repeat_copy(&fixture, SPACE, STACK, N_PAGES * PAGE));
    }
}

/* A copy that made its own walks cannot be repeated, and replaces the recent copy. */
static void
test_new_walks(void)
{
    g_auto(Fixture) fixture = { 0 };

    set_up(&fixture);
    uprof_walk_cache_forget(fixture.walks);
    copy_pages(&fixture);
    g_assert_false(repeat_copy(&fixture, SPACE, STACK, N_PAGES * PAGE));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/recent-copy/same-pages", test_same_pages);
    g_test_add_func("/recent-copy/other-pages", test_other_pages);
    g_test_add_func("/recent-copy/entry-changed", test_entry_changed);
    g_test_add_func("/recent-copy/memory-gone", test_memory_gone);
    g_test_add_func("/recent-copy/new-walks", test_new_walks);
    return g_test_run();
}
