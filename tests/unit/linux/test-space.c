/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../../src/linux/space-priv.h"
#include "../../../src/mem/mem-priv.h"
#include "build-jitdump.h"
#include "build-mapped.h"
#include "linux-guest.h"
#include "symbol-elf.h"

#define SECOND UINT64_C(1000000000)
#define CODE (LINUX_PROGRAM + 0x1234)
#define LIBRARY_CODE (LINUX_LIBRARY + 0x28010)
#define NOWHERE (LINUX_DIRECT + (UINT64_C(1) << 40))

enum { PAGE = 4096 };

/* Returns: a view of @guest, whose kernel and running process are known */
static LinuxView *
view_process(LinuxGuest *guest)
{
    LinuxView *view = linux_view_new(guest);

    linux_view_sample(view, 0);
    linux_view_sample(view, 0);
    g_assert_true(uprof_space_has_process(view->space));
    return view;
}

static void
check_name(LinuxView *view, uint64_t pc, const char *name)
{
    g_assert_cmpstr(linux_view_name(view, pc), ==, name);
}

/* The structure that a case changes */
typedef enum {
    IN_ROOT,
    IN_NODE,
    IN_LEAF,
    IN_AREA,
    IN_FILE,
    IN_ENTRY,
    IN_LIBRARY,
    IN_MOUNT,
} Structure;

static uint64_t
find_structure(const LinuxGuest *guest, Structure structure)
{
    switch (structure) {
    case IN_ROOT:
        return guest->mm + MM_ROOT;
    case IN_NODE:
        return guest->nodes[0];
    case IN_LEAF:
        return guest->nodes[2];
    case IN_AREA:
        return guest->areas[1];
    case IN_FILE:
        return guest->files[0];
    case IN_LIBRARY:
        return guest->files[1];
    case IN_MOUNT:
        return guest->mount;
    default:
        return linux_guest_get(guest, guest->files[0] + FILE_ENTRY) - LINUX_DIRECT;
    }
}

/* ---- Mapped areas of a process ---- */

static const LinuxArea few[] = {
    { LINUX_PROGRAM + 0x1000, LINUX_PROGRAM + 0x4000, 1, 1, true },
    { LINUX_LIBRARY + 0x28000, LINUX_LIBRARY + 0x30000, 0x28, 2, true },
};

/* clang-format off */
static const struct {
    const char *name;
    LinuxPlan plan;
    bool in_kernel;
} guests[] = {
    { "maple-tree",      { 0 } },
    { "red-black-tree",  { .is_red_black = true } },
    { "hot",             { .has_hot = true } },
    { "few-areas",       { .areas = few, .n_areas = G_N_ELEMENTS(few) } },
    { "one-area",        { .areas = few, .n_areas = 1 } },
    { "isolation",       { .has_isolation = true } },
    { "xen",             { .is_xen = true } },
    { "xen-in-kernel",   { .is_xen = true }, true },
    { "in-kernel",       { 0 }, true },
    { "isolation-in-kernel", { .has_isolation = true }, true },
};
/* clang-format on */

static void
test_areas(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_autoptr(LinuxGuest) guest = linux_guest_new(&guests[i].plan);
    const bool has_library = guests[i].plan.n_areas != 1;

    linux_guest_run(guest, 0, guest->task, guests[i].in_kernel);
    g_autoptr(LinuxView) view = view_process(guest);
    check_name(view, CODE, "[nginx+0x1234]");
    check_name(view, LIBRARY_CODE, has_library ? "[libc.so.6+0x28010]" : "[unknown]");
    /* the first and the last byte of an area */
    check_name(view, LINUX_PROGRAM + 0x1000, "[nginx+0x1000]");
    check_name(view, LINUX_PROGRAM + 0x3fff, "[nginx+0x3fff]");
    check_name(view, LINUX_PROGRAM + 0x4000, "[unknown]");
    check_name(view, LINUX_PROGRAM - 1, "[unknown]");
    /* code in no file, unmapped addresses, and the kernel */
    check_name(view, LINUX_ANONYMOUS + 0x10, "[unknown]");
    check_name(view, 0, "[unknown]");
    check_name(view, UINT64_MAX >> 1, "[unknown]");
    check_name(view, LINUX_IMAGE + 0x58, "function_0005_[k]");
    g_assert_cmphex(uprof_space_symbol_address(view->space, LINUX_IMAGE + 0x58), ==,
                    LINUX_IMAGE + 0x58);
    /* the second time from the remembered area, without a read */
    const gint before = guest->memory->tally->spans;
    check_name(view, CODE, "[nginx+0x1234]");
    g_assert_cmpint(guest->memory->tally->spans, ==, before);
}

/* ---- Files of this host ---- */

enum { FIRST = 0x1000, TEXT = FIRST + 0x28000 }; /* the start of the library and of its code */

/* Puts the library at @path in a new folder. Returns: (transfer full): the folder */
static char *
make_folder_of(const char *path, uint64_t first, uint64_t text_gva)
{
    const ElfSymbol symbols[] = { { "malloc", text_gva, 0x40, true } };
    static const char note[] = "\4\0\0\0\x08\0\0\0\3\0\0\0GNU\0\xa1\xa1\xa1\xa1\xa1\xa1\xa1\xa1";
    static const uint8_t text[0x100];
    const ElfExtra extra = { ".note.gnu.build-id", 7, 2, 0x40000, note, sizeof(note) - 1 };
    const ElfPlan plan = { .entry = text_gva,
                           .text_gva = text_gva,
                           .text = text,
                           .text_len = sizeof(text),
                           .symbols = symbols,
                           .n_symbols = G_N_ELEMENTS(symbols),
                           .extras = &extra,
                           .n_extras = 1 };
    g_autoptr(GByteArray) file = symbol_elf_new(&plan);
    symbol_elf_map(file, first, note, sizeof(note) - 1);
    char *folder = g_dir_make_tmp("uprof-test-XXXXXX", NULL);
    g_autofree char *at = g_build_filename(folder, path, NULL);
    g_autofree char *within = g_path_get_dirname(at);

    g_assert_cmpint(g_mkdir_with_parents(within, 0700), ==, 0);
    g_assert_true(g_file_set_contents(at, (const char *)file->data, (gssize)file->len, NULL));
    return folder;
}

static char *
make_folder(const char *path)
{
    return make_folder_of(path, FIRST, TEXT);
}

static void
remove_folder(const char *folder, const char *path)
{
    g_autofree char *at = g_build_filename(folder, path, NULL);

    while (g_str_has_prefix(at, folder)) {
        g_assert_cmpint(g_remove(at), ==, 0);
        *strrchr(at, '/') = '\0';
    }
}

/* Distributions name debug files by the build-id like this. */
static const char by_id[] = ".build-id/a1/a1a1a1a1a1a1a1";

/* Changes in the tree of a file's cached pages; @is_known: the build-id is still found */
static const struct {
    const char *name;
    uint64_t head; /* of the tree; 0: unchanged */
    uint64_t slot; /* of the first page; 0: unchanged */
    bool is_known;
} cached_pages[] = {
    { "in-a-node", 0, 0, true },
    { "nowhere", NOWHERE | 2, 0, false },
    { "user-space", LINUX_PROGRAM | 2, 0, false },
    { "last-address", UINT64_MAX - 1, 0, false },
    { "a-value", 0, 0x77, false },
    { "none", 0, LINUX_PAGES + (UINT64_C(1) << 39) * 64, false },
    { "before-all", 0, LINUX_PAGES - 64, false },
    { "without-memory", 0, LINUX_PAGES + (UINT64_C(1) << 20) * 64, false },
    { "another", 0, LINUX_PAGES + 64, false },
};

static void
test_cached_pages(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_autoptr(LinuxGuest) guest = linux_guest_new(&(LinuxPlan){ 0 });
    g_autoptr(LinuxView) view = linux_view_new(guest);
    g_autofree char *folder = make_folder(by_id);
    const char *const folders[] = { folder, NULL };
    const uint64_t mapping = linux_guest_get(guest, guest->files[1] + FILE_MAPPING) - LINUX_DIRECT;
    const uint64_t node = linux_guest_get(guest, mapping + MAPPING_HEAD) - LINUX_DIRECT - 2;

    if (cached_pages[i].head)
        linux_guest_put(guest, mapping + MAPPING_HEAD, cached_pages[i].head);
    if (cached_pages[i].slot)
        linux_guest_put(guest, node + NODE_SLOTS, cached_pages[i].slot);
    uprof_sym_configure(view->sym, &(UprofSymConfig){ .debug_folders = folders });
    linux_view_sample(view, 0);
    linux_view_sample(view, 0);
    check_name(view, LIBRARY_CODE, cached_pages[i].is_known ? "malloc" : "[libc.so.6+0x28010]");
    remove_folder(folder, by_id);
}

