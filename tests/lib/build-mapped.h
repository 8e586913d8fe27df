/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * build-mapped.h - a small shared library, with the parts that a process maps, for tests
 */
#pragma once

#include <glib.h>
#include <stdint.h>

enum { MAPPED_PAGE = 4096 };

/* Offsets of its parts in the file; each begins a page, and up to the code they are addresses */
enum {
    MAPPED_HASH_AT = 0x1000, /* and the exported symbols */
    MAPPED_SYMBOLS_AT = 0x1100,
    MAPPED_NAMES_AT = 0x2000,
    MAPPED_TEXT_AT = 0x3000,
    MAPPED_TEXT_LEN = 0x2000,
    MAPPED_INDEX_AT = 0x5000, /* of .eh_frame */
    MAPPED_FRAMES_AT = 0x6000,
    MAPPED_LATE_FRAMES_AT = 0x7000,
    MAPPED_DYNAMIC_AT = 0x8000,
    MAPPED_DYNAMIC_GVA = 0x9000,
    MAPPED_ALL_SYMBOLS_AT = 0x9000,
    MAPPED_ALL_NAMES_AT = 0xa000,
    MAPPED_SECTIONS_AT = 0xb000,
    MAPPED_BYTES = 0xc000,
    MAPPED_N_PAGES = MAPPED_BYTES / MAPPED_PAGE,
};

/* Functions: open_door and close_door are exported, hidden_helper is not */
enum {
    MAPPED_OPEN = MAPPED_TEXT_AT + 0x100,
    MAPPED_OPEN_LEN = 0x80,
    MAPPED_CLOSE = MAPPED_TEXT_AT + 0x200,
    MAPPED_CLOSE_LEN = 0x40,
    MAPPED_HIDDEN = MAPPED_TEXT_AT + 0x1300,
    MAPPED_HIDDEN_LEN = 0x60,
    MAPPED_N_EXPORTED = 2,
    /* Addresses of the exported variables _PyRuntime and Py_Version; the file does not have their
       bytes */
    MAPPED_RUNTIME = 0x40000,
    MAPPED_VERSION = MAPPED_RUNTIME + 0xf00,
    MAPPED_N_FRAMES = 3, /* of the three functions; the last one is in the last page */
};

/** build_mapped: @id: each byte of its build-id. Returns: (transfer full): the file */
GByteArray *build_mapped(uint8_t id);
