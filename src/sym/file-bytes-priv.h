/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * file-bytes-priv.h - all bytes of a file, copied
 */
#pragma once

#include "uprof/sym-types.h"

/**
 * UprofFileBytes: a copy in memory
 *
 * The file itself is not mapped: a read of the mapping would fault after somebody has truncated it.
 * Its holes are not copied: reading them gives zeros and takes no memory.
 */
typedef struct {
    char *path;     /* absolute; owned */
    uint8_t *bytes; /* owned */
    size_t len;
    size_t n_used; /* bytes of memory: @len without the holes of a sparse file */
} UprofFileBytes;

/**
 * uprof_file_bytes_read:
 * @name: of the file, for messages
 * @opener: (nullable): %NULL opens the file by its path, with the user's rights
 *
 * Returns: (transfer full) (nullable): %NULL if it is not a regular file, is empty or too large,
 *   or cannot be read
 */
UprofFileBytes *uprof_file_bytes_read(const char *path, const char *name,
                                      const UprofSymOpener *opener, GError **error);
void uprof_file_bytes_free(UprofFileBytes *file);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofFileBytes, uprof_file_bytes_free)

/** uprof_file_bytes_slice: Returns: borrowed */
UprofSlice uprof_file_bytes_slice(const UprofFileBytes *file);
