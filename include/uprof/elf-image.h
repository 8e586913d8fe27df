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
 * UprofElfRange: executable bytes, or those of a section
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
 * @file: borrowed: the ELF file, without what wraps it
 * @has_sections: it has section headers
 * @is_wrapped: was found inside an ELF32 wrapper
 * @build_id: borrowed; no bytes if there is none
 * @build_id_at: link address of these bytes; 0 if they are not loaded
 * @first_page: link address of the first page that is loaded; without segments
 *   that of the first code
 * @symbols: of UprofSymbol, owned; from .symtab, else .dynsym; empty if stripped
 * @text: of UprofElfRange, owned: the executable sections, or where there are
 *   no section headers the executable segments; sorted, not overlapping (what
 *   two ranges claim is the first one's)
 * @eh_frame: .eh_frame; no bytes if there is none, as in a debug file
 * @debug_frame: .debug_frame; no bytes if there is none
 * @debug_data: .gnu_debugdata, an .xz file with an ELF file of symbols in it
 * @debug_link: .gnu_debuglink, the name of its debug file; @debug_link_crc: of that file
 * @has_lines: it says which lines of source its code is of
 * @unpacked: (nullable): owned; of sections that were compressed
 */
typedef struct {
    uint8_t word_bytes;
    bool big_endian;
    uint16_t machine;
    uint64_t entry;
    UprofSlice file;
    bool has_sections;
    bool is_wrapped;
    UprofSlice build_id;
    uint64_t build_id_at;
    uint64_t first_page;
    GArray *symbols;
    GArray *text;
    UprofElfRange eh_frame, debug_frame;
    UprofSlice debug_data;
    UprofSlice debug_link;
    uint32_t debug_link_crc;
    bool has_lines;
    GByteArray *unpacked;
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
 * executable section. .debug_frame may be compressed (SHF_COMPRESSED with zlib,
 * or .zdebug_frame, which begins with "ZLIB" and its length).
 *
 * Returns: false with %UPROF_ERROR_BAD_DATA or %UPROF_ERROR_UNSUPPORTED
 */
bool uprof_elf_parse(UprofSlice file, const char *name, UprofElfImage *image, GError **error);
/** uprof_elf_debug_link_crc: Returns: checksum of a whole file, as .gnu_debuglink has it */
uint32_t uprof_elf_debug_link_crc(UprofSlice file);

void uprof_elf_clear(UprofElfImage *image);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(UprofElfImage, uprof_elf_clear)
