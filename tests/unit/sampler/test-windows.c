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
    uprof_windows_copy(mem, &size, snapshot);
    g_assert_cmpuint(snapshot->n_windows, ==, cases[i].n_windows);
    if (snapshot->n_windows == 0)
        return;
    const UprofWindow *window = &snapshot->windows[0];
    g_assert_cmphex(window->gva, ==, cases[i].gva);
    g_assert_cmphex(window->len, ==, cases[i].len);
    g_assert_cmpmem(snapshot->bytes + window->offset, window->len, guest->ram + window->gva,
                    window->len);
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
    return g_test_run();
}
