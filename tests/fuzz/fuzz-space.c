/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Trees of areas (maple tree, red-black tree), of cached pages (xarray), of directory entries and
 * mounts, mapped files, and the running tasks, in a guest whose kernel is known. Changes of the
 * kernel itself are in fuzz-linux.c. The bits of the first byte describe the guest: bit 0, with a
 * red-black tree; bit 1, with page-table isolation; bit 2, with pcpu_hot. Changes of 11 bytes
 * follow: 16 bits, the number of the word, from the page tables of the process on; a byte, whose
 * bits 0 and 1 are SET to NODE; and a value of 64 bits.
 */
#include "fuzz.h"

#include <errno.h>
#include <string.h>

#include "build-mapped.h"
#include "linux-guest.h"
#include "uprof/regular-file.h"
#include "../../src/linux/current-task-priv.h"
#include "../../src/linux/file-path-priv.h"
#include "../../src/linux/kernel-priv.h"

enum {
    IS_RED_BLACK = 1,
    HAS_ISOLATION = 2,
    HAS_HOT = 4,
    N_KINDS = 8,
    CHANGE_BYTES = 11,
    CHANGES_MAX = 64,
    N_VCPUS = 2,
    N_AREAS = 24,
    SPANS_MAX = 16 * 1024, /* of a sample; each lookup reads some words */
};

/* How a word changes. POINT: to a word of this memory. NODE: to a node, with a low byte. */
enum { SET, XOR, POINT, NODE, HOW = 3 };

/* Each kind of guest is made once, and its kernel is found once. */
typedef struct {
    LinuxGuest *guest;
    LinuxView *view;
    uint8_t *ram;
    uint64_t from; /* guest-physical address of the first word that changes */
} Known;

/* The first input of a kind also makes the guest. */
FuzzBounds
fuzz_bounds(void)
{
    return (FuzzBounds){
        .base_ms = 300,
        .us_per_kib = 5 * 1000,
        .base_kib = 16 * 1024,
        .bytes_per_byte = 1024,
        .n_mutations = 100,
    };
}

/* No file of this host is opened. */
static int
refuse_file(const UprofFileRequest *request, void *data)
{
    errno = ENOENT;
    return -1;
}

/* The page cache has all pages of the second file, a library. */
static void
cache_library(LinuxGuest *guest)
{
    g_autoptr(GByteArray) file = build_mapped(0xcd);
    const uint64_t gpa = linux_guest_alloc(guest, file->len, MAPPED_PAGE);

    memory_guest_put(guest->memory, gpa, file->data, file->len);
    for (unsigned i = 0; i < MAPPED_N_PAGES; i++)
        linux_guest_cache(guest, 1, i, gpa + (uint64_t)i * MAPPED_PAGE);
}

static Known *
get_known(unsigned kind)
{
    static LinuxArea areas[N_AREAS];
    static Known known[N_KINDS];
    Known *one = &known[kind];
    const LinuxPlan plan = {
        .n_vcpus = N_VCPUS,
        .is_red_black = kind & IS_RED_BLACK,
        .has_isolation = kind & HAS_ISOLATION,
        .has_hot = kind & HAS_HOT,
        .areas = areas,
        .n_areas = N_AREAS,
        .more_bytes = 2 * MAPPED_BYTES,
    };

    if (!one->guest) {
        uprof_regular_file_delegate(refuse_file, NULL);
        linux_areas_fill(areas, N_AREAS);
        one->guest = linux_guest_new(&plan);
        cache_library(one->guest);
        one->view = linux_view_new(one->guest);
        linux_view_sample(one->view, 0);
        linux_view_sample(one->view, 0);
        g_assert(uprof_linux_offsets(one->view->kernel)->has_areas);
        one->ram = g_memdup2(one->guest->memory->ram, one->guest->memory->ram_len);
        one->from = one->guest->process_root;
    }
    memcpy(one->guest->memory->ram, one->ram, one->guest->memory->ram_len);
    uprof_mem_forget(one->view->mem);
    return one;
}

static uint64_t
read_number(const uint8_t *data, unsigned len)
{
    uint64_t number = 0;

    for (unsigned i = 0; i < len; i++)
        number |= (uint64_t)data[i] << 8 * i;
    return number;
}

static uint64_t
change_word(const Known *known, uint64_t before, unsigned how, uint64_t value)
{
    const uint64_t len = known->guest->free - known->from;

    switch (how) {
    case SET:
        return value;
    case XOR:
        return before ^ value;
    case POINT:
        return LINUX_DIRECT + known->from + value % len;
    default:
        return ((LINUX_DIRECT + known->from + (value >> 8) % len) & ~UINT64_C(0xff)) |
               (value & 0xff);
    }
}

static void
change_words(const Known *known, UprofSlice changes)
{
    const size_t n = MIN(changes.len / CHANGE_BYTES, (size_t)CHANGES_MAX);

    for (size_t i = 0; i < n; i++) {
        const uint8_t *change = (const uint8_t *)changes.data + i * CHANGE_BYTES;
        const uint64_t gpa = known->from + 8 * read_number(change, 2);
        if (gpa >= known->guest->free)
            continue;
        linux_guest_put(known->guest, gpa,
                        change_word(known, linux_guest_get(known->guest, gpa), change[2] & HOW,
                                    read_number(change + 3, 8)));
    }
}

