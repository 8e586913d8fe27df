/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * build-kallsyms.h - a kernel's image with a table of symbols, in any of its layouts
 *
 * The tables are written as Linux's scripts/kallsyms.c writes them, from one version to
 * another; behind them and before them there is nothing.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define KALLSYMS_BASE UINT64_C(0xffffffff81000000)

/** KallsymsAddresses: how addresses are written */
typedef enum {
    KALLSYMS_ABSOLUTE, /* up to 4.5, and up to 6.10 where that was chosen */
    KALLSYMS_RELATIVE, /* from 4.6 */
    KALLSYMS_PERCPU,   /* 4.6 to 6.14, where variables of each CPU begin at 0 */
    KALLSYMS_PLACE,    /* from 7.0 */
} KallsymsAddresses;

/** KallsymsNamed: @address: in the image, or below all code: in the area of each CPU */
typedef struct {
    const char *name;
    uint64_t address;
    char type;
} KallsymsNamed;

/**
 * KallsymsPlan:
 * @n: symbols: "_text", and from there on "function_0001" and so on, 16 bytes each
 * @n_percpu: of them, variables of each CPU in front: "cpu_0000" at 0 and so on
 * @addresses_last: behind the tokens (from 6.4), and not before the names
 * @wide_markers: 64 bits each, and the number of names as well (up to 4.19)
 * @long_bytes: length of the name of the last one; 0: as the others
 * @has_seqs: numbers of names stand between the markers and the tokens (6.2, 6.3)
 * @named: (nullable): @n_named symbols behind these
 */
typedef struct {
    unsigned n, n_percpu;
    KallsymsAddresses addresses;
    bool addresses_last;
    bool wide_markers;
    bool wide_lengths;
    unsigned long_bytes;
    bool has_seqs;
    const KallsymsNamed *named;
    unsigned n_named;
} KallsymsPlan;

/** build_kallsyms: Returns: (transfer full): the image, at %KALLSYMS_BASE */
GByteArray *build_kallsyms(const KallsymsPlan *plan);

/** kallsyms_name: Returns: (transfer full): name of symbol @i */
char *kallsyms_name(const KallsymsPlan *plan, unsigned i);

/** kallsyms_address: Returns: of symbol @i */
uint64_t kallsyms_address(const KallsymsPlan *plan, unsigned i);