/* A tree of one page without a node, a node that has itself as a child, and a bad page pointer. */
static void
test_cached_trees(void)
{
    enum { PAGE_ALONE, NODE_ALONE, BETWEEN_PAGES, N_ROUNDS };
    g_autoptr(LinuxGuest) guest = linux_guest_new(&(LinuxPlan){ 0 });
    g_autofree char *folder = make_folder(by_id);
    const char *const folders[] = { folder, NULL };
    const uint64_t mapping = linux_guest_get(guest, guest->files[1] + FILE_MAPPING) - LINUX_DIRECT;
    const uint64_t head = linux_guest_get(guest, mapping + MAPPING_HEAD);
    const uint64_t node = head - LINUX_DIRECT - 2;
    const uint64_t page = linux_guest_get(guest, node + NODE_SLOTS);

    for (unsigned round = 0; round < N_ROUNDS; round++) {
        g_autoptr(LinuxView) view = linux_view_new(guest);
        linux_guest_put(guest, mapping + MAPPING_HEAD, round == PAGE_ALONE ? page : head);
        linux_guest_put(guest, node + NODE_SLOTS, round == NODE_ALONE ? head : page + 8);
        uprof_sym_configure(view->sym, &(UprofSymConfig){ .debug_folders = folders });
        linux_view_sample(view, 0);
        linux_view_sample(view, 0);
        check_name(view, LIBRARY_CODE, round == PAGE_ALONE ? "malloc" : "[libc.so.6+0x28010]");
    }
    remove_folder(folder, by_id);
}

/* Files are found in a sysroot by their paths in the guest. */
static const struct {
    const char *name;
    const char *file; /* path below the sysroot */
    Structure structure;
    uint64_t at, word; /* the changed word; 0: unchanged */
    bool is_found;
} paths[] = {
    { "unchanged", "lib/libc.so.6", IN_ROOT, 0, 0, true },
    { "elsewhere", "lib/libd.so.6", IN_ROOT, 0, 0, false },
    { "no-mount", "lib/libc.so.6", IN_LIBRARY, FILE_MOUNT, LINUX_PROGRAM, false },
    { "mount-nowhere", "lib/libc.so.6", IN_MOUNT, MOUNT_PARENT, NOWHERE, false },
    { "mount-null", "lib/libc.so.6", IN_MOUNT, MOUNT_PARENT, 1, false },
    { "another-root", "lib/libc.so.6", IN_MOUNT, MOUNT_PART + MOUNT_PART_ROOT, NOWHERE, true },
};

static void
test_paths(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_autoptr(LinuxGuest) guest = linux_guest_new(&(LinuxPlan){ 0 });
    g_autoptr(LinuxView) view = linux_view_new(guest);
    g_autofree char *folder = make_folder(paths[i].file);
    const char *const folders[] = { folder, NULL };

    if (paths[i].word)
        linux_guest_put(guest, find_structure(guest, paths[i].structure) + paths[i].at,
                        paths[i].word);
    uprof_sym_configure(view->sym, &(UprofSymConfig){ .sysroots = folders });
    linux_view_sample(view, 0);
    linux_view_sample(view, 0);
    check_name(view, LIBRARY_CODE, paths[i].is_found ? "malloc" : "[libc.so.6+0x28010]");
    remove_folder(folder, paths[i].file);
}

/* ---- A file that is mapped twice ---- */

static void
test_mapped_twice(void)
{
    static const LinuxArea areas[] = {
        { LINUX_LIBRARY + 0x28000, LINUX_LIBRARY + 0x30000, 0x28, 2, true },
        { LINUX_LIBRARY + 0x128000, LINUX_LIBRARY + 0x130000, 0x28, 2, true },
        { LINUX_ANONYMOUS, LINUX_ANONYMOUS + 0x2000, 0, 0, true },
    };
    g_autoptr(LinuxGuest) guest = linux_guest_new(&(LinuxPlan){ .areas = areas, .n_areas = 3 });
    const uint64_t task = linux_guest_add_task(guest, "other", 77, linux_guest_add_mm(guest));
    g_autoptr(LinuxView) view = view_process(guest);

    const uint64_t symbol_address = uprof_space_symbol_address(view->space, LIBRARY_CODE);
    const uint64_t anonymous = uprof_space_symbol_address(view->space, LINUX_ANONYMOUS + 0x10);
    g_assert_cmphex(symbol_address, <, UINT64_C(1) << 57);
    g_assert_cmphex(uprof_space_symbol_address(view->space, LIBRARY_CODE + 0x100000), ==,
                    symbol_address);
    /* another process has the same addresses for the file, but others for code in no file */
    linux_guest_run(guest, 0, task, false);
    linux_view_sample(view, 0);
    linux_view_sample(view, 0);
    g_assert_cmphex(uprof_space_symbol_address(view->space, LIBRARY_CODE), ==, symbol_address);
    g_assert_cmphex(uprof_space_symbol_address(view->space, LINUX_ANONYMOUS + 0x10), !=, anonymous);
}

/* ---- Page tables of the running process ---- */

/* clang-format off */
static const struct {
    const char *name;
    bool has_isolation;
    bool in_kernel;
    uint64_t pc;    /* offset in the kernel */
    int root;       /* CR3, in pages from the root of the process; -1: the kernel's root */
    bool has_process;
} roots[] = {
    { "own",             false, true,  0x58,  0,  true },
    { "kernel-root",       false, true,  0x58,  -1, false },
    { "another",         false, true,  0x58,  2,  false },
    { "user-mode",       false, false, 0,     0,  true },
    { "user-mode-another",     false, false, 0,     2,  false },
    { "isolated",        true,  false, 0,     1,  true },
    { "isolated-kernel", true,  true,  0x58,  0,  true },
    { "isolated-entry",  true,  true,  LINUX_ENTRY + 4, 1, true },
    { "isolated-wrong-root",    true,  true,  0x58,  1,  false },
};
/* clang-format on */

static void
test_roots(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_autoptr(LinuxGuest) guest =
        linux_guest_new(&(LinuxPlan){ .has_isolation = roots[i].has_isolation });
    g_autoptr(LinuxView) view = view_process(guest);
    UprofRegs *regs = &guest->memory->regs[0];

    linux_guest_run(guest, 0, guest->task, roots[i].in_kernel);
    if (roots[i].in_kernel)
        regs->pc = LINUX_IMAGE + roots[i].pc;
    regs->sys[UPROF_X86_CR3] =
        roots[i].root < 0 ? guest->root : guest->process_root + (uint64_t)roots[i].root * PAGE;
    linux_view_sample(view, 0);
    g_assert_cmpint(uprof_space_has_process(view->space), ==, roots[i].has_process);
    check_name(view, LINUX_IMAGE + 0x58, "function_0005_[k]");
    if (!roots[i].has_process)
        check_name(view, CODE, "[unknown]");
}

/* Kernel threads have no address space of their own. */
static void
test_kernel_thread(void)
{
    g_autoptr(LinuxGuest) guest = linux_guest_new(&(LinuxPlan){ 0 });
    const uint64_t task = linux_guest_add_task(guest, "kworker/0:1", 9, 0);
    g_autoptr(LinuxView) view = view_process(guest);
    UprofLinuxTask found;

    linux_guest_run(guest, 0, task, true);
    linux_view_sample(view, 0);
    g_assert_true(uprof_linux_task(view->kernel, view->snapshot, &found));
    g_assert_cmpstr(found.name, ==, "kworker/0:1");
    g_assert_false(uprof_space_has_process(view->space));
    check_name(view, CODE, "[unknown]");
}

/* ---- Malformed structures ---- */

/* The most reads that a malformed structure may cost */
enum { READS_MAX = UPROF_MEM_FRESH_MAX + UPROF_MEM_MORE_MAX };

/* The value of the changed word: a number, or a pointer to one of these structures */
enum { WORD, TO_ROOT, TO_NODE, TO_LEAF, TO_ITSELF };

