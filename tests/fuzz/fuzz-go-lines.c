/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The first byte says from where on a page of the table is missing, in pieces of 16 bytes. The
 * second one says how long the trees are, in pieces of 16 bytes. Then come the trees and the table.
 * The trees are also searched for the record of the program.
 */
#include "fuzz.h"

#include "../../src/parse/go-lines-priv.h"

#include <string.h>

enum { TEXT = 0x401000, TABLE_AT = 0x500000, PIECE = 16, PAGES_MAX = 64, STEPS = 64 };

static void
check_frames(const UprofGoLines *lines, uint64_t address, const UprofGoBytes *table)
{
    UprofGoLine frames[UPROF_GO_LINES_FRAMES_MAX];
    const unsigned n = uprof_go_lines_find(lines, address, frames);

    g_assert(n <= UPROF_GO_LINES_FRAMES_MAX);
    for (unsigned i = 0; i < n; i++) {
        g_assert((frames[i].name.len == 0) == (i == n - 1));
        g_assert(frames[i].name.len == 0 || is_part(frames[i].name, table->all));
        g_assert((frames[i].file.len == 0) == (frames[i].line == 0));
        g_assert(frames[i].file.len == 0 || is_part(frames[i].file, table->all));
    }
}

void
fuzz_input(const uint8_t *data, size_t size)
{
    bool is_here[PAGES_MAX];
    UprofGoModule module;

    if (size < 2)
        return;
    memset(is_here, true, sizeof(is_here));
    is_here[1] = false;
    const size_t trees_len = MIN(size - 2, (size_t)data[1] * PIECE);
    const UprofGoBytes trees = { .all = { data + 2, trees_len } };
    const UprofGoBytes table = {
        { data + 2 + trees_len,
          MIN(size - 2 - trees_len, (PAGES_MAX - 1) * (size_t)UPROF_GO_PAGE_BYTES) },
        is_here,
        UPROF_GO_PAGE_BYTES - 1 - (unsigned)data[0] * PIECE % UPROF_GO_PAGE_BYTES,
    };
    uprof_go_module_find(&trees, &table, TABLE_AT, &module);
    UprofGoLines *lines = uprof_go_lines_new(&table, TEXT, &trees);
    for (unsigned i = 0; lines && i < STEPS; i++)
        check_frames(lines, TEXT + (uint64_t)i * 8, &table);
    uprof_go_lines_free(lines);
}
