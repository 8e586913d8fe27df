/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "linux-guest.h"
#include "../../../src/linux/kernel-priv.h"
#include "../../../src/linux/page-cache-priv.h"

enum { PAGE = UPROF_PAGE_BYTES, FILE = 1, N_PAGES = 40 };

#define NOWHERE (LINUX_DIRECT + (UINT64_C(1) << 40))
#define SIBLING(slot) ((uint64_t)(slot) << 2 | 2)

/* A guest whose kernel is known, and pages to read into */
typedef struct {
    LinuxGuest *guest;
    LinuxView *view;
    uint64_t node; /* guest-physical: of the first 64 pages of the file */
    uint8_t bytes[N_PAGES][PAGE];
    UprofFilePage pages[N_PAGES];
} Fixture;

static void
set_up(Fixture *fixture, gconstpointer data)
{
    const LinuxPlan plan = { .more_bytes = 64 * PAGE };

    fixture->guest = linux_guest_new(&plan);
    fixture->view = linux_view_new(fixture->guest);
    fixture->node = fixture->guest->nodes_of_files[FILE];
    linux_view_sample(fixture->view, 0);
    g_assert_true(uprof_linux_offsets(fixture->view->kernel)->has_pages);
}

static void
tear_down(Fixture *fixture, gconstpointer data)
{
    linux_view_free(fixture->view);
    linux_guest_free(fixture->guest);
}

/* Reads @n pages from page @number on. Returns: how many are there */
static unsigned
read_pages(Fixture *fixture, uint64_t number, unsigned n)
{
    const UprofLinux *kernel = fixture->view->kernel;
    const UprofKernelMemory memory = uprof_linux_memory(kernel, fixture->view->mem);
    unsigned n_found = 0;

    uprof_mem_forget(fixture->view->mem);
    for (unsigned i = 0; i < n; i++)
        fixture->pages[i] = (UprofFilePage){ .number = number + i, .into = fixture->bytes[i] };
    uprof_page_cache_read(uprof_linux_offsets(kernel), uprof_linux_maps(kernel), &memory,
                          LINUX_DIRECT + fixture->guest->mappings[FILE], fixture->pages, n);
    for (unsigned i = 0; i < n; i++)
        n_found += !fixture->pages[i].is_missing;
    return n_found;
}

/* Returns: guest-physical address of @n new pages, whose bytes are @first, @first + 1 ... */
static uint64_t
make_pages(Fixture *fixture, unsigned n, uint8_t first)
{
    const uint64_t gpa = linux_guest_alloc(fixture->guest, n * PAGE, PAGE);

    for (unsigned i = 0; i < n; i++)
        memset(fixture->guest->memory->ram + gpa + i * PAGE, first + i, PAGE);
    return gpa;
}

static void
test_pages(Fixture *fixture, gconstpointer data)
{
    const uint64_t gpa = make_pages(fixture, 20, 1);

    for (unsigned i = 0; i < 20; i++)
        if (i != 7)
            linux_guest_cache(fixture->guest, FILE, 3 + i, gpa + i * PAGE);
    g_assert_cmpuint(read_pages(fixture, 3, 20), ==, 19);
    for (unsigned i = 0; i < 20; i++) {
        g_assert_cmpint(fixture->pages[i].is_missing, ==, i == 7);
        if (i != 7)
            g_assert_cmpuint(fixture->bytes[i][PAGE - 1], ==, 1 + i);
    }
    g_assert_cmpuint(read_pages(fixture, 64, 1), ==, 0);
    g_assert_cmpuint(read_pages(fixture, UINT64_MAX, 1), ==, 0);
}

/* Pages that follow each other in memory are read together, and their structs once. */
static void
test_reads(Fixture *fixture, gconstpointer data)
{
    const uint64_t gpa = make_pages(fixture, 16, 1);

    for (unsigned i = 0; i < 16; i++)
        linux_guest_cache(fixture->guest, FILE, i, gpa + i * PAGE);
    read_pages(fixture, 0, 16);
    const gint all = fixture->guest->memory->tally->spans;
    read_pages(fixture, 0, 1);
    const gint one = fixture->guest->memory->tally->spans - all;
    read_pages(fixture, 0, 16);
    /* More page tables, and a second page of structs */
    g_assert_cmpint(fixture->guest->memory->tally->spans - all - one, <=, one + 4);
}

