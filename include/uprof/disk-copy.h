/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * disk-copy.h - copies files out of the disks of a guest into the symbol cache
 *
 * Each domain has a folder of its own in the cache (uprof_path_of_domain_files()).
 *
 * A helper program with the rights of the disks' owner, and never those of root, reads the disks
 * with libguestfs (src/fetch/disk-helper.c). libguestfs starts a small virtual machine, which
 * mounts the file systems. The disks are not written, also while the guest runs.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

enum { UPROF_DISKS_MAX = 16 }; /* of a domain; the rest is not read */

typedef struct _UprofDiskCopy UprofDiskCopy;

/** UprofDiskAnswer: the result for one file */
typedef enum {
    UPROF_DISK_COPIED,
    UPROF_DISK_MISSING, /* the disks have no such file */
    UPROF_DISK_CHANGED, /* the file has another build-id */
    UPROF_DISK_FAILED,
    UPROF_DISK_LOST, /* the helper has died: no other file can be copied */
} UprofDiskAnswer;

/**
 * uprof_disk_copy_new: starts the helper, which finds the file systems; this takes up to minutes
 * @uuid: of the domain
 * @formats, @paths: (array length=@n): of each disk, such as "qcow2"
 * @n: up to %UPROF_DISKS_MAX
 * @warning: (out) (transfer full) (nullable): why a disk is left out, safe to print
 *
 * Returns: (transfer full) (nullable): %NULL with an error if the helper is not
 *   installed, may not read the disks, or finds no operating system
 */
UprofDiskCopy *
uprof_disk_copy_new(const char *uuid, const char *const *formats, const char *const *paths,
                    unsigned n, char **warning, GError **error);
void uprof_disk_copy_free(UprofDiskCopy *copy);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofDiskCopy, uprof_disk_copy_free)

/**
 * uprof_disk_copy_file: copies a program or a library, and its debug file if the disks have it
 * @path: of the file in the guest; any bytes
 * @build_id: in lower-case hex
 * @bytes: (inout): adds what was copied
 * @why: (out) (transfer full) (nullable): of a failure, safe to print
 */
UprofDiskAnswer uprof_disk_copy_file(UprofDiskCopy *copy, const char *path, const char *build_id,
                                     uint64_t *bytes, char **why);
