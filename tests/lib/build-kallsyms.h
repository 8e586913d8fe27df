/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * build-kallsyms.h - a kernel's image with a table of symbols, in any of its layouts
 *
 * The tables are written as scripts/kallsyms.c of each Linux version writes them. The image has
 * nothing else.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define KALLSYMS_BASE UINT64_C(0xffffffff81000000)

/** KallsymsAddresses: how addresses are written */
typedef enum {
    KALLSYMS_ABSOLUTE, /* up to 4.5; up to 6.10 as an option of the build */
    KALLSYMS_RELATIVE, /* from 4.6 */
    KALLSYMS_PERCPU,   /* 4.6 to 6.14, if per-CPU variables begin at 0 */
    KALLSYMS_PLACE,    /* from 7.0 */
} KallsymsAddresses;

/** KallsymsNamed: a symbol with a name of its own */
typedef struct {
    const char *name; /* borrowed */
    uint64_t address; /* in the image; for a per-CPU variable: its offset in the CPU's area */
    char type;        /* as nm prints it */
} KallsymsNamed;

/** KallsymsPlan: the image to build */
typedef struct {
    unsigned n;        /* symbols: "_text", then "function_0001" and so on, 16 bytes each */
    unsigned n_percpu; /* the first of @n are per-CPU variables: "cpu_0000" at 0 and so on */
    KallsymsAddresses addresses;
    bool addresses_last;        /* addresses stand behind the tokens (from 6.4), not before names */
    bool wide_markers;          /* markers and the number of names have 64 bits (up to 4.19) */
    bool wide_lengths;          /* a name of 128 bytes or more has a length of two bytes */
    unsigned long_bytes;        /* length of the last name; 0: as the others */
    bool has_seqs;              /* numbers of names between the markers and the tokens (6.2, 6.3) */
    const KallsymsNamed *named; /* (nullable): borrowed; more symbols, after the first @n */
    unsigned n_named;           /* in @named */
} KallsymsPlan;

/** build_kallsyms: Returns: (transfer full): the image, at %KALLSYMS_BASE */
GByteArray *build_kallsyms(const KallsymsPlan *plan);

/** kallsyms_name: Returns: (transfer full): the name of symbol @i */
char *kallsyms_name(const KallsymsPlan *plan, unsigned i);

/** kallsyms_address: Returns: the address of symbol @i */
uint64_t kallsyms_address(const KallsymsPlan *plan, unsigned i);
