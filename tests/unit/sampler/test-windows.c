/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "memory-guest.h"
#include "uprof/windows.h"

enum { PAGE = 4096, RAM_PAGES = 64 };

static void
test_learn(void)
{
    UprofWindowSize size;

    uprof_window_size_init(&size);
    g_assert_cmpint(size.wanted, ==, UPROF_WINDOW_BYTES_FIRST);
    for (unsigned i = 0; i < 399; i++)
        uprof_window_size_learn(&size, false, 100);
    g_assert_cmpint(size.wanted, ==, UPROF_WINDOW_BYTES_FIRST);
    uprof_window_size_learn(&size, false, 100);
    g_assert_cmpint(size.wanted, ==, UPROF_WINDOW_BYTES_FIRST / 2);
    for (unsigned i = 0; i < 10; i++) {
        const gint before = size.wanted;
        uprof_window_size_learn(&size, true, 0);
        g_assert_cmpint(size.wanted, ==, MIN(before * 2, UPROF_SNAPSHOT_BYTES_MAX));
    }
    /* shrinks only when stacks have been short for long, and one long stack starts anew */
    for (unsigned i = 0; i < 6000; i++)
        uprof_window_size_learn(&size, false, 100);
    uprof_window_size_learn(&size, false, UPROF_SNAPSHOT_BYTES_MAX / 2);
    for (unsigned i = 0; i < 16 * 400 - 1; i++)
        uprof_window_size_learn(&size, false, 100);
    g_assert_cmpint(size.wanted, ==, UPROF_SNAPSHOT_BYTES_MAX);
    uprof_window_size_learn(&size, false, 100);
    g_assert_cmpint(size.wanted, ==, UPROF_SNAPSHOT_BYTES_MAX / 2);
    for (unsigned i = 0; i < 50000; i++)
        uprof_window_size_learn(&size, false, 0);
    g_assert_cmpint(size.wanted, ==, UPROF_WINDOW_BYTES_MIN);
    /* one that is longer again is cut once */
    uprof_window_size_learn(&size, true, 0);
    g_assert_cmpint(size.wanted, ==, UPROF_WINDOW_BYTES_FIRST);
}

/* clang-format off */
static const struct {
    const char *name;
    uint64_t hole, hole_end; /* pages without memory */
    gint wanted;
    uint64_t sp;
    unsigned n_windows;
    uint64_t gva;
    uint64_t len;
} cases[] = {
    { "plain",              0, 0,   16384, 0x8100,  1, 0x8000,  16384 },
    { "in-mid-page",        0, 0,   16384, 0x8765,  1, 0x8665,  16384 },
    { "all-there-may-be",   0, 0,   65536, 0x8100,  1, 0x8000,  65536 },
    { "guard-page-below",   7, 8,   16384, 0x8010,  1, 0x8000,  16384 },
    { "hole-above",         10, 11, 16384, 0x8100,  1, 0x8000,  0x2000 },
    { "end-of-ram",         0, 0,   16384, 0x3ff00, 1, 0x3fe00, 0x200 },
    { "no-memory",          8, 9,   16384, 0x8100,  0, 0,       0 },
    { "only-below",         8, 9,   16384, 0x8000,  0, 0,       0 },
    { "zero",               0, 0,   16384, 0,       1, 0,       16384 },
    { "nearly-zero",        0, 0,   16384, 8,       1, 0,       16384 },
    { "outside",            0, 0,   16384, 0x80000000, 0, 0,    0 },
};
/* clang-format on */

