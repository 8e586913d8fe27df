/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "../../../src/linux/file-path-priv.h"
#include "memory-guest.h"

/*
 * Each directory entry and each mount has a unit of UNIT bytes, with a name in its second half.
 * Unit 0 is the file. The offsets of members are not from a real kernel.
 */
enum {
    UNIT = 1024,
    NAME_AT = 512,
    UNITS = 256,
    FILE_UNIT = 0,
    ENTRIES = 1, /* unit of the first entry */
    ENTRIES_MAX = 8,
    MOUNTS = 200,
    NONE = -1,
    OUTSIDE = -2, /* an address without memory */
};

static const UprofLinuxOffsets offsets = {
    .file_dentry = 24,
    .dentry_name = 40,
    .dentry_parent = 72,
    .has_mounts = true,
    .file_vfsmount = 16,
    .mount_vfsmount = 32,
    .vfsmount_root = 8,
    .mount_parent = 96,
    .mount_point = 104,
};

typedef struct {
    const char *name;
    int parent; /* number of an entry; a root is its own parent */
} Entry;

typedef struct {
    int root;   /* number of an entry */
    int parent; /* number of a mount; the root mount is its own parent */
    int point;  /* number of an entry */
} Mount;

/* clang-format off */
static const struct {
    const char *name;
    Entry entries[ENTRIES_MAX];
    Mount mounts[4];
    int file, mount; /* entry and mount that the struct file has */
    bool has_no_mounts;
    const char *path; /* NULL: no path is found */
} cases[] = {
    { "plain", { { "/", 0 }, { "usr", 0 }, { "nginx", 1 } }, { { 0, 0, 0 } }, 2, 0, false, "/usr/nginx" },
    { "at-root", { { "/", 0 }, { "init", 0 } }, { { 0, 0, 0 } }, 1, 0, false, "/init" },
    { "two-mounts", { { "/", 0 }, { "usr", 0 }, { "/", 2 }, { "lib", 2 }, { "libc.so", 3 } },
      { { 0, 0, 0 }, { 2, 0, 1 } }, 4, 1, false, "/usr/lib/libc.so" },
    { "mount-on-mount", { { "/", 0 }, { "usr", 0 }, { "/", 2 }, { "/", 3 }, { "x", 3 } },
      { { 0, 0, 0 }, { 2, 0, 1 }, { 3, 1, 2 } }, 4, 2, false, "/usr/x" },
    { "bound", { { "/", 0 }, { "srv", 0 }, { "app", 1 }, { "bin", 2 } }, { { 2, 0, 2 } }, 3, 0, false, "/bin" },
    { "no-mounts", { { "/", 0 }, { "usr", 0 }, { "/", 2 }, { "libc.so", 2 } }, { { 0, 0, 0 } }, 3, 0, true, "/libc.so" },
    { "strange-bytes", { { "/", 0 }, { "a b\xff\n;", 0 } }, { { 0, 0, 0 } }, 1, 0, false, "/a b\xff\n;" },
    /* malformed structures */
    { "itself", { { "/", 0 } }, { { 0, 0, 0 } }, 0, 0, false, NULL },
    { "two-dots", { { "/", 0 }, { "..", 0 }, { "etc", 1 } }, { { 0, 0, 0 } }, 2, 0, false, NULL },
    { "dot", { { "/", 0 }, { ".", 0 } }, { { 0, 0, 0 } }, 1, 0, false, NULL },
    { "slash", { { "/", 0 }, { "../../etc/shadow", 0 } }, { { 0, 0, 0 } }, 1, 0, false, NULL },
    { "empty-name", { { "/", 0 }, { "", 0 } }, { { 0, 0, 0 } }, 1, 0, false, NULL },
    { "circle", { { "a", 1 }, { "b", 0 } }, { { NONE, 0, 0 } }, 1, 0, false, NULL },
    { "circle-without-mounts", { { "a", 1 }, { "b", 0 } }, { { 0 } }, 1, 0, true, NULL },
    { "circle-of-mounts", { { "/", 0 }, { "a", 0 } }, { { 0, 1, 0 }, { 0, 0, 0 } }, 1, 0, false, NULL },
    { "parent-outside", { { "a", OUTSIDE } }, { { NONE, 0, 0 } }, 0, 0, false, NULL },
    { "entry-outside", { { "a", 0 } }, { { NONE, 0, 0 } }, OUTSIDE, 0, false, NULL },
    { "mount-outside", { { "/", 0 }, { "a", 0 } }, { { 0, 0, 0 } }, 1, OUTSIDE, false, NULL },
    { "mounted-outside", { { "/", 0 }, { "a", 0 } }, { { 0, OUTSIDE, 0 } }, 1, 0, false, NULL },
};
/* clang-format on */

