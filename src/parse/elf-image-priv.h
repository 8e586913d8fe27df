/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * elf-image-priv.h - limits that only this module and its tests know
 */
#pragma once

#include <stdint.h>

enum {
    UPROF_ELF_RANGES_MAX = 4096,
    UPROF_ELF_SECTIONS_MAX = 65535,
    UPROF_ELF_SEGMENTS_MAX = 65535,
};

#define UPROF_ELF_FILE_BYTES_MAX (UINT64_C(2) << 30)
