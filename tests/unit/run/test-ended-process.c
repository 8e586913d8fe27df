/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Processes that end before the analysis looks at them: what the sampler copies, the analysis uses.
 */
#include "../../../src/sampler/areas-priv.h"
#include "linux-guest.h"
#include "uprof/copies.h"

#define CODE (LINUX_PROGRAM + 0x1234)
#define LIBRARY_CODE (LINUX_LIBRARY + 0x28010)

enum { PROCESS = 77, LATER_S = 6, TABLE_WORDS = 256, WORD = 8 };

/* clang-format off */
static const struct {
    const char *name;
    LinuxPlan plan;
} guests[] = {
    { "maple-tree",     { 0 } },
    { "red-black-tree", { .is_red_black = true } },
    { "isolation",      { .has_isolation = true } },
    { "xen",            { .is_xen = true } },
};
/* clang-format on */

static void
overwrite(LinuxGuest *guest, uint64_t gpa, size_t len)
{
    for (size_t at = 0; at < len; at += WORD)
        linux_guest_put(guest, gpa + at, UINT64_C(0x6b6b6b6b6b6b6b6b));
}

/* The kernel uses the memory of the process's structures for something else. */
static void
end_process(LinuxGuest *guest, uint64_t mm)
{
    overwrite(guest, mm, MM_BYTES);
    for (unsigned i = 0; i < guest->n_nodes; i++)
        overwrite(guest, guest->nodes[i], UPROF_LINKS_NODE_BYTES);
    for (unsigned i = 0; i < LINUX_AREAS_MAX && guest->areas[i] != 0; i++)
        overwrite(guest, guest->areas[i], AREA_BYTES);
    for (unsigned i = 0; i < LINUX_FILES; i++)
        overwrite(guest, guest->files[i], FILE_ENTRY + WORD);
    for (unsigned i = 0; i < TABLE_WORDS; i++)
        linux_guest_put(guest, guest->process_root + (size_t)i * WORD, 0);
}

/* Takes a sample of the process. @copies: the sampler has seen that the process is new */
static void
begin_sample(LinuxView *view, bool copies)
{
    g_autoptr(UprofMem) mem = uprof_mem_new(&view->guest->memory->base, UPROF_LANE_SAMPLER);

    /* remembered memory is too old now */
    view->time_ns += LATER_S * UINT64_C(1000000000);
    linux_view_begin(view, 0);
    linux_view_copy_task(view, 0);
    if (copies)
        uprof_areas_copy(mem, *uprof_linux_links(view->kernel), view->snapshot);
    g_assert_true((uprof_copies_find(view->snapshot).len > 0) == copies);
}

static void
check_names(LinuxView *view, const char *program, const char *library)
{
    g_assert_cmpstr(linux_view_name(view, CODE), ==, program);
    g_assert_cmpstr(linux_view_name(view, LIBRARY_CODE), ==, library);
}

static void
test_ended(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);

    for (unsigned copies = 0; copies < 2; copies++) {
        g_autoptr(LinuxGuest) guest = linux_guest_new(&guests[i].plan);
        g_autoptr(LinuxView) view = linux_view_new(guest);
        linux_view_sample(view, 0);
        linux_view_sample(view, 0);
        const uint64_t mm = linux_guest_add_mm(guest);
        linux_guest_run(guest, 0, linux_guest_add_task(guest, "sh", PROCESS, mm), false);
        begin_sample(view, copies);
        end_process(guest, mm);
        linux_view_take(view);
        check_names(view, copies ? "[nginx+0x1234]" : "[unknown]",
                    copies ? "[libc.so.6+0x28010]" : "[unknown]");
        /* the sampler copies only with the first sample of a process */
        view->time_ns -= LATER_S * UINT64_C(1000000000);
        begin_sample(view, false);
        linux_view_take(view);
        check_names(view, copies ? "[nginx+0x1234]" : "[unknown]",
                    copies ? "[libc.so.6+0x28010]" : "[unknown]");
    }
}

