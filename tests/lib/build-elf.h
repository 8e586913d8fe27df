/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * build-elf.h - small ELF files of every class and byte order, for tests
 *
 * All files have the same parts at the same offsets, so that a test can damage a chosen part.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    BUILT_SEGMENTS_AT = 0x40, /* two segments: code, note */
    BUILT_TEXT_AT = 0x100,
    BUILT_TEXT_LEN = 0x40,
    BUILT_NOTE_AT = 0x140,
    BUILT_STRINGS_AT = 0x180,
    BUILT_SYMBOLS_AT = 0x200,
    BUILT_SECTIONS_AT = 0x380,

    BUILT_TEXT_GVA = 0x401000,
    BUILT_COLD_GVA = 0x403000, /* code that is not in the file */
    BUILT_COLD_LEN = 0x20,
    BUILT_N_SECTIONS = 7,
    BUILT_N_KEPT_SYMBOLS = 8, /* symbols that the parser must keep */
};

/* Sections, in order */
enum {
    BUILT_NULL,
    BUILT_TEXT,
    BUILT_NOTE,
    BUILT_SYMBOLS,
    BUILT_STRINGS,
    BUILT_DATA,
    BUILT_COLD,
};

typedef struct {
    bool is_32;
    bool big_endian;
    bool is_stripped; /* no section headers */
    bool is_wrapped;  /* as Unikraft's images for multiboot loaders */
} BuiltElfKind;

/** build_elf: Returns: (transfer full): the file */
GByteArray *build_elf(const BuiltElfKind *kind);

/** put_number: overwrites @width bytes at @at, in the given byte order */
void put_number(GByteArray *file, size_t at, unsigned width, bool big_endian, uint64_t value);

/** built_section_at: Returns: offset of a member of section header @section (64-bit file) */
size_t built_section_at(unsigned section, size_t member);
