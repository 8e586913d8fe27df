/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "../../../src/mem/plan-priv.h"
#include "memory-guest.h"

/* Two pages of a stack, which lie in RAM in another order, and the entries of their tables. */
enum { PAGE = UPROF_PAGE_BYTES, N_PAGES = 2, RAM_LEN = 16 * PAGE, TABLE = PAGE, SPACE = 5 };

#define STACK UINT64_C(0x7f0000000000)
#define ACCESSED UINT64_C(0x20)

static const uint64_t frames[N_PAGES] = { 9 * PAGE, 4 * PAGE };

typedef struct {
    MemoryGuest *guest;
    UprofPredict *predict;
    UprofPlan plan;
    uint8_t bytes[N_PAGES * PAGE];
} Fixture;

static uint64_t
entry_of(unsigned page)
{
    return frames[page] | 1;
}

/* A copy of all, from where its walks lead; the first time they are made. */
static void
copy(Fixture *fixture)
{
    UprofSpan spans[N_PAGES + UPROF_PREDICT_SPANS_MAX];

    uprof_predict_begin(fixture->predict);
    for (unsigned i = 0; i < N_PAGES; i++) {
        UprofWalk walk = { .frame = frames[i],
                           .page_len = PAGE,
                           .mapped = true,
                           .entry_bytes = 8,
                           .n_steps = 1,
                           .steps = { { TABLE + 16 * i, entry_of(i) } } };
        if (!uprof_predict_find(fixture->predict, SPACE, STACK + i * PAGE, &walk))
            uprof_predict_keep(fixture->predict, SPACE, STACK + i * PAGE, &walk);
        spans[i] = (UprofSpan){ .gpa = walk.frame, .into = fixture->bytes, .len = PAGE };
    }
    const unsigned n_checks = uprof_predict_spans(fixture->predict, spans + N_PAGES);
    uprof_guest_read(&fixture->guest->base, UPROF_LANE_SAMPLER, spans, N_PAGES + n_checks);
    uprof_plan_keep(&fixture->plan, fixture->predict, SPACE, STACK, N_PAGES * PAGE, spans, N_PAGES);
    g_assert_true(uprof_predict_check(fixture->predict, spans + N_PAGES, n_checks));
}

static void
set_up(Fixture *fixture)
{
    const MemoryPlan plan = { .n_vcpus = 1, .grain = UPROF_GRAIN_GUEST, .ram_len = RAM_LEN };

    fixture->guest = memory_guest_open(&plan);
    fixture->predict = uprof_predict_new();
    for (uint64_t at = 2 * PAGE; at < RAM_LEN; at += 8)
        memory_guest_put_u64(fixture->guest, at, at);
    for (unsigned i = 0; i < N_PAGES; i++)
        memory_guest_put_u64(fixture->guest, TABLE + 16 * i, entry_of(i));
    copy(fixture);
    copy(fixture);
}

static void
tear_down(Fixture *fixture)
{
    uprof_predict_free(fixture->predict);
    memory_guest_close(fixture->guest);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Fixture, tear_down)

static bool
copy_planned(Fixture *fixture, uint64_t space, uint64_t gva, size_t len)
{
    memset(fixture->bytes, 0, sizeof(fixture->bytes));
    return uprof_plan_copy(&fixture->plan, &fixture->guest->base, UPROF_LANE_SAMPLER, space, gva,
                           fixture->bytes, len);
}

/* Returns: where the 8 bytes at @offset of the last copy come from */
static uint64_t
source(const Fixture *fixture, size_t offset)
{
    uint64_t gpa;

    memcpy(&gpa, fixture->bytes + offset, sizeof(gpa));
    return GUINT64_FROM_LE(gpa);
}

