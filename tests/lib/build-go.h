/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * build-go.h - the tables of a small program in Go, and the program, for tests
 *
 * The program has two functions of 64 bytes, main.outer and main.other. From byte 16 on, main.outer
 * has 8 bytes of main.inl1, which is called at byte 8, and then 8 bytes of main.inl2, which
 * main.inl1 calls at byte 16. The file has no symbols.
 */
#pragma once

#include <glib.h>
#include <stdint.h>

enum {
    BUILT_GO_HEAD = 72, /* bytes of the table's header */
    BUILT_GO_SIZE = 64, /* of a function */
    BUILT_GO_1_18 = 0xf0,
    BUILT_GO_1_20 = 0xf1,
    BUILT_GO_CALL_1 = 8, /* offset of the call of main.inl1 in main.outer */
    BUILT_GO_CALL_2 = 16,
    BUILT_GO_MODULE_BYTES = 360,
};

/* Offsets of the names of files */
enum { BUILT_GO_FILE_A = 0, BUILT_GO_FILE_B = 10, BUILT_GO_FILE_NONE = 20 };

/* The file: offsets of its parts, each of which begins a page. Addresses are BUILT_GO_BASE more. */
enum {
    BUILT_GO_BASE = 0x400000,
    BUILT_GO_TEXT_AT = 0x1000,
    BUILT_GO_TREES_AT = 0x2000,
    BUILT_GO_TABLE_AT = 0x3000,
    BUILT_GO_DATA_AT = 0x4000,
    BUILT_GO_SECTIONS_AT = 0x5000,
    BUILT_GO_BYTES = 0x6000,
};

/** BuiltGoPlan: what may vary */
typedef struct {
    uint8_t magic;        /* BUILT_GO_1_18 or BUILT_GO_1_20 */
    uint32_t second_file; /* offset of the name of the file of main.inl2 */
    uint32_t call_1, call_2;
} BuiltGoPlan;

/** built_go_usual: a program of Go 1.20 */
extern const BuiltGoPlan built_go_usual;

/** build_go_table: Returns: (transfer full): .gopclntab */
GByteArray *build_go_table(const BuiltGoPlan *plan);

/** build_go_trees: Returns: (transfer full): the trees of inlined functions */
GByteArray *build_go_trees(const BuiltGoPlan *plan);

/**
 * build_go_module: Returns: (transfer full): the runtime's record of the program
 * @table_address, @text: link addresses
 * @trees_at: offset in the record of the address of the trees
 * @trees: that address
 */
GByteArray *build_go_module(const GByteArray *table, uint64_t table_address, uint64_t text,
                            unsigned trees_at, uint64_t trees);

/** build_go_file: Returns: (transfer full): the program */
GByteArray *build_go_file(const BuiltGoPlan *plan);
