/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * go-table-priv.h - the functions of a Go program and the sizes of their frames, from the table
 * that its runtime needs (.gopclntab)
 *
 * The table is there even in a stripped program. This file reads the tables of Go 1.18 and later
 * (Go, src/internal/abi/symtab.go and src/runtime/symtab.go), of 64-bit little-endian programs:
 *
 *   0   u32 magic   0xfffffff0 (1.18), 0xfffffff1 (1.20)
 *   4   u8 0, u8 0, u8 size of an instruction, u8 size of a pointer
 *   8   u64 n       functions
 *   16  u64         files
 *   24  u64         address of the code; 0 in position-independent programs and since Go 1.26
 *   32  u64         offsets in the table, in rising order: of the names of functions, of
 * compilation units, of the names of files, of other tables, and of the functions
 *
 * The functions are n pairs of u32, the function's start and the offset of its record, both
 * relative; then the end of the last one. A record has the offset of the name in its second u32,
 * the offset of the sizes of frames (pcsp) in its fifth, and flags behind its tenth (1.18) or
 * eleventh.
 *
 * The sizes of frames are pairs of numbers of 7 bits a byte (varint): the change of the size,
 * signed (zigzag), which begins at -1, and the bytes of code for which the size holds, in units of
 * the size of an instruction. A change of 0 ends the pairs, unless it is the first. The size is the
 * distance from the stack pointer to the return address.
 */
#pragma once

#include "uprof/elf-image.h"

/**
 * UprofGoReader: the table, of which parts may be missing
 *
 * @get returns false unless all @len bytes from @at on are there. @slice: (out)
 */
typedef struct {
    bool (*get)(const void *data, uint64_t at, uint64_t len, UprofSlice *slice);
    const void *data; /* borrowed: for @get */
    uint64_t len;     /* bytes of the complete table */
} UprofGoReader;

/** UprofGoFound: what to read; both arrays are borrowed */
typedef struct {
    GArray *symbols; /* (nullable): of UprofSymbol: gets the functions; names are borrowed from the
                        table */
    guint symbols_max;
    GArray *frames; /* of UprofFrameSize: gets the sizes of frames, by rising address */
} UprofGoFound;

/**
 * uprof_go_table_read:
 * @text: address of the section .text; 0: not known
 * @entry: address at which the program begins. If only @text tells where the functions are, one of
 * them must begin at @entry: in a program with C code, .text does not begin with them.
 * @found: (inout)
 *
 * Returns: false if this is no such table, or if the address of the functions is not known
 */
bool uprof_go_table_read(const UprofGoReader *reader, uint64_t text, uint64_t entry,
                         const UprofGoFound *found);