static void
test_copy(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    const MemoryPlan plan = { .n_vcpus = 1,
                              .grain = UPROF_GRAIN_GUEST,
                              .ram_len = RAM_PAGES * PAGE };
    g_autoptr(MemoryGuest) guest = memory_guest_open(&plan);
    g_autoptr(UprofMem) mem = uprof_mem_new(&guest->base, UPROF_LANE_SAMPLER);
    g_autofree UprofSnapshot *snapshot = g_new0(UprofSnapshot, 1);
    const UprofWindowSize size = { .wanted = cases[i].wanted };

    for (unsigned at = 0; at < guest->ram_len; at++)
        guest->ram[at] = (uint8_t)(at / PAGE + at);
    guest->hole = cases[i].hole * PAGE;
    guest->hole_end = cases[i].hole_end * PAGE;
    snapshot->regs.word_bytes = 8;
    snapshot->regs.sp = cases[i].sp;
    uprof_windows_copy(mem, &size, NULL, snapshot);
    g_assert_cmpuint(snapshot->n_windows, ==, cases[i].n_windows);
    if (snapshot->n_windows == 0)
        return;
    const UprofWindow *window = &snapshot->windows[0];
    g_assert_cmphex(window->gva, ==, cases[i].gva);
    g_assert_cmphex(window->len, ==, cases[i].len);
    g_assert_cmpmem(snapshot->bytes + window->offset, window->len, guest->ram + window->gva,
                    window->len);
}

/* ---- What else belongs to a sample ---- */

enum {
    TASK_AT = 0x30000, /* the pointer to the task that runs */
    TASK = 0x31000,
    IRQ_AT = 0x7ff8, /* the last word of the interrupt stack, which has two pages */
    STACK = 0x10000, /* the task's; of four pages */
    STACK_END = STACK + 0x4000,
    REGS_BYTES = 168,
};

/* Where these are, all addresses are the kernel's but for the user's stack's. */
static UprofLinks *
make_links(void)
{
    UprofLinks *links = g_malloc0(sizeof(UprofLinks) + sizeof(UprofLinksVcpu));

    links->kernel_from = 0x7000;
    links->stack_bytes = 0x4000;
    links->irq_bytes = 0x2000;
    links->regs_bytes = links->regs_len = REGS_BYTES;
    links->regs_cs = 136;
    links->regs_sp = 152;
    links->task_from = 0x100;
    links->task_len = 0x40;
    links->n_vcpus = 1;
    links->vcpus[0] = (UprofLinksVcpu){ .task_at = TASK_AT, .irq_at = IRQ_AT };
    return links;
}

typedef struct {
    uint64_t gva;
    uint64_t len;
} Piece;

enum { PIECES_MAX = UPROF_WINDOWS_MAX };

/* clang-format off */
static const struct {
    const char *name;
    uint8_t privilege;
    uint64_t sp;       /* in a hold */
    uint64_t irq;      /* what the interrupt stack ends with */
    uint64_t cs;       /* in the task's registers */
    uint64_t user_sp;
    uint64_t task;
    Piece pieces[PIECES_MAX];
} links_cases[] = {
    { "kernel",     0, 0x12100, 0,      0,  0,     TASK,
      { { 0x12000, 0x2000 }, { TASK_AT, 8 }, { TASK + 0x100, 0x40 } } },
    { "system-call", 0, 0x12100, 0,     51, 0x900, TASK,
      { { 0x12000, 0x2000 }, { 0x800, 0x4000 }, { TASK_AT, 8 }, { TASK + 0x100, 0x40 } } },
    { "far-from-its-end", 0, 0x10100, 0, 51, 0x900, TASK,
      { { 0x10000, 0x4000 }, { 0x800, 0x4000 }, { TASK_AT, 8 }, { TASK + 0x100, 0x40 } } },
    { "interrupt",  0, 0x7100,  0x13000, 51, 0x900, TASK,
      { { 0x7000, 0x1000 }, { 0x12f00, 0x1100 }, { 0x800, 0x4000 }, { TASK_AT, 8 },
        { TASK + 0x100, 0x40 } } },
    { "interrupt-of-nothing", 0, 0x7100, 0x10, 51, 0x900, TASK,
      { { 0x7000, 0x1000 }, { TASK_AT, 8 }, { TASK + 0x100, 0x40 } } },
    { "user",       3, 0x900,   0,      0,  0,     TASK,
      { { 0x800, 0x4000 }, { TASK_AT, 8 }, { TASK + 0x100, 0x40 } } },
    { "no-task",    3, 0x900,   0,      0,  0,     0,
      { { 0x800, 0x4000 }, { TASK_AT, 8 } } },
    { "task-outside", 3, 0x900, 0,      0,  0,     0x80000000,
      { { 0x800, 0x4000 }, { TASK_AT, 8 } } },
    { "stack-pointer-outside", 0, UINT64_MAX - 8, 0, 0, 0, TASK,
      { { TASK_AT, 8 }, { TASK + 0x100, 0x40 } } },
};
/* clang-format on */

