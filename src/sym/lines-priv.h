/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * lines-priv.h - inlined functions and source lines of addresses
 *
 * libdw reads them from DWARF, once for all addresses of an image. libdw is not made for hostile
 * files, so only processes without rights may call it (confine.h).
 */
#pragma once

#include "uprof/bytes.h"
#include "uprof/sym.h"

enum {
    UPROF_LINES_FRAMES_MAX = 64, /* of one address; outer ones beyond this are left out */
    UPROF_LINES_ADDRESSES_MAX = UPROF_SYM_LINES_MAX,
};

/** UprofLineFrame: a function at an address; both texts may be any bytes */
typedef struct {
    /* mangled if the language does that; empty for the outermost frame, which has a symbol */
    UprofSlice name;          /* borrowed */
    UprofSlice file;          /* path, as the compiler was given it; empty if not known; borrowed */
    uint32_t line;            /* 0 if not known; of an outer frame, where it calls the inner one */
    UprofSlice function_file; /* path of the function's declaration; empty if not known; borrowed */
    uint32_t function_line;   /* 0 if not known */
} UprofLineFrame;

typedef struct _UprofLines UprofLines;

/**
 * uprof_lines_read:
 * @elf: with .debug_info; not changed
 * @addresses: link addresses in rising order, up to %UPROF_LINES_ADDRESSES_MAX
 * @n: how many
 * @cpu_ns: processor time after which the reading ends, as far as libdw allows
 * @why: (out) (nullable) (transfer full): why the result is incomplete
 *
 * Returns: (transfer full): the frames that are known, perhaps none
 */
UprofLines *uprof_lines_read(UprofSlice elf, const uint64_t *addresses, unsigned n, uint64_t cpu_ns,
                             char **why);
void uprof_lines_free(UprofLines *lines);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofLines, uprof_lines_free)

/**
 * uprof_lines_get:
 * @i: index of the address
 * @frames: (out) (nullable): innermost first; borrowed
 *
 * Returns: how many frames; 0 if nothing is known of the address
 */
unsigned uprof_lines_get(const UprofLines *lines, unsigned i, const UprofLineFrame **frames);
