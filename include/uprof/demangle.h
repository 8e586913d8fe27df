/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * demangle.h - names as their programmers wrote them
 *
 * C++ (Itanium ABI), Rust (legacy and v0) and D through libiberty; OCaml by
 * itself: "camlStdlib__List__map_342" is Stdlib.List.map. What comes out is not
 * clean yet (text.h).
 */
#pragma once

#include "uprof/bytes.h"

enum { UPROF_DEMANGLE_BYTES_MAX = 4096 }; /* of what goes in, and of what comes out */

/**
 * uprof_demangle:
 * @raw: a symbol, any bytes
 *
 * Bounded in time, memory and stack, whatever @raw says: what would be longer is
 * cut. A few names that are proper, but would take long, are left as they are, and
 * so are C++ names of more than 1 KiB, which libiberty refuses.
 *
 * Returns: (transfer full) (nullable): the name; %NULL: @raw is as good
 */
char *uprof_demangle(UprofSlice raw);