static void
test_links(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    const MemoryPlan plan = { .n_vcpus = 1,
                              .grain = UPROF_GRAIN_GUEST,
                              .ram_len = RAM_PAGES * PAGE };
    g_autoptr(MemoryGuest) guest = memory_guest_open(&plan);
    g_autoptr(UprofMem) mem = uprof_mem_new(&guest->base, UPROF_LANE_SAMPLER);
    g_autofree UprofSnapshot *snapshot = g_new0(UprofSnapshot, 1);
    g_autofree UprofLinks *links = make_links();
    const UprofWindowSize size = { .wanted = 0x4000 };
    unsigned n = 0;

    memory_guest_put_u64(guest, TASK_AT, links_cases[i].task);
    memory_guest_put_u64(guest, IRQ_AT, links_cases[i].irq);
    memory_guest_put_u64(guest, STACK_END - REGS_BYTES + links->regs_cs, links_cases[i].cs);
    memory_guest_put_u64(guest, STACK_END - REGS_BYTES + links->regs_sp, links_cases[i].user_sp);
    snapshot->regs.word_bytes = 8;
    snapshot->regs.sp = links_cases[i].sp;
    snapshot->regs.privilege = links_cases[i].privilege;
    uprof_windows_copy(mem, &size, links, snapshot);
    for (; n < PIECES_MAX && links_cases[i].pieces[n].len > 0; n++) {
        g_assert_cmphex(snapshot->windows[n].gva, ==, links_cases[i].pieces[n].gva);
        g_assert_cmphex(snapshot->windows[n].len, ==, links_cases[i].pieces[n].len);
    }
    g_assert_cmpuint(snapshot->n_windows, ==, n);
}

/* However much of the stacks is wanted, who runs is there. */
static void
test_room(void)
{
    const MemoryPlan plan = { .n_vcpus = 1,
                              .grain = UPROF_GRAIN_GUEST,
                              .ram_len = RAM_PAGES * PAGE };
    g_autoptr(MemoryGuest) guest = memory_guest_open(&plan);
    g_autoptr(UprofMem) mem = uprof_mem_new(&guest->base, UPROF_LANE_SAMPLER);
    g_autofree UprofSnapshot *snapshot = g_new0(UprofSnapshot, 1);
    g_autofree UprofLinks *links = make_links();
    const UprofWindowSize size = { .wanted = UPROF_SNAPSHOT_BYTES_MAX };
    uint8_t part[0x40];

    memory_guest_put_u64(guest, TASK_AT, TASK);
    snapshot->regs.word_bytes = 8;
    snapshot->regs.sp = 0x900;
    snapshot->regs.privilege = 3;
    uprof_windows_copy(mem, &size, links, snapshot);
    g_assert_true(uprof_snapshot_read(snapshot, TASK + 0x100, part, sizeof(part)));
    /* of a vCPU that is not among them there is the stack alone */
    snapshot->n_windows = 0;
    links->n_vcpus = 0;
    uprof_windows_copy(mem, &size, links, snapshot);
    g_assert_cmpuint(snapshot->n_windows, ==, 1);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    g_test_add_func("/windows/learn", test_learn);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/windows/copy/%s", cases[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_copy);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(links_cases); i++) {
        g_autofree char *path = g_strdup_printf("/windows/links/%s", links_cases[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_links);
    }
    g_test_add_func("/windows/room", test_room);
    return g_test_run();
}
