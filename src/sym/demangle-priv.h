/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * demangle-priv.h - names as programmers wrote them
 *
 * C++ (Itanium ABI), Rust (legacy and v0) and D through libiberty; OCaml here:
 * "camlStdlib__List__map_342" is Stdlib.List.map. The result may contain any bytes (text.h).
 */
#pragma once

#include "uprof/bytes.h"

enum { UPROF_DEMANGLE_BYTES_MAX = 4096 }; /* of a symbol, and of a name */

/**
 * uprof_demangle:
 * @raw: a symbol; any bytes
 *
 * Time, memory and stack are bounded for every @raw; longer names are cut. A few valid names
 * that would take too long stay mangled, and so do C++ names of more than 1 KiB, which
 * libiberty refuses.
 *
 * Returns: (transfer full) (nullable): the name; %NULL if @raw is not mangled
 */
char *uprof_demangle(UprofSlice raw);