/* ---- Folios ---- */

/* Puts a folio of @n pages at page 8 of the file; the other slots have siblings. */
static uint64_t
make_folio(Fixture *fixture, unsigned n)
{
    const uint64_t gpa = make_pages(fixture, n, 0x10);

    linux_guest_cache(fixture->guest, FILE, 8, gpa);
    for (unsigned i = 1; i < n; i++) {
        linux_guest_put(fixture->guest, fixture->node + NODE_SLOTS + 8 * (8 + i), SIBLING(8));
        linux_guest_put(
            fixture->guest, linux_guest_struct(fixture->guest, gpa + i * PAGE) + PAGE_HEAD,
            LINUX_PAGES + linux_guest_struct(fixture->guest, gpa) - fixture->guest->structs + 1);
    }
    return gpa;
}

static void
test_folio(Fixture *fixture, gconstpointer data)
{
    make_folio(fixture, 8);
    g_assert_cmpuint(read_pages(fixture, 7, 10), ==, 8);
    for (unsigned i = 0; i < 8; i++) {
        g_assert_false(fixture->pages[1 + i].is_missing);
        g_assert_cmpuint(fixture->bytes[1 + i][0], ==, 0x10 + i);
    }
}

/* A node above has the first node in slot 0, and a folio of 64 pages in slot 1. */
static void
test_high_folio(Fixture *fixture, gconstpointer data)
{
    const uint64_t above = linux_guest_alloc(fixture->guest, 0x240, 64);
    const uint64_t gpa = make_folio(fixture, 8);
    const uint64_t page = linux_guest_struct(fixture->guest, gpa);

    fixture->guest->memory->ram[above + NODE_SHIFT] = 6;
    linux_guest_put(fixture->guest, above + NODE_SLOTS, LINUX_DIRECT + fixture->node + 2);
    linux_guest_put(fixture->guest, above + NODE_SLOTS + 8,
                    LINUX_PAGES + page - fixture->guest->structs);
    linux_guest_put(fixture->guest, fixture->guest->mappings[FILE] + MAPPING_HEAD,
                    LINUX_DIRECT + above + 2);
    /* The folio says that it is at page 8. */
    g_assert_cmpuint(read_pages(fixture, 64, 8), ==, 0);
    g_assert_cmpuint(read_pages(fixture, 8, 8), ==, 8);
    linux_guest_put(fixture->guest, page + PAGE_INDEX, 64);
    g_assert_cmpuint(read_pages(fixture, 64, 9), ==, 8);
    g_assert_cmpuint(fixture->bytes[7][0], ==, 0x17);
    g_assert_cmpuint(read_pages(fixture, 8, 8), ==, 0);
    g_assert_cmpuint(read_pages(fixture, 64 * 64, 1), ==, 0);
}

/* ---- Pages that do not belong to the file, and hostile trees ---- */

/* clang-format off */
static const struct {
    const char *name;
    int member;     /* of the struct page of page 5; -1: the slot of page 5; -2: the root */
    uint64_t value;
} wrongs[] = {
    { "another-file",   PAGE_MAPPING, LINUX_DIRECT + 0x1000 },
    { "no-file",        PAGE_MAPPING, 0 },
    { "another-page",   PAGE_INDEX, 6 },
    { "being-read",     PAGE_FLAGS, ~(UINT64_C(1) << PAGE_UPTODATE) },
    { "empty",          -1, 0 },
    { "value",          -1, 0x77 },
    { "retry",          -1, 256 << 2 | 2 },
    { "itself",         -1, SIBLING(5) },
    { "sibling-behind", -1, SIBLING(6) },
    { "sibling-of-page-without-folio", -1, SIBLING(4) },
    { "nowhere",        -1, NOWHERE },
    { "before-all",     -1, LINUX_PAGES - 64 },
    { "between-pages",  -1, LINUX_PAGES + 8 },
    { "without-memory", -1, LINUX_PAGES + (UINT64_C(1) << 20) * 64 },
    { "node-nowhere",   -1, NOWHERE | 2 },
    { "root-nowhere",   -2, NOWHERE | 2 },
    { "root-user",      -2, LINUX_PROGRAM | 2 },
    { "root-last",      -2, UINT64_MAX - 1 },
    { "root-empty",     -2, 0 },
    { "root-page",      -2, LINUX_PAGES },
};
/* clang-format on */

