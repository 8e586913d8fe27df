/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A path is built from the file's directory entry up to the root. At the root of a file system
 * the walk continues at the mount point (Linux, fs/d_path.c and fs/mount.h).
 */
#include "file-path-priv.h"

#include <string.h>

typedef struct {
    const UprofLinuxOffsets *offsets;
    const UprofKernelMemory *memory;
} Reader;

/* Where the walk up to the root is now; addresses in the guest. */
typedef struct {
    uint64_t dentry;
    uint64_t mount; /* 0 if mounts are not known */
} Position;

static bool
read_name(const Reader *reader, uint64_t dentry, char *name)
{
    uint64_t text;

    return uprof_kernel_read_word(reader->memory, dentry + reader->offsets->dentry_name, &text) &&
           uprof_kernel_read_name(reader->memory, text, name);
}

static bool
begin_walk(const Reader *reader, uint64_t file, Position *at)
{
    const UprofLinuxOffsets *offsets = reader->offsets;

    at->mount = 0;
    if (!uprof_kernel_read_word(reader->memory, file + offsets->file_dentry, &at->dentry))
        return false;
    if (!offsets->has_mounts)
        return true;
    if (!uprof_kernel_read_word(reader->memory, file + offsets->file_vfsmount, &at->mount))
        return false;
    at->mount -= offsets->mount_vfsmount;
    return true;
}

/* Goes from a file system's root to its mount point. @is_end: (out): it is not mounted */
static bool
leave_mount(const Reader *reader, Position *at, bool *is_end)
{
    const UprofLinuxOffsets *offsets = reader->offsets;
    uint64_t parent;

    if (!uprof_kernel_read_word(reader->memory, at->mount + offsets->mount_parent, &parent) ||
        !uprof_kernel_read_word(reader->memory, at->mount + offsets->mount_point, &at->dentry))
        return false;
    *is_end = parent == at->mount;
    at->mount = parent;
    return true;
}

/* Adds one part to @path. @is_end: (out): the root is reached */
static bool
go_up(const Reader *reader, Position *at, GString *path, bool *is_end)
{
    const UprofLinuxOffsets *offsets = reader->offsets;
    char name[UPROF_KERNEL_NAME_BYTES];
    uint64_t root, parent;

    *is_end = false;
    if (at->mount != 0) {
        if (!uprof_kernel_read_word(reader->memory,
                                    at->mount + offsets->mount_vfsmount + offsets->vfsmount_root,
                                    &root))
            return false;
        if (at->dentry == root)
            return leave_mount(reader, at, is_end);
    }
    if (!uprof_kernel_read_word(reader->memory, at->dentry + offsets->dentry_parent, &parent))
        return false;
    *is_end = parent == at->dentry;
    if (*is_end)
        return true;
    if (!read_name(reader, at->dentry, name))
        return false;
    g_string_prepend(path, name);
    g_string_prepend_c(path, '/');
    at->dentry = parent;
    return path->len < UPROF_LINUX_PATH_BYTES_MAX;
}

char *
uprof_linux_path_read(const UprofLinuxOffsets *offsets, const UprofKernelMemory *memory,
                      uint64_t file)
{
    const Reader reader = { offsets, memory };
    g_autoptr(GString) path = g_string_new(NULL);
    bool is_end = false;
    Position at;

    if (!begin_walk(&reader, file, &at))
        return NULL;
    for (unsigned i = 0; i < UPROF_LINUX_PATH_PARTS_MAX && !is_end; i++)
        if (!go_up(&reader, &at, path, &is_end))
            return NULL;
    return is_end && path->len > 0 ? g_strdup(path->str) : NULL;
}