/* clang-format off */
static const struct {
    const char *name;
    Structure structure;
    uint64_t at;       /* offset in that structure */
    unsigned pointer;  /* WORD to TO_ITSELF */
    uint64_t word;     /* added to it */
    bool is_red_black;
    const char *name_of_code; /* with the change */
} malformed[] = {
    { "root-null",          IN_ROOT, 0, WORD, 0, false, "[unknown]" },
    { "root-nowhere",       IN_ROOT, 0, WORD, NOWHERE | 0x1a, false, "[unknown]" },
    { "root-user",          IN_ROOT, 0, WORD, LINUX_PROGRAM | 0x1a, false, "[unknown]" },
    { "root-last-address",    IN_ROOT, 0, WORD, UINT64_MAX - 1, false, "[unknown]" },
    { "root-no-type",       IN_ROOT, 0, TO_NODE, 0x3a, false, "[unknown]" },
    { "root-dense",         IN_ROOT, 0, TO_NODE, 0x02, false, "[unknown]" },
    { "root-of-one-area",   IN_ROOT, 0, TO_NODE, 0, false, "[unknown]" },
    { "node-cyclic",        IN_NODE, MAPLE_GAP_SLOTS, TO_ROOT, 0x1c, false, "[unknown]" },
    { "node-of-another-kind", IN_NODE, MAPLE_GAP_SLOTS, TO_LEAF, 0x1c, false, "[unknown]" },
    { "node-null",          IN_NODE, MAPLE_GAP_SLOTS, WORD, 0, false, "[unknown]" },
    { "node-user",          IN_NODE, MAPLE_GAP_SLOTS, WORD, LINUX_PROGRAM | 0xc, false, "[unknown]" },
    { "node-nowhere",       IN_NODE, MAPLE_GAP_SLOTS, WORD, NOWHERE | 0xc, false, "[unknown]" },
    { "area-null",          IN_LEAF, MAPLE_SLOTS + 16, WORD, 0, false, "[unknown]" },
    { "area-user",          IN_LEAF, MAPLE_SLOTS + 16, WORD, LINUX_PROGRAM, false, "[unknown]" },
    { "area-is-a-node",     IN_LEAF, MAPLE_SLOTS + 16, TO_LEAF, 0, false, "[unknown]" },
    { "area-unaligned",     IN_LEAF, MAPLE_SLOTS + 16, TO_LEAF, 3, false, "[unknown]" },
    { "area-last-address",    IN_LEAF, MAPLE_SLOTS + 16, WORD, UINT64_MAX - 8, false, "[unknown]" },
    { "empty",              IN_AREA, AREA_END, WORD, LINUX_PROGRAM + 0x1000, false, "[unknown]" },
    { "upside-down",        IN_AREA, AREA_END, WORD, LINUX_PROGRAM, false, "[unknown]" },
    { "in-mid-page",        IN_AREA, AREA_START, WORD, LINUX_PROGRAM + 0x1001, false, "[unknown]" },
    { "elsewhere",          IN_AREA, AREA_START, WORD, LINUX_PROGRAM + 0x3000, false, "[unknown]" },
    { "all-addresses",    IN_AREA, AREA_END, WORD, UINT64_C(0xfffffffffffff000), false, "[nginx+0x1234]" },
    { "no-code",            IN_AREA, AREA_FLAGS, WORD, 0, false, "[unknown]" },
    { "page-far",           IN_AREA, AREA_PAGE, WORD, UINT64_C(1) << 30, false, "[unknown]" },
    { "page-last-address",    IN_AREA, AREA_PAGE, WORD, UINT64_MAX, false, "[unknown]" },
    { "file-null",          IN_AREA, AREA_FILE, WORD, 0, false, "[unknown]" },
    { "file-user",          IN_AREA, AREA_FILE, WORD, LINUX_PROGRAM, false, "[unknown]" },
    { "file-nowhere",       IN_AREA, AREA_FILE, WORD, NOWHERE, false, "[unknown]" },
    { "entry-null",         IN_FILE, FILE_ENTRY, WORD, 0, false, "[unknown]" },
    { "entry-nowhere",      IN_FILE, FILE_ENTRY, WORD, NOWHERE, false, "[unknown]" },
    { "name-user",          IN_ENTRY, ENTRY_NAME, WORD, LINUX_PROGRAM, false, "[unknown]" },
    { "name-nowhere",       IN_ENTRY, ENTRY_NAME, WORD, NOWHERE, false, "[unknown]" },
    { "name-last-address",    IN_ENTRY, ENTRY_NAME, WORD, UINT64_MAX, false, "[unknown]" },
    { "name-empty",         IN_ENTRY, ENTRY_CHARS, WORD, 0, false, "[unknown]" },
    { "name-with-odd-bytes",           IN_ENTRY, ENTRY_CHARS, WORD, UINT64_C(0x003b5d0a1b2f2e2e), false, "[.._____+0x1234]" },
    { "mapping-null",       IN_FILE, FILE_MAPPING, WORD, 0, false, "[nginx+0x1234]" },

    { "red-null",           IN_ROOT, 0, WORD, 0, true, "[unknown]" },
    { "red-nowhere",        IN_ROOT, 0, WORD, NOWHERE, true, "[unknown]" },
    { "red-user",           IN_ROOT, 0, WORD, LINUX_PROGRAM, true, "[unknown]" },
    { "red-last-address",     IN_ROOT, 0, WORD, UINT64_MAX, true, "[unknown]" },
    { "red-itself",         IN_AREA, AREA_NODE + RB_LEFT, TO_ITSELF, AREA_NODE, true, "[nginx+0x1234]" },
    { "red-empty",          IN_AREA, AREA_END, WORD, LINUX_PROGRAM + 0x1000, true, "[unknown]" },
};
/* clang-format on */

static uint64_t
find_pointer(const LinuxGuest *guest, unsigned pointer)
{
    static const uint64_t none = 0;
    const uint64_t *targets[] = {
        [WORD] = &none,
        [TO_ROOT] = &guest->nodes[0],
        [TO_NODE] = &guest->nodes[1],
        [TO_LEAF] = &guest->nodes[2],
        [TO_ITSELF] = &guest->areas[1],
    };

    return pointer == WORD ? 0 : LINUX_DIRECT + *targets[pointer];
}

static void
test_malformed(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_autoptr(LinuxGuest) guest =
        linux_guest_new(&(LinuxPlan){ .is_red_black = malformed[i].is_red_black });

    linux_guest_put(guest, find_structure(guest, malformed[i].structure) + malformed[i].at,
                    find_pointer(guest, malformed[i].pointer) + malformed[i].word);
    g_autoptr(LinuxView) view = view_process(guest);
    const gint before = guest->memory->tally->spans;
    /* other files are not affected */
    if (malformed[i].structure >= IN_AREA && !malformed[i].is_red_black)
        check_name(view, LIBRARY_CODE, "[libc.so.6+0x28010]");
    check_name(view, CODE, malformed[i].name_of_code);
    check_name(view, LINUX_IMAGE + 0x58, "function_0005_[k]");
    g_assert_cmpint(guest->memory->tally->spans - before, <=, READS_MAX);
}

/* A chain of nodes: the search ends at the greatest depth of a tree. */
static void
test_deep_tree(gconstpointer data)
{
    enum { NODES = 100 };
    const bool is_red_black = GPOINTER_TO_INT(data);
    g_autoptr(LinuxGuest) guest = linux_guest_new(
        &(LinuxPlan){ .is_red_black = is_red_black, .more_bytes = (NODES + 1) * PAGE });
    uint64_t last = guest->mm + MM_ROOT;

    for (unsigned i = 0; i < NODES; i++) {
        const uint64_t page = linux_guest_alloc(guest, PAGE, PAGE);
        if (is_red_black) {
            linux_guest_put(guest, last, LINUX_DIRECT + page + AREA_NODE);
            linux_guest_put(guest, page + AREA_START, PAGE);
            linux_guest_put(guest, page + AREA_END, 2 * PAGE);
            last = page + AREA_NODE + RB_RIGHT;
        } else {
            linux_guest_put(guest, last, linux_guest_entry(page, 2, i == 0));
            linux_guest_put(guest, page + MAPLE_PIVOTS, UINT64_MAX);
            last = page + MAPLE_SLOTS;
        }
    }
    g_autoptr(LinuxView) view = view_process(guest);
    linux_view_sample(view, 0);
    const gint before = guest->memory->tally->spans;
    check_name(view, CODE, "[unknown]");
    g_assert_cmpint(guest->memory->tally->spans - before, <=, is_red_black ? 2 * READS_MAX : 34);
}

