/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * mapped-elf.h - reads an ELF file of which some pages are missing
 *
 * The memory of a guest has only those pages of a file that were used. The pages that a program
 * needs to start are nearly always there: the names of functions that other files may call. Unwind
 * tables and other symbols are often there in part. The reader asks for the pages that it needs,
 * uses those that are there, and counts those that are missing.
 *
 * Formats: 64-bit little-endian files (System V gABI, "Program Header", "Dynamic Section" and
 * "Section Header"), hash tables of dynamic symbols (DT_HASH, and GNU's DT_GNU_HASH) and the index
 * of .eh_frame (Linux Standard Base Core 5.0, section 10.6.2). A hostile guest may write any bytes.
 */
#pragma once

#include "uprof/elf-image.h"

/** UprofMappedReader: reads pages of 4096 bytes */
typedef struct {
    /*
     * @first: number of the first page in the file
     * @bytes: (out): @n pages; zeros where they are missing
     * @is_here: (out): @n booleans
     */
    void (*read)(void *data, uint64_t first, unsigned n, uint8_t *bytes, bool *is_here);
    void *data; /* borrowed; for @read */
} UprofMappedReader;

/** UprofMappedElf: what could be read */
typedef struct {
    /* no lines, no .debug_frame and no bytes of code; slices are borrowed from @parts */
    UprofElfImage elf;
    /* of uint64_t, owned: offsets of entries in .eh_frame of @elf that are here with their CIEs */
    GArray *frames;
    GPtrArray *parts;     /* of GByteArray, owned: tables of the file */
    bool has_all_symbols; /* all of .symtab was read, which has the functions that are not exported
                           */
    uint64_t n_here, n_missing; /* pages that were wanted */
} UprofMappedElf;

/**
 * uprof_mapped_elf_read:
 * @mapped: (out): filled on success; free with uprof_mapped_elf_clear()
 *
 * Returns: false if the first page is missing, or does not begin such a file
 */
bool uprof_mapped_elf_read(const UprofMappedReader *reader, UprofMappedElf *mapped);
void uprof_mapped_elf_clear(UprofMappedElf *mapped);

/**
 * uprof_mapped_elf_find_object: finds exported data, which may be variables
 * @offset: (out): bytes from the file's first page to the data, when the file is mapped
 *
 * Returns: false if there is no such object, or a page that is needed is missing
 */
bool
uprof_mapped_elf_find_object(const UprofMappedReader *reader, const char *name, uint64_t *offset);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(UprofMappedElf, uprof_mapped_elf_clear)