/* A process that goes on is read from memory where the copies have nothing. */
static void
test_changed(void)
{
    const LinuxPlan plan = { 0 };
    g_autoptr(LinuxGuest) guest = linux_guest_new(&plan);
    g_autoptr(LinuxView) view = linux_view_new(guest);

    linux_view_sample(view, 0);
    linux_view_sample(view, 0);
    const uint64_t mm = linux_guest_add_mm(guest);
    linux_guest_run(guest, 0, linux_guest_add_task(guest, "sh", PROCESS, mm), false);
    const uint64_t flags = linux_guest_get(guest, guest->areas[1] + AREA_FLAGS);
    linux_guest_put(guest, guest->areas[1] + AREA_FLAGS, 0); /* not code yet */
    begin_sample(view, true);
    linux_guest_put(guest, guest->areas[1] + AREA_FLAGS, flags);
    linux_view_take(view);
    check_names(view, "[nginx+0x1234]", "[libc.so.6+0x28010]");
}

/* The memory of a process is read while the process goes on, also if it has mapped more files. */
static void
test_memory(void)
{
    static const struct {
        unsigned type; /* of the node that is the new root; 0: there is no tree */
        bool is_readable;
    } trees[] = { { 3, true }, { 1, true }, { 0, false } };

    for (size_t i = 0; i < G_N_ELEMENTS(trees); i++) {
        const LinuxPlan plan = { 0 };
        g_autoptr(LinuxGuest) guest = linux_guest_new(&plan);
        g_autoptr(LinuxView) view = linux_view_new(guest);
        uint8_t byte;

        linux_view_sample(view, 0);
        linux_view_sample(view, 0);
        const uint64_t mm = linux_guest_add_mm(guest);
        const uint64_t node = guest->nodes[trees[i].type == 1 ? 2 : 0];
        linux_guest_run(guest, 0, linux_guest_add_task(guest, "sh", PROCESS, mm), false);
        begin_sample(view, true);
        linux_guest_put(guest, mm + MM_ROOT,
                        trees[i].type ? linux_guest_entry(node, trees[i].type, true) : 0);
        linux_view_take(view);
        g_assert_true(uprof_space_read(view->space, LINUX_PROGRAM, &byte, 1) ==
                      trees[i].is_readable);
    }
}

/*
 * Trees of a hostile guest: a node whose slots point to the node itself, and to a leaf with an area
 * that is no code, again and again. Such an area takes no room, so only the number of reads ends
 * this.
 */
static void
test_hostile(void)
{
    enum { READS_MAX = 256, SPANS_OF_READ = 6 };
    const LinuxPlan plan = { 0 };
    g_autoptr(LinuxGuest) guest = linux_guest_new(&plan);
    g_autoptr(LinuxView) view = linux_view_new(guest);
    const MemoryTally *tally = guest->memory->tally;
    const uint64_t node = guest->nodes[0], leaf = guest->nodes[2];

    linux_view_sample(view, 0);
    linux_view_sample(view, 0);
    for (unsigned i = 0; i < MAPLE_N_GAP_SLOTS; i++)
        linux_guest_put(guest, node + MAPLE_GAP_SLOTS + (size_t)i * WORD,
                        i % 2 == 0 ? linux_guest_entry(node, 3, false)
                                   : linux_guest_entry(leaf, 1, false));
    for (unsigned i = 0; i + 1 < MAPLE_N_GAP_SLOTS; i++)
        linux_guest_put(guest, node + MAPLE_PIVOTS + (size_t)i * WORD, 1000 + i);
    linux_guest_put(guest, guest->areas[0] + AREA_FLAGS, 0);
    for (unsigned i = 0; i < MAPLE_N_SLOTS; i++)
        linux_guest_put(guest, leaf + MAPLE_SLOTS + (size_t)i * WORD,
                        LINUX_DIRECT + guest->areas[0]);
    for (unsigned i = 0; i + 1 < MAPLE_N_SLOTS; i++)
        linux_guest_put(guest, leaf + MAPLE_PIVOTS + (size_t)i * WORD, 1000 + i);
    const gint before = tally->spans;
    begin_sample(view, true);
    g_assert_cmpint(tally->spans - before, >, READS_MAX);
    g_assert_cmpint(tally->spans - before, <, READS_MAX * SPANS_OF_READ);
    linux_view_take(view);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(guests); i++) {
        g_autofree char *path = g_strdup_printf("/ended-process/%s", guests[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_ended);
    }
    g_test_add_func("/ended-process/changed", test_changed);
    g_test_add_func("/ended-process/memory", test_memory);
    g_test_add_func("/ended-process/hostile", test_hostile);
    return g_test_run();
}