/* A name without end is ignored; a name of the greatest length is used. */
static void
test_endless_name(void)
{
    g_autoptr(LinuxGuest) guest = linux_guest_new(&(LinuxPlan){ .more_bytes = PAGE });
    const uint64_t page = linux_guest_alloc(guest, PAGE, PAGE);

    memset(guest->memory->ram + page, 'n', PAGE);
    linux_guest_put(guest, find_structure(guest, IN_ENTRY) + ENTRY_NAME, LINUX_DIRECT + page);
    g_autoptr(LinuxView) view = view_process(guest);
    check_name(view, CODE, "[unknown]");
    guest->memory->ram[page + 255] = '\0';
    view->time_ns += 3 * UPROF_MEM_KEEP_NS;
    linux_view_sample(view, 0);
    g_assert_true(g_str_has_prefix(linux_view_name(view, CODE), "[nnnn"));
    g_assert_cmpuint(strlen(linux_view_name(view, CODE)), <, 300);
}

/* One sample looks up more addresses than its limit of reads allows. */
static void
test_too_many_lookups(void)
{
    g_autoptr(LinuxGuest) guest = linux_guest_new(&(LinuxPlan){ 0 });
    g_autoptr(LinuxView) view = view_process(guest);
    const gint before = guest->memory->tally->spans;

    for (uint64_t i = 0; i < 1000; i++)
        check_name(view, LINUX_LIBRARY + (i << 32), "[unknown]");
    check_name(view, CODE, "[unknown]"); /* the limit is reached */
    g_assert_cmpint(guest->memory->tally->spans - before, <=, 2 * READS_MAX);
    linux_view_sample(view, 0);
    check_name(view, CODE, "[nginx+0x1234]");
}

/* ---- Roots ---- */

static void
test_root(void)
{
    enum { FAR = 0x20800 }; /* linux_guest_add_mm() puts the arguments there */
    g_autoptr(LinuxGuest) guest = linux_guest_new(&(LinuxPlan){ 0 });
    g_autoptr(LinuxView) view = view_process(guest);

    g_assert_true(uprof_space_is_root(view->space, LINUX_STACK + FAR));
    g_assert_true(uprof_space_is_root(view->space, LINUX_STACK + FAR - 16));
    g_assert_true(uprof_space_is_root(view->space, LINUX_STACK + FAR + 16));
    g_assert_false(uprof_space_is_root(view->space, LINUX_STACK + FAR - 24));
    g_assert_false(uprof_space_is_root(view->space, LINUX_STACK + FAR + 24));
    g_assert_false(uprof_space_is_root(view->space, 0));
    linux_guest_put(guest, guest->mm + MM_STACK, 0);
    view->time_ns += 3 * UPROF_MEM_KEEP_NS;
    linux_view_sample(view, 0);
    g_assert_false(uprof_space_is_root(view->space, LINUX_STACK + FAR));
    g_assert_false(uprof_space_is_root(view->space, 0));
}

/* ---- Files in memory ---- */

#define VDSO UINT64_C(0x7fff00000000)

/* A library in two pieces, of which no page is in the page tables; and code of the kernel (vDSO) */
static const LinuxArea of_library[] = {
    { LINUX_LIBRARY, LINUX_LIBRARY + 0x3000, 0, 2, false },
    { LINUX_LIBRARY + 0x3000, LINUX_LIBRARY + 0x5000, 3, 2, true },
    { LINUX_LIBRARY + 0x5000, LINUX_LIBRARY + 0x8000, 5, 2, false },
};
static const LinuxPlan library_plan = { .areas = of_library,
                                        .n_areas = G_N_ELEMENTS(of_library),
                                        .more_bytes = 64 * PAGE };

#define OPEN_CODE (LINUX_LIBRARY + MAPPED_OPEN + 4)
#define CLOSE_CODE (LINUX_LIBRARY + MAPPED_CLOSE + 4)
#define HIDDEN_CODE (LINUX_LIBRARY + MAPPED_HIDDEN + 4)

/* Puts the library into the page cache. @missing: a bit for each page that is not there */
static void
cache_library(LinuxGuest *guest, uint8_t id, uint64_t missing)
{
    g_autoptr(GByteArray) file = build_mapped(id);
    const uint64_t gpa = linux_guest_alloc(guest, file->len, PAGE);

    memory_guest_put(guest->memory, gpa, file->data, file->len);
    for (unsigned i = 0; i < MAPPED_N_PAGES; i++)
        if (!(missing >> i & 1))
            linux_guest_cache(guest, 1, i, gpa + i * PAGE);
}

static bool
has_rule(LinuxView *view, uint64_t pc)
{
    const UprofCfi *cfi;

    return uprof_sym_rule(view->sym, uprof_space_symbol_address(view->space, pc), &cfi) != NULL;
}

static void
test_memory_file(void)
{
    g_autoptr(LinuxGuest) guest = linux_guest_new(&library_plan);
    UprofSymModule module;

    cache_library(guest, 0xcd, 0);
    g_autoptr(LinuxView) view = view_process(guest);
    check_name(view, OPEN_CODE, "open_door");
    check_name(view, CLOSE_CODE, "close_door");
    check_name(view, HIDDEN_CODE, "hidden_helper");
    check_name(view, LINUX_LIBRARY + MAPPED_TEXT_AT, "[libc.so.6+0x3000]");
    g_assert_true(has_rule(view, OPEN_CODE) && has_rule(view, HIDDEN_CODE));
    g_assert_false(has_rule(view, LINUX_LIBRARY + MAPPED_TEXT_AT));
    g_assert_true(uprof_sym_module(view->sym, 1, &module));
    g_assert_true(module.is_from_memory);
    g_assert_null(module.path);
    g_assert_cmpstr(module.build_id, ==, "cdcdcdcdcdcdcdcd");
    /* All is remembered. */
    const gint before = guest->memory->tally->spans;
    linux_view_sample(view, 0);
    check_name(view, OPEN_CODE, "open_door");
    g_assert_cmpint(guest->memory->tally->spans, ==, before);
}

/* Two processes share the names of a file; a file of this host goes before memory. */
static void
test_memory_file_shared(void)
{
    g_autoptr(LinuxGuest) guest = linux_guest_new(&library_plan);
    UprofSymModule module;

    cache_library(guest, 0xcd, 0);
    g_autoptr(LinuxView) view = view_process(guest);
    check_name(view, OPEN_CODE, "open_door");
    const uint64_t place = uprof_space_symbol_address(view->space, OPEN_CODE);
    linux_guest_run(guest, 0, linux_guest_add_task(guest, "other", 77, linux_guest_add_mm(guest)),
                    false);
    linux_view_sample(view, 0);
    g_assert_cmphex(uprof_space_symbol_address(view->space, OPEN_CODE), ==, place);
    g_assert_false(uprof_sym_module(view->sym, 2, &module));
}

static void
test_host_file_first(void)
{
    g_autoptr(LinuxGuest) guest = linux_guest_new(&library_plan);
    g_autofree char *folder = make_folder(by_id);
    const char *const folders[] = { folder, NULL };
    UprofSymModule module;

    cache_library(guest, 0xa1, 0);
    g_autoptr(LinuxView) view = linux_view_new(guest);
    uprof_sym_configure(view->sym, &(UprofSymConfig){ .debug_folders = folders });
    linux_view_sample(view, 0);
    linux_view_sample(view, 0);
    g_assert_cmpstr(linux_view_name(view, OPEN_CODE), !=, "open_door");
    g_assert_true(uprof_sym_module(view->sym, 1, &module));
    g_assert_nonnull(module.path);
    g_assert_false(module.is_from_memory);
    remove_folder(folder, by_id);
}

/* A file without unwind tables, as debug files are, gets those that memory has. */
static void
test_host_file_with_memory(void)
{
    g_autoptr(LinuxGuest) guest = linux_guest_new(&library_plan);
    g_autofree char *folder = make_folder_of(by_id, 0, MAPPED_OPEN);
    const char *const folders[] = { folder, NULL };
    UprofSymModule module;

    cache_library(guest, 0xa1, 0);
    g_autoptr(LinuxView) view = linux_view_new(guest);
    uprof_sym_configure(view->sym, &(UprofSymConfig){ .debug_folders = folders });
    linux_view_sample(view, 0);
    linux_view_sample(view, 0);
    check_name(view, OPEN_CODE, "malloc");
    g_assert_true(uprof_sym_module(view->sym, 1, &module));
    g_assert_nonnull(module.path);
    g_assert_true(has_rule(view, OPEN_CODE));
    remove_folder(folder, by_id);
}

