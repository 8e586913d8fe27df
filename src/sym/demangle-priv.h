/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * demangle-priv.h - turns mangled symbols into the names that programmers wrote
 *
 * C++ (Itanium ABI), Rust (legacy and v0) and D through libiberty; OCaml in demangle.c:
 * "camlStdlib__List__map_342" is Stdlib.List.map. The result may contain any bytes (text.h).
 */
#pragma once

#include "uprof/bytes.h"

enum {
    UPROF_DEMANGLE_BYTES_MAX = 4096, /* of a symbol, and of a name */
    UPROF_DEMANGLE_TOTAL_MS = 2000,  /* processor time for all C++ names of a demangler */
};

/** UprofDemangler: the processor time that is left for C++ names */
typedef struct {
    uint64_t left_ns;
} UprofDemangler;

/** uprof_demangler_init: sets a limit that is enough for some 500,000 names of usual programs */
void uprof_demangler_init(UprofDemangler *demangler);

/**
 * uprof_demangle:
 * @raw: a symbol; any bytes
 *
 * Time, memory and stack are bounded for every @raw; longer names are cut. A name that takes longer
 * than 10 ms stays mangled. So do all further C++ names once @demangler has no time left, and
 * C++ names of more than 1 KiB, which libiberty refuses.
 *
 * Returns: (transfer full) (nullable): the name; %NULL if @raw is not mangled
 */
char *uprof_demangle(UprofDemangler *demangler, UprofSlice raw);
