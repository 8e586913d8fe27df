/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A file's path, from its directory entry up to the root, from one file system to the
 * one it is mounted in (Linux, fs/d_path.c and fs/mount.h).
 */
#include "linux-priv.h"

#include <string.h>

enum { NAME_BYTES = 256 }; /* NAME_MAX, and NUL */

typedef struct {
    const UprofLinuxOffsets *offsets;
    UprofMem *mem;
    unsigned vcpu;
    const UprofRegs *regs;
} Reading;

/* Where the way up has come to; @mount: 0: mounts are not known */
typedef struct {
    uint64_t entry;
    uint64_t mount;
} Step;

static bool
read_word(const Reading *reading, uint64_t gva, uint64_t *word)
{
    if (!uprof_mem_read(reading->mem, reading->vcpu, reading->regs, gva, word, sizeof(*word)))
        return false;
    *word = GUINT64_FROM_LE(*word);
    return true;
}

/* Returns: false if it cannot be read, or is no name */
static bool
read_name(const Reading *reading, uint64_t entry, char name[NAME_BYTES])
{
    uint64_t at;

    if (!read_word(reading, entry + reading->offsets->entry_name, &at))
        return false;
    /* short as they are, names lie where what follows may not be mapped */
    for (unsigned i = 0; i < NAME_BYTES; i++) {
        if (!uprof_mem_read(reading->mem, reading->vcpu, reading->regs, at + i, &name[i], 1))
            return false;
        if (name[i] == '\0')
            return i > 0 && !strchr(name, '/') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
    }
    return false;
}

static bool
begin(const Reading *reading, uint64_t file, Step *step)
{
    const UprofLinuxOffsets *offsets = reading->offsets;

    step->mount = 0;
    if (!read_word(reading, file + offsets->entry, &step->entry))
        return false;
    if (!offsets->has_mounts)
        return true;
    if (!read_word(reading, file + offsets->mount, &step->mount))
        return false;
    step->mount -= offsets->mounted;
    return true;
}

/* From a file system's root to where it is mounted. @is_end: (out): it is mounted nowhere */
static bool
leave_mount(const Reading *reading, Step *step, bool *is_end)
{
    const UprofLinuxOffsets *offsets = reading->offsets;
    uint64_t parent;

    if (!read_word(reading, step->mount + offsets->mount_parent, &parent) ||
        !read_word(reading, step->mount + offsets->mount_point, &step->entry))
        return false;
    *is_end = parent == step->mount;
    step->mount = parent;
    return true;
}

/* @is_end: (out): there is nothing above. Returns: false if it cannot be read */
static bool
go_up(const Reading *reading, Step *step, GString *path, bool *is_end)
{
    const UprofLinuxOffsets *offsets = reading->offsets;
    char name[NAME_BYTES];
    uint64_t root, parent;

    *is_end = false;
    if (step->mount != 0) {
        if (!read_word(reading, step->mount + offsets->mounted + offsets->mount_root, &root))
            return false;
        if (step->entry == root)
            return leave_mount(reading, step, is_end);
    }
    if (!read_word(reading, step->entry + offsets->entry_parent, &parent))
        return false;
    *is_end = parent == step->entry;
    if (*is_end)
        return true;
    if (!read_name(reading, step->entry, name))
        return false;
    g_string_prepend(path, name);
    g_string_prepend_c(path, '/');
    step->entry = parent;
    return path->len < UPROF_LINUX_PATH_BYTES_MAX;
}

char *
uprof_linux_path_read(const UprofLinuxOffsets *offsets, UprofMem *mem, unsigned vcpu,
                      const UprofRegs *regs, uint64_t file)
{
    const Reading reading = { offsets, mem, vcpu, regs };
    g_autoptr(GString) path = g_string_new(NULL);
    bool is_end = false;
    Step step;

    if (!begin(&reading, file, &step))
        return NULL;
    for (unsigned i = 0; i < UPROF_LINUX_PATH_PARTS_MAX && !is_end; i++)
        if (!go_up(&reading, &step, path, &is_end))
            return NULL;
    return is_end && path->len > 0 ? g_strdup(path->str) : NULL;
}