/* Pages that are missing are tried again, unless the file is another one by then. */
static void
test_memory_file_grows(gconstpointer data)
{
    const uint8_t id = (uint8_t)GPOINTER_TO_UINT(data);
    const uint64_t names = MAPPED_NAMES_AT / PAGE, frames = MAPPED_FRAMES_AT / PAGE;
    g_autoptr(LinuxGuest) guest = linux_guest_new(&library_plan);
    const bool is_same = id == 0xcd;

    cache_library(guest, 0xcd, 1 << names | 1 << frames);
    g_autoptr(LinuxView) view = view_process(guest);
    check_name(view, CLOSE_CODE, "[libc.so.6+0x3204]");
    check_name(view, HIDDEN_CODE, "hidden_helper");
    g_assert_false(has_rule(view, OPEN_CODE));
    g_autoptr(GByteArray) file = build_mapped(id);
    for (uint64_t i = 0; i < MAPPED_N_PAGES; i++) {
        const uint64_t gpa = linux_guest_alloc(guest, PAGE, PAGE);
        memory_guest_put(guest->memory, gpa, file->data + i * PAGE, PAGE);
        linux_guest_cache(guest, 1, i, gpa);
    }
    view->time_ns += SECOND;
    linux_view_sample(view, 0);
    check_name(view, CLOSE_CODE, "[libc.so.6+0x3204]");
    view->time_ns += 6 * SECOND; /* remembered areas are kept, remembered pages are not */
    linux_view_sample(view, 0);
    check_name(view, CLOSE_CODE, is_same ? "close_door" : "[libc.so.6+0x3204]");
    g_assert_cmpint(has_rule(view, OPEN_CODE), ==, is_same);
}

/* A file without a build-id is replaced by another one of its name, also in the kernel's memory. */
static void
test_memory_file_replaced(void)
{
    g_autoptr(LinuxGuest) guest = linux_guest_new(&library_plan);
    g_autoptr(GByteArray) file = build_mapped(0xcd);

    memset(file->data + 0x300, 0, 0x20); /* the note */
    const uint64_t gpa = linux_guest_alloc(guest, file->len, PAGE);
    memory_guest_put(guest->memory, gpa, file->data, file->len);
    for (unsigned i = 0; i < MAPPED_N_PAGES; i++)
        linux_guest_cache(guest, 1, i, gpa + i * PAGE);
    g_autoptr(LinuxView) view = view_process(guest);
    check_name(view, CLOSE_CODE, "close_door");
    memory_guest_put(guest->memory, gpa + 0x380, "another file", 12);
    memory_guest_put(guest->memory, gpa + MAPPED_NAMES_AT + 18, "shut_down!", 10);
    memory_guest_put(guest->memory, gpa + MAPPED_ALL_NAMES_AT + 1, "open_gate", 9);
    view->time_ns += 3 * UPROF_MEM_KEEP_NS;
    linux_view_sample(view, 0);
    check_name(view, CLOSE_CODE, "shut_down!");
}

/* The budget of pages is bounded: a storm of files does not read more. */
static void
test_memory_file_budget(void)
{
    LinuxPlan plan = library_plan;

    plan.more_bytes = 256 * PAGE;
    g_autoptr(LinuxGuest) guest = linux_guest_new(&plan);

    cache_library(guest, 0xcd, 0);
    g_autoptr(LinuxView) view = view_process(guest);
    for (unsigned i = 0; i < 1200; i++) {
        /* each process's file has another address_space */
        const uint64_t mapping = linux_guest_alloc(guest, 0x20, 0x20);
        linux_guest_put(guest, mapping + MAPPING_HEAD,
                        linux_guest_get(guest, guest->mappings[1] + MAPPING_HEAD));
        linux_guest_put(guest, guest->files[1] + FILE_MAPPING, LINUX_DIRECT + mapping);
        for (unsigned page = 0; page < MAPPED_N_PAGES; page++)
            linux_guest_put(
                guest,
                linux_guest_get(guest, guest->nodes_of_files[1] + NODE_SLOTS + 8 * page) -
                    LINUX_PAGES + guest->structs + PAGE_MAPPING,
                LINUX_DIRECT + mapping);
        linux_guest_run(guest, 0,
                        linux_guest_add_task(guest, "storm", 1000 + i, linux_guest_add_mm(guest)),
                        false);
        uprof_mem_forget(view->mem);
        linux_view_sample(view, 0);
        uprof_space_symbol_address(view->space, OPEN_CODE);
    }
    check_name(view, OPEN_CODE, "[libc.so.6+0x3104]");
    view->time_ns += SECOND;
    linux_view_sample(view, 0);
    check_name(view, OPEN_CODE, "open_door");
}

static void
test_vdso(void)
{
    static const LinuxArea areas[] = {
        { LINUX_PROGRAM + 0x1000, LINUX_PROGRAM + 0x4000, 1, 1, true },
        { VDSO, VDSO + MAPPED_BYTES, 0, 0, true },
    };
    const LinuxPlan plan = { .areas = areas, .n_areas = 2, .more_bytes = 64 * PAGE };
    g_autoptr(LinuxGuest) guest = linux_guest_new(&plan);
    g_autoptr(GByteArray) file = build_mapped(0xee);

    for (unsigned i = 0; i < MAPPED_N_PAGES; i++) {
        const uint64_t gpa = linux_guest_alloc(guest, PAGE, PAGE);
        memory_guest_put(guest->memory, gpa, file->data + i * PAGE, PAGE);
        linux_guest_map(guest, guest->process_root, VDSO + i * PAGE, gpa, LINUX_USER);
    }
    linux_guest_put(guest, guest->mm + MM_VDSO, VDSO);
    g_autoptr(LinuxView) view = view_process(guest);
    check_name(view, VDSO + MAPPED_OPEN + 4, "open_door");
    check_name(view, VDSO + MAPPED_TEXT_AT, "[vdso+0x3000]");
    linux_guest_put(guest, guest->mm + MM_VDSO, VDSO + PAGE);
    view->time_ns += 3 * UPROF_MEM_KEEP_NS;
    linux_view_sample(view, 0);
    check_name(view, VDSO + MAPPED_OPEN + 4, "[unknown]");
}

/* Code that is not in the page tables of the process is read from the page cache. */
static void
test_code_bytes(void)
{
    g_autoptr(LinuxGuest) guest = linux_guest_new(&library_plan);
    g_autoptr(GByteArray) file = build_mapped(0xcd);
    uint8_t bytes[PAGE + 16];

    for (size_t i = 0; i < MAPPED_TEXT_LEN; i++)
        file->data[MAPPED_TEXT_AT + i] = (uint8_t)(i * 7 >> 3);
    for (unsigned i = 0; i < MAPPED_N_PAGES; i++) {
        const uint64_t gpa = linux_guest_alloc(guest, PAGE, PAGE);
        memory_guest_put(guest->memory, gpa, file->data + i * PAGE, PAGE);
        if (i != MAPPED_LATE_FRAMES_AT / PAGE)
            linux_guest_cache(guest, 1, i, gpa);
    }
    g_autoptr(LinuxView) view = view_process(guest);
    g_assert_true(uprof_space_read_code(view->space, LINUX_LIBRARY + MAPPED_TEXT_AT + 4090, bytes,
                                        sizeof(bytes) - PAGE));
    g_assert_cmpmem(bytes, 16, file->data + MAPPED_TEXT_AT + 4090, 16);
    g_assert_true(
        uprof_space_read_code(view->space, LINUX_LIBRARY + MAPPED_TEXT_AT, bytes, sizeof(bytes)));
    g_assert_cmpmem(bytes, sizeof(bytes), file->data + MAPPED_TEXT_AT, sizeof(bytes));
    /* beyond the area; a page that is missing; outside of all areas; kernel addresses */
    g_assert_false(uprof_space_read_code(view->space, LINUX_LIBRARY + 0x7ff8, bytes, 16));
    g_assert_false(
        uprof_space_read_code(view->space, LINUX_LIBRARY + MAPPED_LATE_FRAMES_AT, bytes, 16));
    g_assert_false(uprof_space_read_code(view->space, LINUX_PROGRAM + 0x100000, bytes, 1));
    g_assert_false(uprof_space_read_code(view->space, LINUX_IMAGE, bytes, 1));
    /* The process may have changed what it may write to. */
    linux_guest_put(guest, guest->areas[1] + AREA_FLAGS, 6);
    view->time_ns += 3 * UPROF_MEM_KEEP_NS;
    linux_view_sample(view, 0);
    g_assert_false(uprof_space_read_code(view->space, LINUX_LIBRARY + MAPPED_TEXT_AT, bytes, 16));
}

/* ---- Changes ---- */

