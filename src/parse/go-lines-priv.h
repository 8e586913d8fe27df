/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * go-lines-priv.h - where a Go program keeps its inlined functions and lines
 *
 * Sources: Go, src/runtime/symtab.go (struct moduledata, funcline1), src/runtime/symtabinl.go,
 * src/internal/abi/symtab.go (FUNCDATA_InlTree, PCDATA_InlTreeIndex).
 *
 * The record of a function (go-table-priv.h) has, besides its name, the offsets of lists: of its
 * files in the sixth u32, of its lines in the seventh. The eighth says how many more lists there
 * are; the third of these has the number of the inlined function, or -1. The ninth u32 is the place
 * of the function's files in the list of compilation units. Behind the flags is the number of
 * further tables, and the fourth of these is the tree of inlined functions: an offset in the
 * trees' part of the program, or -1.
 *
 * An entry of a tree:
 *
 *   since 1.20   u8 kind, 3 bytes, s32 offset of the name, s32 address of the call, s32 line
 *   1.18         s16 parent, u8 kind, u8, s32 file, s32 line, s32 offset of the name, s32 address
 *                of the call
 *
 * The address of the call counts from the start of the function. The list of numbers says in which
 * inlined function the call is.
 */
#pragma once

#include "go-table-priv.h"
#include "uprof/go-lines.h"

enum { UPROF_GO_DATA_BYTES_MAX = 8 * 1024 * 1024 }; /* of variables that are searched */

/** UprofGoModule: what the runtime's record of the program says; link addresses */
typedef struct {
    uint64_t text;  /* of the first function */
    uint64_t trees; /* of the trees of inlined functions */
} UprofGoModule;

/**
 * uprof_go_module_find: searches the record (struct moduledata)
 * @data: variables of the program
 * @table_address: link address of @table
 * @module: (out): any numbers, if the program is hostile
 *
 * Returns: false if it is not there, such as in a program that the dynamic linker changes first
 */
bool uprof_go_module_find(const UprofGoBytes *data, const UprofGoBytes *table,
                          uint64_t table_address, UprofGoModule *module);

/**
 * uprof_go_lines_new:
 * @table: its bytes are borrowed
 * @text: link address of the first function
 * @trees: (nullable): the bytes from the first tree on; borrowed; without them, code of inlined
 *   functions has no lines
 *
 * Returns: (transfer full) (nullable): %NULL if @table is no such table
 */
UprofGoLines *
uprof_go_lines_new(const UprofGoBytes *table, uint64_t text, const UprofGoBytes *trees);
