/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * debug-file-priv.h - the separate debug file of an image
 */
#pragma once

#include "file-bytes-priv.h"
#include "uprof/elf-image.h"

/** UprofDebugFile: both members are owned */
typedef struct {
    UprofFileBytes *file;
    UprofElfImage elf; /* points into @file */
} UprofDebugFile;

/**
 * uprof_debug_file_find:
 * @file: of the image
 * @image: parsed from @file
 * @folders: for debug files; ends with %NULL
 * @opener: (nullable): opens files that lie beside the image
 * @room: bytes of memory that are left for symbols
 * @hint: (out) (nullable) (transfer full): why a file that was found is not used
 *
 * A debug file must be of the same build: both build-ids are equal. If one of the files has no
 * build-id, the checksum must be that of .gnu_debuglink, or the code must lie at the same
 * addresses, with the same bytes where both files have them.
 *
 * Returns: (transfer full) (nullable): %NULL if there is none
 */
UprofDebugFile *uprof_debug_file_find(const UprofFileBytes *file, const UprofElfImage *image,
                                      const char *const *folders, const UprofSymOpener *opener,
                                      uint64_t room, char **hint);
void uprof_debug_file_free(UprofDebugFile *debug);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofDebugFile, uprof_debug_file_free)
