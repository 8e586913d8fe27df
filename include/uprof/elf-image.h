/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * elf-image.h - what the analysis needs of an ELF file, through libelf
 *
 * Also sees through the ELF32 wrapper that Unikraft puts around its 64-bit
 * images so that multiboot loaders take them: multiboot magic 0x1BADB002 at
 * byte 52, ELF32 program headers behind the multiboot header, and the whole
 * ELF64 file at 64 + 32 x e_phnum (support/scripts/multiboot.py of Unikraft).
 */
#pragma once

#include "uprof/bytes.h"
#include "uprof/symbol.h"

enum {
    UPROF_ELF_RANGES_MAX = 4096,
    UPROF_ELF_SECTIONS_MAX = 65535,
    UPROF_ELF_SEGMENTS_MAX = 65535,
    UPROF_ELF_BUILD_ID_BYTES_MAX = 64,
};
#define UPROF_ELF_FILE_BYTES_MAX (UINT64_C(2) << 30)

/**
 * UprofElfRange: executable bytes
 * @start: link address
 * @len: bytes in memory
 * @bytes: those that are in the file, borrowed; fewer than @len, or none in a debug file
 */
typedef struct {
    uint64_t start;
    uint64_t len;
    UprofSlice bytes;
} UprofElfRange;

/**
 * UprofElfImage:
 * @word_bytes: 4 or 8
 * @machine: e_machine
 * @entry: e_entry, link address
 * @is_wrapped: was found inside an ELF32 wrapper
 * @build_id: borrowed; no bytes if there is none
 * @symbols: of UprofSymbol, owned; from .symtab, else .dynsym; empty if stripped
 * @text: of UprofElfRange, owned: the executable sections, or where there are
 *   no section headers the executable segments; sorted, not overlapping (what
 *   two ranges claim is the first one's)
 */
typedef struct {
    uint8_t word_bytes;
    bool big_endian;
    uint16_t machine;
    uint64_t entry;
    bool is_wrapped;
    UprofSlice build_id;
    GArray *symbols;
    GArray *text;
} UprofElfImage;

/** uprof_elf_is: Returns: whether @file begins like an ELF file */
bool uprof_elf_is(UprofSlice file);

/**
 * uprof_elf_parse:
 * @file: the whole file; must outlive @image
 * @name: of the file, for messages
 * @image: (out): filled on success; end with uprof_elf_clear()
 *
 * Keeps FUNC, GNU_IFUNC, and NOTYPE in executable sections; drops section and
 * file symbols, undefined ones, ".L*", and "$x"/"$d" mapping symbols; strips
 * "@VERSION". Data symbols are kept with code = false only where they lie in an
 * executable section.
 *
 * Returns: false with %UPROF_ERROR_BAD_DATA or %UPROF_ERROR_UNSUPPORTED
 */
bool uprof_elf_parse(UprofSlice file, const char *name, UprofElfImage *image, GError **error);
void uprof_elf_clear(UprofElfImage *image);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(UprofElfImage, uprof_elf_clear)