/* In one read, from anywhere in the same pages. */
static void
test_same_pages(void)
{
    g_auto(Fixture) fixture = { 0 };

    set_up(&fixture);
    const gint before = fixture.guest->tally->calls[MEMORY_READ];
    g_assert_true(copy_planned(&fixture, SPACE, STACK, N_PAGES * PAGE));
    g_assert_cmphex(source(&fixture, 0), ==, frames[0]);
    g_assert_cmphex(source(&fixture, PAGE), ==, frames[1]);
    g_assert_true(copy_planned(&fixture, SPACE, STACK + PAGE - 8, 16));
    g_assert_cmphex(source(&fixture, 0), ==, frames[0] + PAGE - 8);
    g_assert_cmphex(source(&fixture, 8), ==, frames[1]);
    g_assert_true(copy_planned(&fixture, SPACE, STACK + 64, PAGE));
    g_assert_cmphex(source(&fixture, PAGE - 8), ==, frames[1] + 64 - 8);
    g_assert_cmpint(fixture.guest->tally->calls[MEMORY_READ], ==, before + 3);
}

/* Other pages are not read at all, and the plan stands. */
static void
test_other_pages(void)
{
    g_auto(Fixture) fixture = { 0 };

    set_up(&fixture);
    const gint before = fixture.guest->tally->calls[MEMORY_READ];
    g_assert_false(copy_planned(&fixture, SPACE + 1, STACK, N_PAGES * PAGE));
    g_assert_false(copy_planned(&fixture, SPACE, STACK - 8, PAGE));
    g_assert_false(copy_planned(&fixture, SPACE, STACK + PAGE, PAGE));
    g_assert_false(copy_planned(&fixture, SPACE, STACK, PAGE));
    g_assert_false(copy_planned(&fixture, SPACE, STACK + 8, N_PAGES * PAGE));
    g_assert_cmpint(fixture.guest->tally->calls[MEMORY_READ], ==, before);
    g_assert_true(copy_planned(&fixture, SPACE, STACK, N_PAGES * PAGE));
}

static void
test_entry_changed(void)
{
    g_auto(Fixture) fixture = { 0 };

    set_up(&fixture);
    memory_guest_put_u64(fixture.guest, TABLE + 16, entry_of(1) | ACCESSED);
    g_assert_true(copy_planned(&fixture, SPACE, STACK, N_PAGES * PAGE));
    memory_guest_put_u64(fixture.guest, TABLE + 16, entry_of(0));
    g_assert_false(copy_planned(&fixture, SPACE, STACK, N_PAGES * PAGE));
    memory_guest_put_u64(fixture.guest, TABLE + 16, entry_of(1));
    g_assert_false(copy_planned(&fixture, SPACE, STACK, N_PAGES * PAGE));
    copy(&fixture);
    g_assert_true(copy_planned(&fixture, SPACE, STACK, N_PAGES * PAGE));
}

/* Without its data, or its tables. */
static void
test_memory_gone(void)
{
    const uint64_t gone[] = { frames[1], TABLE };

    for (size_t i = 0; i < G_N_ELEMENTS(gone); i++) {
        g_auto(Fixture) fixture = { 0 };
        set_up(&fixture);
        fixture.guest->hole = gone[i];
        fixture.guest->hole_end = gone[i] + PAGE;
        g_assert_false(copy_planned(&fixture, SPACE, STACK, N_PAGES * PAGE));
    }
}

/* What has walked itself plans nothing, and takes an older plan's place. */
static void
test_walked(void)
{
    g_auto(Fixture) fixture = { 0 };

    set_up(&fixture);
    uprof_predict_forget(fixture.predict);
    copy(&fixture);
    g_assert_false(copy_planned(&fixture, SPACE, STACK, N_PAGES * PAGE));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/plan/same-pages", test_same_pages);
    g_test_add_func("/plan/other-pages", test_other_pages);
    g_test_add_func("/plan/entry-changed", test_entry_changed);
    g_test_add_func("/plan/memory-gone", test_memory_gone);
    g_test_add_func("/plan/walked", test_walked);
    return g_test_run();
}
