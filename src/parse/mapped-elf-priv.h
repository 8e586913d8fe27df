/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * mapped-elf-priv.h - limits that only this module and its tests know
 */
#pragma once

enum {
    UPROF_MAPPED_ELF_PART_BYTES_MAX = 28 * 1024 * 1024, /* of one table */
    UPROF_MAPPED_ELF_BYTES_MAX = 32 * 1024 * 1024,      /* of all that is read */
    UPROF_MAPPED_ELF_SYMBOLS_MAX = 256 * 1024,          /* in one table */
    UPROF_MAPPED_ELF_FRAMES_MAX = 512 * 1024,
    UPROF_MAPPED_ELF_SEGMENTS_MAX = 64,
};