/* A new mapping is found once the remembered areas are dropped. */
static void
test_remap(void)
{
    g_autoptr(LinuxGuest) guest = linux_guest_new(&(LinuxPlan){ 0 });
    g_autoptr(LinuxView) view = view_process(guest);

    check_name(view, CODE, "[nginx+0x1234]");
    linux_guest_put(guest, guest->files[0] + FILE_ENTRY,
                    linux_guest_get(guest, guest->files[1] + FILE_ENTRY));
    linux_view_sample(view, 0);
    check_name(view, CODE, "[nginx+0x1234]");
    view->time_ns += 2 * UPROF_MEM_KEEP_NS;
    linux_view_sample(view, 0);
    /* the content of the mapped page identifies the module; the name of the file does not */
    check_name(view, CODE, "[nginx+0x1234]");
    linux_guest_put(guest, guest->heads[0], 0);
    view->time_ns += 2 * UPROF_MEM_KEEP_NS;
    linux_view_sample(view, 0);
    check_name(view, CODE, "[libc.so.6+0x1234]");
}

/* The area moves for each sample: the number of remembered areas of a process is limited. */
static void
test_many_areas(void)
{
    enum { N = 3 * UPROF_SPACE_AREAS_MAX };
    g_autoptr(LinuxGuest) guest =
        linux_guest_new(&(LinuxPlan){ .areas = few, .n_areas = 1, .is_red_black = true });
    g_autoptr(LinuxView) view = view_process(guest);

    for (uint64_t i = 0; i < N; i++) {
        const uint64_t start = LINUX_LIBRARY + i * 2 * PAGE;
        linux_guest_put(guest, guest->areas[0] + AREA_START, start);
        linux_guest_put(guest, guest->areas[0] + AREA_END, start + PAGE);
        uprof_mem_forget(view->mem);
        linux_view_sample(view, 0);
        check_name(view, start + 0x10, "[nginx+0x1010]");
        check_name(view, start - 0x10, "[unknown]");
    }
    /* the first area is dropped */
    check_name(view, LINUX_LIBRARY + 0x10, "[unknown]");
}

/* A later process reuses the memory structure of an earlier one. */
static void
test_reused_memory(void)
{
    g_autoptr(LinuxGuest) guest = linux_guest_new(&(LinuxPlan){ 0 });
    g_autoptr(LinuxView) view = view_process(guest);

    check_name(view, LINUX_ANONYMOUS, "[unknown]");
    const uint64_t symbol_address = uprof_space_symbol_address(view->space, LINUX_ANONYMOUS);
    linux_guest_put(guest, guest->task + TASK_PID, UINT64_C(0x0000004d0000004d));
    linux_view_sample(view, 0);
    g_assert_cmphex(uprof_space_symbol_address(view->space, LINUX_ANONYMOUS), !=, symbol_address);
    /* after a reset, every process is a new one */
    const uint64_t then = uprof_space_symbol_address(view->space, LINUX_ANONYMOUS);
    view->reset++;
    linux_view_sample(view, 0);
    linux_view_sample(view, 0);
    g_assert_true(uprof_space_has_process(view->space));
    g_assert_cmphex(uprof_space_symbol_address(view->space, LINUX_ANONYMOUS), !=, then);
}

/* ---- Perf maps ---- */

#define FUNCTION "7f1000000100 40 JS:*run /app/server.js:10:5\n"
#define FUNCTION_CODE (LINUX_ANONYMOUS + 0x110)
#define FUNCTION_NAME "JS:*run /app/server.js:10:5"

/* Returns: a view of @guest, whose process has a perf map with @text */
static LinuxView *
view_perf_map(LinuxGuest *guest, const char *text)
{
    linux_guest_open_perf_map(guest, guest->task);
    linux_guest_write_perf_map(guest, text);
    return view_process(guest);
}

static void
sample_later(LinuxView *view, uint64_t ns)
{
    view->time_ns += ns;
    linux_view_sample(view, 0);
}

static void
test_perf_map(void)
{
    g_autoptr(LinuxGuest) guest = linux_guest_new(&(LinuxPlan){ 0 });
    g_autoptr(LinuxView) view = view_perf_map(guest, FUNCTION);
    uint64_t start, len;
    bool is_entry;

    check_name(view, FUNCTION_CODE, FUNCTION_NAME);
    check_name(view, LINUX_ANONYMOUS + 0xff, "[unknown]");
    check_name(view, LINUX_ANONYMOUS + 0x140, "[unknown]");
    /* code of a file has names of its own */
    check_name(view, CODE, "[nginx+0x1234]");
    const uint64_t address = uprof_space_symbol_address(view->space, FUNCTION_CODE);
    g_assert_true(uprof_sym_function(view->sym, address, &start, &len, &is_entry));
    g_assert_cmphex(start, ==, address - 0x10);
    g_assert_cmphex(len, ==, 0x40);
    g_assert_false(uprof_sym_is_code(view->sym, address)); /* it may be replaced at any time */
    /* the process is known again later, with its names */
    sample_later(view, 3 * UPROF_MEM_KEEP_NS);
    g_assert_cmphex(uprof_space_symbol_address(view->space, FUNCTION_CODE), ==, address);
    linux_guest_write_perf_map(guest, "");
    check_name(view, FUNCTION_CODE, FUNCTION_NAME);
}

/* The file grows, in the middle of a line; an address gets another function. */
static void
test_perf_map_grows(void)
{
    g_autoptr(LinuxGuest) guest = linux_guest_new(&(LinuxPlan){ 0 });
    g_autoptr(LinuxView) view = view_perf_map(guest, FUNCTION "7f1000000200 10 ne");

    check_name(view, LINUX_ANONYMOUS + 0x200, "[unknown]");
    linux_guest_write_perf_map(guest, FUNCTION "7f1000000200 10 new\n");
    /* not read again at once */
    uprof_mem_forget(view->mem);
    sample_later(view, SECOND / 100);
    check_name(view, LINUX_ANONYMOUS + 0x200, "[unknown]");
    sample_later(view, SECOND / 10);
    uprof_mem_forget(view->mem);
    check_name(view, LINUX_ANONYMOUS + 0x200, "new");
    check_name(view, FUNCTION_CODE, FUNCTION_NAME);
    linux_guest_write_perf_map(guest, FUNCTION "7f1000000200 10 new\n7f1000000100 40 moved\n");
    uprof_mem_forget(view->mem);
    sample_later(view, SECOND / 10);
    check_name(view, FUNCTION_CODE, FUNCTION_NAME);
    sample_later(view, SECOND);
    uprof_mem_forget(view->mem);
    uprof_space_symbol_address(view->space, FUNCTION_CODE);
    check_name(view, FUNCTION_CODE, "moved");
}

/* A page of the file is not in memory: the lines of the other pages have their names. */
static void
test_perf_map_with_gap(void)
{
    g_autoptr(LinuxGuest) guest = linux_guest_new(&(LinuxPlan){ 0 });
    g_autoptr(GString) text = g_string_new(FUNCTION);

    while (text->len < 2 * PAGE - 10)
        g_string_append(text, "7f1000000200 10 lost\n");
    g_string_truncate(text, 2 * PAGE - 10);
    /* the third page begins with a part of a line that would be a line, too */
    g_string_append(text, "7f100000007f1000000200 10 wrong\n7f1000000300 10 last\n");
    linux_guest_open_perf_map(guest, guest->task);
    linux_guest_put(guest, guest->nodes_of_files[LINUX_PERF_MAP] + NODE_SLOTS + 8, 0);
    g_autoptr(LinuxView) view = view_perf_map(guest, text->str);
    linux_guest_put(guest, guest->nodes_of_files[LINUX_PERF_MAP] + NODE_SLOTS + 8, 0);
    check_name(view, FUNCTION_CODE, FUNCTION_NAME);
    check_name(view, LINUX_ANONYMOUS + 0x300, "last");
    check_name(view, LINUX_ANONYMOUS + 0x208, "lost");
}

/* The name of a file of the guest. */
static uint64_t
find_file_name(const LinuxGuest *guest, unsigned file)
{
    return linux_guest_get(guest, guest->files[file] + FILE_ENTRY) - LINUX_DIRECT + ENTRY_CHARS;
}

