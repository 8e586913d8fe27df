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
 *   32  5 * u64     offsets in the table, in rising order: names of functions, compilation
 *                   units, names of files, other tables, functions
 *
 * The functions are n pairs of u32, the function's start and the offset of its record, both
 * relative; then the end of the last one. A record has the offset of the name in its second u32,
 * the offset of the sizes of frames (pcsp) in its fifth, and flags behind its tenth (1.18) or
 * eleventh.
 *
 * The sizes of frames are a list of pairs. A pair has two numbers of 7 bits a byte (varint): the
 * change of the value, signed (zigzag), which begins at -1, and the bytes of code for which the
 * value holds, in units of the size of an instruction. A change of 0 ends the pairs, unless it is
 * the first. The size is the distance from the stack pointer to the return address.
 */
#pragma once

#include "uprof/elf-image.h"

/** UprofGoBytes: a part of a file, of which pages may be missing */
typedef struct {
    UprofSlice all; /* borrowed; anything where a page is missing */
    /* (nullable): by page: is it here? borrowed; %NULL: all pages are here */
    const bool *is_here;
    uint64_t before; /* bytes of the first page that come before @all; less than a page */
} UprofGoBytes;

enum { UPROF_GO_PAGE_BYTES = 4096 };

/** uprof_go_bytes_get: Returns: false unless all @len bytes from offset @at on are here */
bool uprof_go_bytes_get(const UprofGoBytes *bytes, uint64_t at, uint64_t len, UprofSlice *slice);

/**
 * uprof_go_bytes_text: reads a text that ends with a NUL
 * @at: offset of the text
 * @end: offset at which all texts end
 * @work: (inout): bytes that may still be read; a longer text is not read
 * @text: (out): without its NUL
 *
 * Returns: false if the text is empty, is longer than %UPROF_GO_TEXT_BYTES_MAX, or is not here
 */
bool uprof_go_bytes_text(const UprofGoBytes *bytes, uint64_t at, uint64_t end, uint64_t *work,
                         UprofSlice *text);

enum { UPROF_GO_TEXT_BYTES_MAX = 1024 };

/** UprofGoList: a list of values, each of which holds for some bytes of code; see above */
typedef struct {
    const UprofGoBytes *bytes; /* borrowed */
    uint64_t at;               /* offset of the next pair */
    uint64_t *work;            /* borrowed: bytes that may still be read */
    int64_t value;             /* of the last pair; -1 before the first one */
    uint32_t units;            /* for how many units of code it holds */
    bool is_malformed;         /* or a part of it is missing */
    bool has_value;            /* there was a pair */
} UprofGoList;

/** uprof_go_list_next: reads the next pair. Returns: false at the end, and if it is malformed */
bool uprof_go_list_next(UprofGoList *list);

/** UprofGoHead: what the table's header says; offsets count from the start of the table */
typedef struct {
    uint64_t n;    /* functions */
    uint64_t text; /* link address of the functions; 0: it is not in the header */
    uint64_t names, units, files, tables, functions;
    unsigned insn_bytes; /* of the shortest instruction */
    bool is_1_18;        /* Go 1.18 or 1.19 */
} UprofGoHead;

/** uprof_go_head_read: Returns: false if @table is no such table */
bool uprof_go_head_read(const UprofGoBytes *table, UprofGoHead *head);

/** UprofGoFunction: a function in the list; addresses are relative to that of the functions */
typedef struct {
    uint32_t start, end;
    uint32_t record; /* its offset behind the offset of the functions */
} UprofGoFunction;

/** uprof_go_head_find: @offset: from the address of the functions. Returns: false if no function is
 * there */
bool uprof_go_head_find(const UprofGoBytes *table, const UprofGoHead *head, uint64_t offset,
                        UprofGoFunction *function);

/** UprofGoFound: what to read; both arrays are borrowed */
typedef struct {
    GArray *symbols; /* (nullable): of UprofSymbol: gets the functions; names are borrowed from the
                        table */
    guint symbols_max;
    GArray *frames; /* of UprofFrameSize: gets the sizes of frames, by rising address */
} UprofGoFound;

/**
 * uprof_go_table_read:
 * @text: link address of the first function, such as that of the section .text; 0: not known
 * @entry: address at which the program begins. If only @text tells where the functions are, one of
 * them must begin at @entry: in a program with C code, .text does not begin with them.
 * @found: (inout)
 *
 * Returns: link address of the first function; 0 if this is no such table, or if the address is not
 *   known
 */
uint64_t uprof_go_table_read(const UprofGoBytes *table, uint64_t text, uint64_t entry,
                             const UprofGoFound *found);