#define NOWHERE UINT64_C(0x7fffffff0000)

static uint64_t
make_address(int first, int number)
{
    return number == OUTSIDE ? NOWHERE : number == NONE ? 0 : (uint64_t)(first + number) * UNIT;
}

static MemoryGuest *
open_guest(void)
{
    const MemoryPlan plan = { .n_vcpus = 1, .grain = UPROF_GRAIN_GUEST, .ram_len = UNITS * UNIT };
    MemoryGuest *guest = memory_guest_open(&plan);

    memory_guest_identity(guest, 0, 0, 0, 0);
    return guest;
}

static void
put_entry(MemoryGuest *guest, int number, const char *name, int parent)
{
    const uint64_t at = make_address(ENTRIES, number);

    memory_guest_put(guest, at + NAME_AT, name, strlen(name) + 1);
    memory_guest_put_u64(guest, at + offsets.dentry_name, at + NAME_AT);
    memory_guest_put_u64(guest, at + offsets.dentry_parent, make_address(ENTRIES, parent));
}

static void
put_file(MemoryGuest *guest, int entry, int mount)
{
    memory_guest_put_u64(guest, FILE_UNIT + offsets.file_dentry, make_address(ENTRIES, entry));
    memory_guest_put_u64(guest, FILE_UNIT + offsets.file_vfsmount,
                         make_address(MOUNTS, mount) + offsets.mount_vfsmount);
}

static void
put_mount(MemoryGuest *guest, int number, const Mount *mount)
{
    const uint64_t at = make_address(MOUNTS, number);

    memory_guest_put_u64(guest, at + offsets.mount_vfsmount + offsets.vfsmount_root,
                         make_address(ENTRIES, mount->root));
    memory_guest_put_u64(guest, at + offsets.mount_parent, make_address(MOUNTS, mount->parent));
    memory_guest_put_u64(guest, at + offsets.mount_point, make_address(ENTRIES, mount->point));
}

static char *
read_path(MemoryGuest *guest, bool has_no_mounts)
{
    g_autoptr(UprofMem) mem = uprof_mem_new(&guest->base, UPROF_LANE_WORKER);
    UprofLinuxOffsets known = offsets;

    known.has_mounts = !has_no_mounts;
    const UprofKernelMemory memory = { .mem = mem, .vcpu = 0, .regs = &guest->regs[0] };
    uprof_mem_begin_sample(mem, 1, 0);
    return uprof_linux_path_read(&known, &memory, FILE_UNIT);
}

static void
test_case(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_autoptr(MemoryGuest) guest = open_guest();

    for (int n = 0; n < ENTRIES_MAX && cases[i].entries[n].name; n++)
        put_entry(guest, n, cases[i].entries[n].name, cases[i].entries[n].parent);
    for (int n = 0; n < (int)G_N_ELEMENTS(cases[i].mounts); n++)
        put_mount(guest, n, &cases[i].mounts[n]);
    put_file(guest, cases[i].file, cases[i].mount);
    g_autofree char *path = read_path(guest, cases[i].has_no_mounts);
    g_assert_cmpstr(path, ==, cases[i].path);
}

/* The limits of depth and length, and paths that exceed them by one. */
static void
test_limits(void)
{
    static const struct {
        int depth;
        size_t len; /* of each name */
        bool is_there;
    } limits[] = { { UPROF_LINUX_PATH_PARTS_MAX - 1, 10, true },
                   { UPROF_LINUX_PATH_PARTS_MAX, 10, false },
                   { 15, 255, true },
                   { 16, 255, false },
                   { 1, 256, false } };

    for (size_t i = 0; i < G_N_ELEMENTS(limits); i++) {
        g_autoptr(MemoryGuest) guest = open_guest();
        g_autofree char *name = g_strnfill(limits[i].len, 'x');
        put_entry(guest, 0, "/", 0);
        for (int n = 1; n <= limits[i].depth; n++)
            put_entry(guest, n, name, n - 1);
        put_file(guest, limits[i].depth, 0);
        g_autofree char *path = read_path(guest, true);
        g_assert_true((path != NULL) == limits[i].is_there);
        if (path)
            g_assert_cmpuint(strlen(path), ==, (limits[i].len + 1) * (size_t)limits[i].depth);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/file-path/%s", cases[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_case);
    }
    g_test_add_func("/file-path/limits", test_limits);
    return g_test_run();
}