/* ---- Checks ---- */

static void
check_path(const char *path)
{
    const size_t len = strlen(path);

    g_assert(path[0] == '/' && len > 1 && len < 2 * UPROF_LINUX_PATH_BYTES_MAX);
    g_assert(!strstr(path, "//") && !strstr(path, "/../") && !strstr(path, "/./"));
    g_assert(!g_str_has_suffix(path, "/") && !g_str_has_suffix(path, "/.."));
}

static void
check_paths(const Known *known)
{
    const UprofKernelMemory memory = uprof_linux_memory(known->view->kernel, known->view->mem);

    for (unsigned i = 0; i < LINUX_FILES; i++) {
        g_autofree char *path =
            uprof_linux_path_read(uprof_linux_offsets(known->view->kernel), &memory,
                                  LINUX_DIRECT + known->guest->files[i]);
        if (path)
            check_path(path);
    }
}

static void
check_links(const Known *known)
{
    const UprofLinux *kernel = known->view->kernel;
    const UprofKernelMemory memory = uprof_linux_memory(kernel, known->view->mem);
    g_autofree UprofLinks *links = uprof_linux_links_make(
        uprof_linux_arch(kernel), uprof_linux_symbols(kernel), uprof_linux_offsets(kernel),
        uprof_linux_maps(kernel), NULL, &memory, N_VCPUS);

    g_assert(links->n_vcpus == N_VCPUS && links->task_len <= UPROF_LINKS_TASK_BYTES_MAX);
    for (unsigned i = 0; i < N_VCPUS; i++) {
        const UprofLinksVcpu *vcpu = &links->vcpus[i];
        g_assert(vcpu->task_at == 0 || vcpu->task_at >= links->kernel_from);
        g_assert(vcpu->irq_at == 0 || vcpu->irq_at >= links->kernel_from - 8);
    }
}

static void
check_task(const LinuxView *view)
{
    UprofLinuxTask task;

    if (!uprof_linux_task(view->kernel, view->snapshot, &task))
        return;
    g_assert(task.name[0] != '\0' && memchr(task.name, '\0', sizeof(task.name)));
    g_assert(task.pid <= 4 * 1024 * 1024 && task.process <= 4 * 1024 * 1024);
}

static void
check_modules(const UprofSym *sym)
{
    UprofSymModule module;

    for (unsigned i = 1; uprof_sym_module(sym, i, &module); i++) {
        g_assert(module.label[0] == '[' && g_utf8_validate(module.label, -1, NULL));
        g_assert(strspn(module.label, G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "_.-[]") ==
                 strlen(module.label));
        g_assert(!module.path);
    }
}

static void
look_up(UprofSpace *space, UprofSym *sym, uint64_t pc)
{
    const uint64_t place = uprof_space_symbol_address(space, pc);
    const char *name = uprof_name_text(uprof_sym_find(sym, place, false).name);
    uint8_t code[64];
    const UprofCfi *cfi;

    g_assert(place == pc ? pc >= UPROF_UPPER_HALF : place < UPROF_UPPER_HALF);
    g_assert(name[0] != '\0' && g_utf8_validate(name, -1, NULL));
    uprof_sym_rule(sym, place, &cfi);
    uprof_space_read_code(space, pc, code, sizeof(code));
}

/* Takes a sample on @vcpu: names code in each area, and around it. */
static void
take_sample(const Known *known, UprofSpace *space, UprofSym *sym, unsigned vcpu)
{
    static const uint64_t others[] = { LINUX_IMAGE, LINUX_STACK, 0, UINT64_MAX >> 1, UINT64_MAX };
    const MemoryTally *tally = known->guest->memory->tally;
    LinuxView *view = known->view;
    const gint before = tally->spans;

    linux_view_begin(view, vcpu);
    linux_view_copy_task(view, vcpu);
    uprof_mem_begin_sample(view->mem, view->snapshot->time_ns, view->reset);
    uprof_space_begin(space, view->mem, view->snapshot);
    check_task(view);
    for (unsigned i = 0; i < N_AREAS; i++)
        look_up(space, sym, known->guest->plan.areas[i].start + 0x123 * i);
    for (size_t i = 0; i < G_N_ELEMENTS(others); i++)
        look_up(space, sym, others[i]);
    g_assert(tally->spans - before <= SPANS_MAX);
}

void
fuzz_input(const uint8_t *data, size_t size)
{
    if (size < 1)
        return;
    const Known *known = get_known(data[0] % N_KINDS);
    g_autoptr(UprofNames) names = uprof_names_new();
    g_autoptr(UprofSym) sym = uprof_sym_new(known->guest->memory->base.arch, names);
    g_autoptr(UprofSpace) space = uprof_space_new(known->view->kernel, sym);

    change_words(known, (UprofSlice){ data + 1, size - 1 });
    for (unsigned i = 0; i < N_VCPUS; i++)
        take_sample(known, space, sym, i);
    check_paths(known);
    check_links(known);
    check_modules(sym);
}