/* The process writes a jitdump instead, and grows it in the middle of a record. */
static void
test_jitdump(void)
{
    g_autoptr(LinuxGuest) guest = linux_guest_new(&(LinuxPlan){ 0 });
    g_autoptr(GByteArray) file = build_jitdump_new();

    linux_guest_open_perf_map(guest, guest->task);
    const uint64_t size_at = guest->inodes[LINUX_PERF_MAP] + INODE_SIZE;
    linux_guest_put_text(guest, find_file_name(guest, LINUX_PERF_MAP), "jit-77.dump");
    build_jitdump_load(file, LINUX_ANONYMOUS + 0x100, 0x40, "py::run:/a.py");
    const guint before = file->len;
    build_jitdump_load(file, LINUX_ANONYMOUS + 0x200, 0x40, "py::next:/a.py");
    memory_guest_put(guest->memory, guest->perf_map, file->data, file->len);
    linux_guest_put(guest, size_at, before + 30);
    g_autoptr(LinuxView) view = view_process(guest);
    check_name(view, FUNCTION_CODE, "py::run:/a.py");
    check_name(view, LINUX_ANONYMOUS + 0x200, "[unknown]");
    linux_guest_put(guest, size_at, file->len);
    uprof_mem_forget(view->mem);
    sample_later(view, SECOND);
    check_name(view, LINUX_ANONYMOUS + 0x200, "py::next:/a.py");
}

/* A process has both files: the perf map counts, whichever is found first. */
static void
test_both_files(void)
{
    g_autoptr(LinuxGuest) guest = linux_guest_new(&(LinuxPlan){ 0 });

    linux_guest_put_text(guest, find_file_name(guest, 0), "jit-7.dump");
    g_autoptr(LinuxView) view = view_perf_map(guest, FUNCTION);
    check_name(view, FUNCTION_CODE, FUNCTION_NAME);
}

/* Names that are almost those of such files. */
static void
test_other_names(void)
{
    static const char *const names[] = { "jit-.dump",   "jit-7.dumps", "jit-7x.dump",
                                         "perf-7.dump", "jit-7.map",   "xjit-7.dump" };

    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autoptr(LinuxGuest) guest = linux_guest_new(&(LinuxPlan){ 0 });
        linux_guest_open_perf_map(guest, guest->task);
        linux_guest_put_text(guest, find_file_name(guest, LINUX_PERF_MAP), names[i]);
        linux_guest_write_perf_map(guest, FUNCTION);
        g_autoptr(LinuxView) view = view_process(guest);
        check_name(view, FUNCTION_CODE, "[unknown]");
    }
}

/* The process closes the file, and the kernel uses its structures for another file. */
static void
test_perf_map_closed(void)
{
    g_autoptr(LinuxGuest) guest = linux_guest_new(&(LinuxPlan){ 0 });
    g_autoptr(LinuxView) view = view_perf_map(guest, FUNCTION);

    check_name(view, FUNCTION_CODE, FUNCTION_NAME);
    linux_guest_put(guest, guest->open_files + 8 * LINUX_PERF_MAP_DESCRIPTOR, 0);
    linux_guest_write_perf_map(guest, FUNCTION "7f1000000200 10 other\n");
    uprof_mem_forget(view->mem);
    sample_later(view, SECOND);
    check_name(view, LINUX_ANONYMOUS + 0x200, "[unknown]");
    check_name(view, FUNCTION_CODE, FUNCTION_NAME);
    /* it is found again, but not at once */
    linux_guest_put(guest, guest->open_files + 8 * LINUX_PERF_MAP_DESCRIPTOR,
                    LINUX_DIRECT + guest->files[LINUX_PERF_MAP]);
    uprof_mem_forget(view->mem);
    sample_later(view, 2 * SECOND);
    check_name(view, LINUX_ANONYMOUS + 0x200, "other");
}

/* Each process has its own perf map, and the names go with the process. */
static void
test_perf_map_of_another(void)
{
    g_autoptr(LinuxGuest) guest = linux_guest_new(&(LinuxPlan){ 0 });
    g_autoptr(LinuxView) view = view_perf_map(guest, FUNCTION);
    unsigned n_processes;

    check_name(view, FUNCTION_CODE, FUNCTION_NAME);
    linux_guest_run(guest, 0, linux_guest_add_task(guest, "perl", 77, linux_guest_add_mm(guest)),
                    false);
    sample_later(view, SECOND);
    check_name(view, FUNCTION_CODE, "[unknown]");
    g_assert_cmpuint(uprof_sym_count_generated(view->sym, &n_processes), ==, 1);
    g_assert_cmpuint(n_processes, ==, 1);
    /* after a reset, the first process is another one */
    linux_guest_run(guest, 0, guest->task, false);
    linux_guest_put(guest, guest->task + TASK_FILES, 0);
    view->reset++;
    linux_view_sample(view, 0);
    sample_later(view, SECOND);
    check_name(view, FUNCTION_CODE, "[unknown]");
    g_assert_cmpuint(uprof_sym_count_generated(view->sym, &n_processes), ==, 0);
    g_assert_cmpuint(n_processes, ==, 0);
}

/* PHP has generated code in shared memory, which is a file for the kernel. */
static void
test_perf_map_of_shared_memory(void)
{
    static const LinuxArea areas[] = {
        { LINUX_ANONYMOUS, LINUX_ANONYMOUS + 0x2000, 0, 2, true },
    };
    static const char *const names[] = { "dev/zero", "memfd:jit", "zero" };

    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autoptr(LinuxGuest) guest =
            linux_guest_new(&(LinuxPlan){ .areas = areas, .n_areas = G_N_ELEMENTS(areas) });
        const uint64_t entry = linux_guest_get(guest, guest->files[1] + FILE_ENTRY) - LINUX_DIRECT;
        linux_guest_put_text(guest, entry + ENTRY_CHARS, names[i]);
        linux_guest_put(guest, guest->heads[1], 0);
        g_autoptr(LinuxView) view = view_perf_map(guest, FUNCTION);
        check_name(view, FUNCTION_CODE, i < 2 ? FUNCTION_NAME : "[zero+0x110]");
    }
}

/* The kernel changes to a task, is on its stack, and has not noted yet that this task runs. */
static void
test_task_change(void)
{
    enum { ELSEWHERE = 0x8000, NONE = -1, REGISTERS = TASK_THREAD - 8 };
    static const uint64_t own_stack = LINUX_KERNEL_STACK, other_stack = own_stack + 0x4000;
    static const struct {
        uint64_t sp;
        int part; /* of the next task, to which a register points */
        const char *name;
    } changes[] = {
        { other_stack + 0x3f00, 0, "perl" },         { other_stack + 0x4000, 0, "perl" },
        { other_stack + 0x3f00, REGISTERS, "perl" }, { other_stack + 0x3f00, NONE, "nginx" },
        { other_stack + 0x3f00, 8, "nginx" },        { own_stack + 0x3f00, 0, "nginx" },
        { own_stack + 0x3f00, REGISTERS, "nginx" },  { other_stack + ELSEWHERE, 0, "nginx" },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(changes); i++) {
        g_autoptr(LinuxGuest) guest = linux_guest_new(&(LinuxPlan){ 0 });
        g_autoptr(LinuxView) view = view_process(guest);
        const uint64_t mm = linux_guest_add_mm(guest);
        const uint64_t task = linux_guest_add_task(guest, "perl", 77, mm);
        UprofRegs *regs = &guest->memory->regs[0];
        UprofLinuxTask found;

        linux_guest_put(guest, task + TASK_STACK, other_stack);
        linux_guest_run(guest, 0, task, true);
        linux_guest_put(guest, guest->cpu_areas[0] + CPU_CURRENT, LINUX_DIRECT + guest->task);
        regs->sp = changes[i].sp;
        if (changes[i].part != NONE)
            regs->reg[UPROF_X86_RBX] = LINUX_DIRECT + task + (uint64_t)changes[i].part;
        uprof_mem_forget(view->mem);
        linux_view_sample(view, 0);
        g_assert_true(uprof_linux_task(view->kernel, view->snapshot, &found));
        g_assert_cmpstr(found.name, ==, changes[i].name);
    }
}

/* The kernel has changed to the page tables of the next process, and is on the stack of the old
 * one. */
