/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * file-path-priv.h - the path of a file in the guest
 */
#pragma once

#include "kernel-memory-priv.h"
#include "kernel-offsets-priv.h"

enum {
    UPROF_LINUX_PATH_BYTES_MAX = 4096, /* Linux, include/uapi/linux/limits.h, PATH_MAX */
    UPROF_LINUX_PATH_PARTS_MAX = 128,  /* folders, and mounts between them */
};

/**
 * uprof_linux_path_read:
 * @offsets: with areas
 * @file: address of the struct file
 *
 * The path has fewer than %UPROF_LINUX_PATH_BYTES_MAX bytes, of any value. No part of it is empty,
 * "." or "..". If mounts are not known, the path begins at the root of the file's own file system.
 *
 * Returns: (transfer full) (nullable): "/usr/sbin/nginx"; %NULL if it cannot be read or is
 *   malformed
 */
char *uprof_linux_path_read(const UprofLinuxOffsets *offsets, const UprofKernelMemory *memory,
                            uint64_t file);
