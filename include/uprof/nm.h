/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * nm.h - symbols as text: nm, nm -S, nm -n, System.map, /proc/kallsyms
 *
 * One grammar, a symbol per line:
 *
 *   line    = address [ " " size ] " " type " " name [ TAB "[" module "]" ]
 *   address = 1 to 16 hexadecimal digits; blanks where nm has none (undefined)
 *
 * "nm -S" gives the size. Lines of undefined symbols and empty lines are skipped.
 */
#pragma once

#include "uprof/bytes.h"
#include "uprof/symbol.h"

/** uprof_nm_is: Returns: whether the first lines of @text look like this grammar */
bool uprof_nm_is(UprofSlice text);

/**
 * uprof_nm_parse:
 * @text: must outlive what is returned in @symbols
 * @name: of the file, for messages
 * @symbols: (out) (transfer full): array of UprofSymbol in the order of the file
 *
 * A text in which every address is 0 is refused: the kernel wrote it for
 * somebody who may not see addresses (kptr_restrict).
 *
 * Returns: false with %UPROF_ERROR_BAD_DATA, naming the line
 */
bool uprof_nm_parse(UprofSlice text, const char *name, GArray **symbols, GError **error);