static void
test_other_tables(void)
{
    static const struct {
        uint64_t sp;
        uint8_t privilege;
        bool has_process;
    } samples[] = {
        { LINUX_KERNEL_STACK + 0x3f00, 0, true },
        { LINUX_KERNEL_STACK + 0x8000, 0, false },
        { LINUX_KERNEL_STACK + 0x3f00, 3, false },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(samples); i++) {
        g_autoptr(LinuxGuest) guest = linux_guest_new(&(LinuxPlan){ 0 });
        g_autoptr(LinuxView) view = view_process(guest);
        UprofRegs *regs = &guest->memory->regs[0];

        linux_guest_run(guest, 0, guest->task, true);
        regs->sp = samples[i].sp;
        regs->privilege = samples[i].privilege;
        linux_view_sample(view, 0);
        g_assert_null(uprof_space_tables(view->space));
        regs->sys[UPROF_X86_CR3] = guest->root;
        linux_view_sample(view, 0);
        g_assert_cmpint(uprof_space_has_process(view->space), ==, samples[i].has_process);
        const UprofRegs *own = uprof_space_tables(view->space);
        g_assert_cmpint(own != NULL, ==, samples[i].has_process);
        if (own) {
            g_assert_cmphex(own->sys[UPROF_X86_CR3], ==, guest->process_root);
            check_name(view, CODE, "[nginx+0x1234]");
        }
    }
}

/* 256 processes run in turn: each has its name, and all share one module. */
static void
test_many_processes(void)
{
    enum { N = 256, ROUNDS = 20 };
    g_autoptr(LinuxGuest) guest = linux_guest_new(&(LinuxPlan){ .more_bytes = N * 0x100 });
    g_autoptr(LinuxView) view = view_process(guest);
    const uint64_t symbol_address = uprof_space_symbol_address(view->space, CODE);
    uint64_t tasks[N];
    gint before = 0;

    for (unsigned i = 0; i < N; i++) {
        g_autofree char *name = g_strdup_printf("storm-%u", i);
        tasks[i] = linux_guest_add_task(guest, name, 1000 + i, linux_guest_add_mm(guest));
    }
    for (unsigned i = 0; i < N * ROUNDS; i++) {
        g_autofree char *name = g_strdup_printf("storm-%u", i % N);
        UprofLinuxTask task;
        if (i == N)
            before = guest->memory->tally->spans;
        linux_guest_run(guest, 0, tasks[i % N], i % 2);
        linux_view_sample(view, 0);
        g_assert_true(uprof_linux_task(view->kernel, view->snapshot, &task));
        g_assert_cmpstr(task.name, ==, name);
        g_assert_cmphex(uprof_space_symbol_address(view->space, CODE), ==, symbol_address);
    }
    /* after the first round nothing is read, because all is remembered */
    g_assert_cmpint(guest->memory->tally->spans, ==, before);
}

/* There are more processes than virt-uprof remembers. Each process has a file of its own. */
static void
test_too_many_processes(void)
{
    enum { N = UPROF_SPACE_PROCESSES_MAX + 100 };
    g_autoptr(LinuxGuest) guest = linux_guest_new(&(LinuxPlan){ .more_bytes = N * 0x100 });
    g_autoptr(LinuxView) view = view_process(guest);
    const uint64_t entry = find_structure(guest, IN_ENTRY);

    linux_guest_put(guest, guest->heads[0], 0);
    for (unsigned i = 0; i < N; i++) {
        g_autofree char *file = g_strdup_printf("file-%u", i);
        linux_guest_put_text(guest, entry + ENTRY_CHARS, file);
        const uint64_t mm = linux_guest_add_mm(guest);
        linux_guest_run(guest, 0, linux_guest_add_task(guest, "storm", 1 + i, mm), false);
        view->time_ns += UPROF_MEM_KEEP_NS;
        linux_view_sample(view, 0);
        g_autofree char *name = g_strdup_printf("[file-%u+0x1234]", i);
        check_name(view, CODE, i < UPROF_SYM_MODULES_MAX ? name : "[unknown]");
    }
}

static void
change_memory(MemoryGuest *memory, MemoryCall call, gint n)
{
    GRand *random = memory->hook_data;

    if (call != MEMORY_READ)
        return;
    for (unsigned i = 0; i < 8; i++) {
        /* the kernel is not changed */
        const gint32 low = (gint32)linux_guest_image(LINUX_IMAGE_BYTES);
        const gint32 at = g_rand_int_range(random, low / 8, (gint32)memory->ram_len / 8) * 8;
        const gint32 from = g_rand_int_range(random, low / 8, (gint32)memory->ram_len / 8) * 8;
        memcpy(memory->ram + at, memory->ram + from, 8);
    }
}

static void
test_changing_memory(void)
{
    unsigned n_known = 0;

    for (guint32 seed = 0; seed < 80; seed++) {
        g_autoptr(LinuxGuest) guest = linux_guest_new(&(LinuxPlan){ .is_red_black = seed % 2 });
        g_autoptr(LinuxView) view = view_process(guest);
        g_autoptr(GRand) random = g_rand_new_with_seed(seed);

        guest->memory->hook = change_memory;
        guest->memory->hook_data = random;
        for (unsigned i = 0; i < 50; i++) {
            view->time_ns += 2 * UPROF_MEM_KEEP_NS;
            linux_view_sample(view, 0);
            const gint before = guest->memory->tally->spans;
            const char *name = linux_view_name(view, CODE);
            g_assert_cmpint(guest->memory->tally->spans - before, <=, 2 * READS_MAX);
            /* a change may also hit the kernel's tables: then the name is an address */
            g_assert_true(name[0] == '[' || strcmp(name, "0x555555555234") == 0);
            n_known += strcmp(name, "[nginx+0x1234]") == 0;
        }
        guest->memory->hook = NULL;
    }
    g_assert_cmpuint(n_known, >, 200);
}

#define ADD_CASES(path, table, test)                                                               \
    for (size_t i = 0; i < G_N_ELEMENTS(table); i++) {                                             \
        g_autofree char *name = g_strdup_printf("/space/" path "/%s", table[i].name);              \
        g_test_add_data_func(name, GSIZE_TO_POINTER(i), test);                                     \
    }

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    ADD_CASES("areas", guests, test_areas);
    ADD_CASES("cached-page", cached_pages, test_cached_pages);
    ADD_CASES("paths", paths, test_paths);
    ADD_CASES("roots", roots, test_roots);
    ADD_CASES("malformed", malformed, test_malformed);
    g_test_add_func("/space/cached-trees", test_cached_trees);
    g_test_add_func("/space/mapped-twice", test_mapped_twice);
    g_test_add_func("/space/kernel-thread", test_kernel_thread);
    g_test_add_data_func("/space/deep-maple-tree", GINT_TO_POINTER(false), test_deep_tree);
    g_test_add_data_func("/space/deep-red-black-tree", GINT_TO_POINTER(true), test_deep_tree);
    g_test_add_func("/space/endless-name", test_endless_name);
    g_test_add_func("/space/too-many-lookups", test_too_many_lookups);
    g_test_add_func("/space/many-areas", test_many_areas);
    g_test_add_func("/space/memory-file/usual", test_memory_file);
    g_test_add_func("/space/memory-file/shared", test_memory_file_shared);
    g_test_add_func("/space/memory-file/host-file-first", test_host_file_first);
    g_test_add_func("/space/memory-file/host-file-without-rules", test_host_file_with_memory);
    g_test_add_data_func("/space/memory-file/grows", GUINT_TO_POINTER(0xcd),
                         test_memory_file_grows);
    g_test_add_data_func("/space/memory-file/another", GUINT_TO_POINTER(0xce),
                         test_memory_file_grows);
    g_test_add_func("/space/memory-file/replaced", test_memory_file_replaced);
    g_test_add_func("/space/memory-file/budget", test_memory_file_budget);
    g_test_add_func("/space/memory-file/vdso", test_vdso);
    g_test_add_func("/space/code-bytes", test_code_bytes);
    g_test_add_func("/space/root", test_root);
    g_test_add_func("/space/remap", test_remap);
    g_test_add_func("/space/reused-memory", test_reused_memory);
    g_test_add_func("/space/perf-map/usual", test_perf_map);
    g_test_add_func("/space/perf-map/grows", test_perf_map_grows);
    g_test_add_func("/space/perf-map/gap", test_perf_map_with_gap);
    g_test_add_func("/space/jitdump", test_jitdump);
    g_test_add_func("/space/jitdump/perf-map-too", test_both_files);
    g_test_add_func("/space/perf-map/other-names", test_other_names);
    g_test_add_func("/space/perf-map/closed", test_perf_map_closed);
    g_test_add_func("/space/perf-map/another-process", test_perf_map_of_another);
    g_test_add_func("/space/perf-map/shared-memory", test_perf_map_of_shared_memory);
    g_test_add_func("/space/task-change", test_task_change);
    g_test_add_func("/space/other-tables", test_other_tables);
    g_test_add_func("/space/many-processes", test_many_processes);
    g_test_add_func("/space/too-many-processes", test_too_many_processes);
    g_test_add_func("/space/changing-memory", test_changing_memory);
    return g_test_run();
}
