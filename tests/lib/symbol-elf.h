/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * symbol-elf.h - small ELF images with chosen symbols and code, for tests
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/** ElfSymbol: @name: any bytes but NUL; @is_global: else local */
typedef struct {
    const char *name;
    uint64_t start;
    uint64_t size;
    bool is_global;
} ElfSymbol;

/** ElfExtra: one more section, as it stands in its header; @bytes may have NULs */
typedef struct {
    const char *name;
    uint32_t type;
    uint64_t flags;
    uint64_t address;
    const void *bytes;
    size_t len;
} ElfExtra;

/**
 * ElfPlan:
 * @machine: e_machine; 0: x86_64, or i386 for 32-bit files
 * @text, @text_len: code, at link address @text_gva
 * @eh_frame, @eh_frame_len: unwind tables, at link address @eh_frame_gva
 * @extras: @n_extras of them
 * @is_debug: a debug file, which has no code in it
 * @symbols: @n_symbols of them, all of code; none: a stripped file
 */
typedef struct {
    bool is_32;
    uint16_t machine;
    uint64_t entry;
    uint64_t text_gva;
    const uint8_t *text;
    size_t text_len;
    uint64_t eh_frame_gva;
    const uint8_t *eh_frame;
    size_t eh_frame_len;
    const ElfExtra *extras;
    size_t n_extras;
    bool is_debug;
    const ElfSymbol *symbols;
    size_t n_symbols;
} ElfPlan;

/** symbol_elf_new: Returns: (transfer full): the bytes of the file */
GByteArray *symbol_elf_new(const ElfPlan *plan);

/**
 * symbol_elf_map: adds what a kernel maps it by, and finds its build-id by
 * @file: (inout): of symbol_elf_new(), for 64-bit code
 * @first: link address of its first byte
 * @note, @note_len: one of its extras
 */
void symbol_elf_map(GByteArray *file, uint64_t first, const void *note, size_t note_len);

/** symbol_elf_write: writes that file to @path */
void symbol_elf_write(const ElfPlan *plan, const char *path);
