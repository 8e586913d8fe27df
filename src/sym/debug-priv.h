/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * debug-priv.h - the separate debug file of an image
 */
#pragma once

#include "image-priv.h"

/** UprofDebug: @elf: its bytes are those of @copy */
typedef struct {
    UprofCopy *copy;
    UprofElfImage elf;
} UprofDebug;

/**
 * uprof_debug_find:
 * @copy: the image's file
 * @image: what was found in it
 * @folders: for debug files; ends with %NULL
 * @opener: (nullable): of what lies beside the image
 * @hint: (out) (nullable) (transfer full): why a file that was found is not taken
 *
 * Only a file of the same build is taken: the build-ids are equal; where one of
 * the two has none, the checksum is that of .gnu_debuglink, or the code is at
 * the same addresses, and the same if both have it.
 *
 * Returns: (transfer full) (nullable): %NULL if there is none
 */
UprofDebug *uprof_debug_find(const UprofCopy *copy, const UprofElfImage *image,
                             const char *const *folders, const UprofSymOpener *opener, char **hint);
void uprof_debug_free(UprofDebug *debug);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofDebug, uprof_debug_free)
