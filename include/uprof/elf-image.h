/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * elf-image.h - reads the code, symbols and unwind tables of an ELF file, with libelf
 *
 * Unikraft puts an ELF32 wrapper around its 64-bit images, so that multiboot loaders accept
 * them. The reader unwraps such images: multiboot magic 0x1BADB002 at byte 52, ELF32 program
 * headers behind the multiboot header, and the complete ELF64 file at 64 + 32 x e_phnum
 * (support/scripts/multiboot.py of Unikraft).
 */
#pragma once

#include "uprof/bytes.h"
#include "uprof/go-lines.h"
#include "uprof/symbol.h"

enum {
    UPROF_ELF_BUILD_ID_BYTES_MAX = 64,
};

/** UprofElfRange: executable bytes, or the bytes of a section */
typedef struct {
    uint64_t start;   /* link address */
    uint64_t len;     /* bytes in memory */
    UprofSlice bytes; /* bytes in the file, borrowed; fewer than @len, or none in a debug file */
} UprofElfRange;

/** UprofFrameKind: the caller of a function whose frame has a known size */
typedef enum {
    UPROF_FRAME_NONE,     /* the size is not known */
    UPROF_FRAME_CALLED,   /* the return address is at the stack pointer plus the size */
    UPROF_FRAME_ROOT,     /* there is no caller */
    UPROF_FRAME_SWITCHED, /* the caller is on another stack, which is not known */
    /* the kernel has called the function for a signal; what it has interrupted is above the return
     * address */
    UPROF_FRAME_SIGNAL,
} UprofFrameKind;

/** UprofFrameSize: the size of frames from one address to the next in the list */
typedef struct {
    uint64_t pc; /* link address */
    uint32_t bytes;
    uint32_t kind; /* UprofFrameKind */
} UprofFrameSize;

/** UprofElfImage: slices are borrowed from the file, and empty if the file lacks the part */
typedef struct {
    uint8_t word_bytes; /* 4 or 8 */
    bool big_endian;
    uint16_t machine; /* e_machine */
    uint64_t entry;   /* e_entry, link address */
    /* Where Xen starts a paravirtual kernel, and a PVH kernel (XEN_ELFNOTE_ENTRY and _PHYS32_ENTRY
     * in Xen's public/elfnote.h): link addresses, if the loader does not move the image; 0: no note
     */
    uint64_t xen_entry, pvh_entry;
    UprofSlice file;   /* the ELF file without a wrapper */
    bool has_sections; /* the file has section headers */
    bool is_wrapped;   /* the file is inside an ELF32 wrapper */
    UprofSlice build_id;
    uint64_t build_id_at; /* link address of @build_id; 0 if the build-id is not loaded */
    uint64_t first_page;  /* link address of the first loaded page; of the code if none is loaded */
    GArray *symbols;      /* of UprofSymbol, owned; from .symtab, else from .dynsym */
    /*
     * Of UprofElfRange, owned: the executable sections, or the executable segments of a file
     * without section headers. Sorted. Bytes that two ranges claim belong to the first.
     */
    GArray *text;
    UprofElfRange eh_frame; /* .eh_frame; empty in a debug file */
    UprofElfRange debug_frame;
    GArray *frames; /* (nullable): of UprofFrameSize, owned; of a Go program, by rising address */
    UprofGoLines *go_lines;  /* (nullable): owned; of a Go program */
    UprofSlice debug_data;   /* .gnu_debugdata, an .xz file that contains an ELF file of symbols */
    UprofSlice debug_link;   /* .gnu_debuglink: name of the debug file */
    uint32_t debug_link_crc; /* checksum of the debug file */
    bool has_lines;          /* the file has the source lines of its code */
    GByteArray *unpacked;    /* (nullable): owned; bytes of sections that were compressed */
} UprofElfImage;

/** uprof_elf_is: Checks whether @file begins like an ELF file. */
bool uprof_elf_is(UprofSlice file);

/**
 * uprof_elf_parse:
 * @file: the complete file; must outlive @image
 * @name: of the file, for messages
 * @image: (out): filled on success; free with uprof_elf_clear()
 *
 * Stores symbols of type FUNC and GNU_IFUNC, and NOTYPE symbols in executable sections. Stores
 * data symbols in executable sections with code = false. Drops all other symbols, and also ".L*"
 * and the mapping symbols "$x" and "$d". Strips "@VERSION" from names. .debug_frame may be
 * compressed (SHF_COMPRESSED with zlib, or .zdebug_frame, which begins with "ZLIB" and its length).
 *
 * Returns: false with %UPROF_ERROR_BAD_DATA or %UPROF_ERROR_UNSUPPORTED
 */
bool uprof_elf_parse(UprofSlice file, const char *name, UprofElfImage *image, GError **error);

/**
 * uprof_elf_parse_some: like uprof_elf_parse(), with another limit
 * @symbols_max: up to %UPROF_SYMBOLS_MAX
 * @has_more: (out): the call failed because the file has more symbols
 */
bool uprof_elf_parse_some(UprofSlice file, const char *name, uint64_t symbols_max,
                          UprofElfImage *image, bool *has_more, GError **error);

/** uprof_elf_debug_link_crc: Returns: checksum of a complete file, as in .gnu_debuglink */
uint32_t uprof_elf_debug_link_crc(UprofSlice file);

void uprof_elf_clear(UprofElfImage *image);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(UprofElfImage, uprof_elf_clear)
