/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * file-bytes-priv.h - all bytes of a file, copied
 */
#pragma once

#include "uprof/elf-image.h"
#include "uprof/sym-types.h"

enum {
    UPROF_SYM_FILE_BYTES_MAX_MIB = 2048, /* of one file */
};

/**
 * UprofFileBytes: a copy in memory
 *
 * The file itself is not mapped: a read of the mapping would fault after somebody has truncated it.
 * Holes are not copied: they stay pages that were never written, and read as zeros.
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
 * @room: bytes of memory that are left for symbols
 *
 * Returns: (transfer full) (nullable): %NULL if it is not a regular file, is empty or too large,
 *   has large holes, cannot be read, or begins neither as an ELF file nor as text
 */
UprofFileBytes *uprof_file_bytes_read(const char *path, const char *name,
                                      const UprofSymOpener *opener, uint64_t room, GError **error);

/** uprof_file_bytes_fail_room: sets the error for a file that needs more memory than @room */
void uprof_file_bytes_fail_room(const char *name, uint64_t room, GError **error);

/** uprof_file_bytes_fail_kind: sets the error for a file that has no symbols of a known format */
void uprof_file_bytes_fail_kind(const char *name, GError **error);

void uprof_file_bytes_free(UprofFileBytes *file);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofFileBytes, uprof_file_bytes_free)

/** uprof_file_bytes_slice: Returns: borrowed */
UprofSlice uprof_file_bytes_slice(const UprofFileBytes *file);

/**
 * uprof_file_bytes_parse_elf: uprof_elf_parse() for a file whose symbols must fit into @room, too
 * @room: as it was given to uprof_file_bytes_read()
 */
bool uprof_file_bytes_parse_elf(const UprofFileBytes *file, const char *name, uint64_t room,
                                UprofElfImage *elf, GError **error);
