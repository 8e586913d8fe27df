/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * symbol-elf.h - small ELF images with chosen symbols and code, for tests
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/** ElfSymbol: a symbol of code */
typedef struct {
    const char *name; /* borrowed; any bytes but NUL */
    uint64_t start;   /* link address */
    uint64_t size;    /* bytes */
    bool is_global;   /* else local */
    bool is_label;    /* without a type; else a function */
} ElfSymbol;

/** ElfExtra: a further section, with values for its header */
typedef struct {
    const char *name; /* borrowed */
    uint32_t type;
    uint64_t flags;
    uint64_t address;
    const void *bytes; /* borrowed; the content */
    size_t len;        /* bytes */
} ElfExtra;

/** ElfPlan: the file to write; all pointers are borrowed */
typedef struct {
    bool is_32;
    uint16_t machine;         /* e_machine; 0: x86_64, or i386 for 32-bit files */
    uint64_t entry;           /* e_entry */
    uint64_t text_gva;        /* link address of @text */
    const uint8_t *text;      /* code */
    size_t text_len;          /* bytes */
    uint64_t eh_frame_gva;    /* link address of @eh_frame */
    const uint8_t *eh_frame;  /* unwind tables */
    size_t eh_frame_len;      /* bytes; 0: no unwind tables */
    const ElfExtra *extras;   /* more sections */
    size_t n_extras;          /* in @extras */
    bool is_debug;            /* a debug file, which does not contain the code itself */
    const ElfSymbol *symbols; /* symbols of code */
    size_t n_symbols;         /* in @symbols; 0: a stripped file */
} ElfPlan;

/** symbol_elf_new: Returns: (transfer full): the bytes of the file */
GByteArray *symbol_elf_new(const ElfPlan *plan);

/**
 * symbol_elf_map: adds program headers, so that the file can be mapped and has a build-id
 * @file: (inout): of symbol_elf_new(), for 64-bit code
 * @first: link address of the first byte of the file
 * @note, @note_len: the content of the extra section with the build-id
 */
void symbol_elf_map(GByteArray *file, uint64_t first, const void *note, size_t note_len);

/** symbol_elf_write: writes the file of @plan to @path */
void symbol_elf_write(const ElfPlan *plan, const char *path);
