/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * kallsyms.h - the symbol table that a Linux kernel carries in its own image
 *
 * What /proc/kallsyms shows of the kernel itself, found in a copy of its image in
 * memory, whatever the kernel's version says: the tables are told by what they
 * contain (Linux, scripts/kallsyms.c writes them, kernel/kallsyms.c reads them).
 * Modules have tables of their own. The image is the guest's, and may be made to hurt.
 */
#pragma once

#include "uprof/bytes.h"

enum {
    UPROF_KALLSYMS_MIN = 1000, /* of a kernel; fewer are a chance find */
    UPROF_KALLSYMS_MAX = 1000 * 1000,
    UPROF_KALLSYMS_NAME_BYTES_MAX = 512,                /* of one, with its type letter */
    UPROF_KALLSYMS_PACKED_BYTES_MAX = 16 * 1024 * 1024, /* names, as they are in the image */
    UPROF_KALLSYMS_BYTES_MAX = 64 * 1024 * 1024,        /* names, expanded */
    UPROF_KALLSYMS_STEPS_MAX = 64 * 1000 * 1000,        /* of the search, in table entries */
};

/**
 * UprofKallsym:
 * @address: guest-virtual; of a variable of each CPU its offset in the CPU's area
 * @name: where it begins in the names; a NUL ends it; not clean
 * @type: as nm says it; a small letter is local, 'T' and 'W' are code
 */
typedef struct {
    uint64_t address;
    uint32_t name;
    char type;
} UprofKallsym;

/**
 * UprofKallsyms:
 * @symbols: of UprofKallsym, in the kernel's order, which is that of addresses but
 *   for variables of each CPU
 * @names: bytes
 * @layout: how addresses are written there, for people; literal
 */
typedef struct {
    GArray *symbols;
    GByteArray *names;
    const char *layout;
} UprofKallsyms;

/**
 * uprof_kallsyms_parse:
 * @image: a copy of the kernel's image; what was not mapped is zero
 * @base: guest-virtual address of its first byte
 * @n_min: fewer symbols are no table: %UPROF_KALLSYMS_MIN but for tests
 *
 * Returns: (transfer full) (nullable): %NULL with %UPROF_ERROR_NOT_FOUND: there is none
 */
UprofKallsyms *
uprof_kallsyms_parse(UprofSlice image, uint64_t base, unsigned n_min, GError **error);
void uprof_kallsyms_free(UprofKallsyms *kallsyms);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofKallsyms, uprof_kallsyms_free)

/** uprof_kallsyms_name: Returns: borrowed: of a symbol; not clean */
const char *uprof_kallsyms_name(const UprofKallsyms *kallsyms, const UprofKallsym *symbol);

/**
 * uprof_kallsyms_find:
 * @address: (out): of the first symbol of that name
 *
 * Looks at all of them. Returns: false if there is none
 */
bool uprof_kallsyms_find(const UprofKallsyms *kallsyms, const char *name, uint64_t *address);

/**
 * uprof_kallsyms_digest:
 *
 * Returns: 64-bit FNV-1a of the text that /proc/kallsyms has of them, for root with
 *   kptr_restrict at 0
 */
uint64_t uprof_kallsyms_digest(const UprofKallsyms *kallsyms);
