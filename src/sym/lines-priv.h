/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * lines-priv.h - which functions were inlined at an address, and which lines it is of
 *
 * From DWARF through libdw, which was not made for files that mean harm: it runs
 * in a child without rights (child.h), all addresses of an image at once.
 */
#pragma once

#include "uprof/bytes.h"

enum {
    UPROF_LINES_FRAMES_MAX = 64, /* at one address; what is further out is left out */
    UPROF_LINES_ADDRESSES_MAX = 50 * 1000,
};

/**
 * UprofLineFrame:
 * @name: not clean, mangled if its language does that; empty of the outermost frame,
 *   whose name is the symbol's
 * @file: path of the source, as the compiler was given it; empty if not known
 * @line: 0 if not known; where it calls what was inlined in it
 */
typedef struct {
    UprofSlice name; /* borrowed */
    UprofSlice file; /* borrowed */
    uint32_t line;
} UprofLineFrame;

typedef struct _UprofLines UprofLines;

/**
 * uprof_lines_read:
 * @elf: with .debug_info; not changed
 * @addresses: link addresses, rising, @n of them, up to %UPROF_LINES_ADDRESSES_MAX
 * @why: (out) (nullable) (transfer full): why not all of it could be read
 *
 * Takes seconds at most.
 *
 * Returns: (transfer full): what is known, which may be nothing
 */
UprofLines *uprof_lines_read(UprofSlice elf, const uint64_t *addresses, unsigned n, char **why);
void uprof_lines_free(UprofLines *lines);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofLines, uprof_lines_free)

/**
 * uprof_lines_get:
 * @i: of the address
 * @frames: (out) (nullable): innermost first; borrowed
 *
 * Returns: how many, 0 if nothing is known of the address
 */
unsigned uprof_lines_get(const UprofLines *lines, unsigned i, const UprofLineFrame **frames);

/**
 * uprof_lines_parse:
 * @answer: what the child has written, whole or cut; kept
 * @n: number of addresses
 *
 * Whatever @answer contains.
 *
 * Returns: (transfer full): what is whole in it
 */
UprofLines *uprof_lines_parse(GByteArray *answer, unsigned n);
