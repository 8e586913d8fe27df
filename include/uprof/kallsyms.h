/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * kallsyms.h - finds the symbol table that a Linux kernel carries in its own image
 *
 * The table has the kernel's part of /proc/kallsyms; modules have tables of their own. The
 * search recognizes the table in a copy of the image by its contents, so it does not depend on
 * the version of the kernel. A hostile guest may write any image.
 */
#pragma once

#include "uprof/bytes.h"

enum {
    UPROF_KALLSYMS_MIN = 1000, /* symbols of a kernel; a table with fewer is a chance find */
    UPROF_KALLSYMS_BYTES_MAX = 64 * 1024 * 1024, /* all names, expanded */
};

typedef struct {
    uint64_t address; /* guest-virtual; for a per-CPU variable: its offset in the CPU's area */
    uint32_t name;    /* offset in the names; ends with NUL; may have control characters */
    char type;        /* as nm prints it; a small letter is local, 'T' and 'W' are code */
} UprofKallsym;

typedef struct {
    GArray *symbols;    /* of UprofKallsym, owned; rising addresses, except per-CPU variables */
    GByteArray *names;  /* owned; (nullable): a caller may steal the bytes */
    const char *layout; /* how the image stores addresses, for messages; literal */
} UprofKallsyms;

/**
 * uprof_kallsyms_parse:
 * @image: a copy of the kernel's image, with zeros in place of unmapped memory; borrowed
 * @base: guest-virtual address of the first byte
 * @n_min: tables with fewer symbols are ignored; %UPROF_KALLSYMS_MIN except in tests
 *
 * Returns: (transfer full) (nullable): %NULL with %UPROF_ERROR_NOT_FOUND if there is no table
 */
UprofKallsyms *
uprof_kallsyms_parse(UprofSlice image, uint64_t base, unsigned n_min, GError **error);
void uprof_kallsyms_free(UprofKallsyms *kallsyms);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofKallsyms, uprof_kallsyms_free)

/** uprof_kallsyms_name: Returns: the name of @symbol, borrowed; may have control characters */
const char *uprof_kallsyms_name(const UprofKallsyms *kallsyms, const UprofKallsym *symbol);

/**
 * uprof_kallsyms_digest:
 *
 * Returns: 64-bit FNV-1a of the lines that root sees of these symbols in /proc/kallsyms, if
 *   kptr_restrict is 0
 */
uint64_t uprof_kallsyms_digest(const UprofKallsyms *kallsyms);