static void
test_wrong(Fixture *fixture, gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    const uint64_t gpa = make_pages(fixture, 8, 1);

    for (unsigned k = 0; k < 8; k++)
        linux_guest_cache(fixture->guest, FILE, k, gpa + k * PAGE);
    g_assert_cmpuint(read_pages(fixture, 5, 1), ==, 1);
    const uint64_t at =
        wrongs[i].member == -1 ? fixture->node + NODE_SLOTS + 8 * 5
        : wrongs[i].member == -2
            ? fixture->guest->mappings[FILE] + MAPPING_HEAD
            : linux_guest_struct(fixture->guest, gpa + 5 * PAGE) + (unsigned)wrongs[i].member;
    linux_guest_put(fixture->guest, at, wrongs[i].value);
    g_assert_cmpuint(read_pages(fixture, 5, 1), ==, 0);
}

/* A node that is its own child, and a child with the shift of its parent. */
static void
test_circles(Fixture *fixture, gconstpointer data)
{
    const uint64_t child = linux_guest_alloc(fixture->guest, 0x240, 64);

    linux_guest_put(fixture->guest, fixture->node + NODE_SLOTS, LINUX_DIRECT + fixture->node + 2);
    g_assert_cmpuint(read_pages(fixture, 0, 1), ==, 0);
    fixture->guest->memory->ram[fixture->node + NODE_SHIFT] = 6;
    g_assert_cmpuint(read_pages(fixture, 0, 1), ==, 0);
    linux_guest_put(fixture->guest, fixture->node + NODE_SLOTS, LINUX_DIRECT + child + 2);
    linux_guest_put(fixture->guest, child + NODE_SLOTS, LINUX_DIRECT + fixture->node + 2);
    g_assert_cmpuint(read_pages(fixture, 0, 1), ==, 0);
    fixture->guest->memory->ram[fixture->node + NODE_SHIFT] = 0xff;
    g_assert_cmpuint(read_pages(fixture, 0, 1), ==, 0);
}

/* The kernel gives the page to another file while the profiler copies it. */
static void
recycle_page(MemoryGuest *memory, MemoryCall call, gint n)
{
    const Fixture *fixture = memory->hook_data;

    if (call == MEMORY_READ && memory->first_gpa == fixture->guest->heads[FILE])
        memory_guest_put_u64(
            memory, linux_guest_struct(fixture->guest, memory->first_gpa) + PAGE_MAPPING, 0);
}

static void
test_recycled(Fixture *fixture, gconstpointer data)
{
    MemoryGuest *memory = fixture->guest->memory;

    g_assert_cmpuint(read_pages(fixture, 0, 1), ==, 1);
    memory->hook = recycle_page;
    memory->hook_data = fixture;
    g_assert_cmpuint(read_pages(fixture, 0, 1), ==, 0);
    memory->hook = NULL;
    linux_guest_cache(fixture->guest, FILE, 0, fixture->guest->heads[FILE]);
    g_assert_cmpuint(read_pages(fixture, 0, 1), ==, 1);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
#define ADD(path, function) g_test_add(path, Fixture, NULL, set_up, function, tear_down)
    ADD("/page-cache/pages", test_pages);
    ADD("/page-cache/reads", test_reads);
    ADD("/page-cache/folio", test_folio);
    ADD("/page-cache/high-folio", test_high_folio);
    ADD("/page-cache/circles", test_circles);
    ADD("/page-cache/recycled", test_recycled);
    for (size_t i = 0; i < G_N_ELEMENTS(wrongs); i++) {
        g_autofree char *path = g_strdup_printf("/page-cache/wrong/%s", wrongs[i].name);
        g_test_add(path, Fixture, GSIZE_TO_POINTER(i), set_up, test_wrong, tear_down);
    }
    return g_test_run();
}
