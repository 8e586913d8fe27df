/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * nm.h - reads symbols as text: nm, nm -S, nm -n, System.map, /proc/kallsyms
 *
 * All of them have one grammar, with a symbol on each line:
 *
 *   line    = address [ " " size ] " " type " " name [ TAB "[" module "]" ]
 *   address = 1 to 16 hexadecimal digits; blanks if the symbol is undefined
 *   type    = one character
 *
 * A size has more than one digit, so it cannot be a type. The reader skips empty lines, symbols
 * that are undefined, absolute, common or for debuggers, and names that uprof_elf_parse() drops.
 * The reader strips "@VERSION". Symbols that do not name code have code = false.
 */
#pragma once

#include "uprof/bytes.h"
#include "uprof/symbol.h"

/** uprof_nm_is: Checks whether the first lines of @text follow this grammar. */
bool uprof_nm_is(UprofSlice text);

/** uprof_nm_binding: Returns: the binding that the letter of nm says; LOCAL for other characters */
UprofBinding uprof_nm_binding(char letter);

/**
 * uprof_nm_parse:
 * @text: must outlive @symbols
 * @name: of the file, for messages
 * @symbols: (out) (transfer full): array of UprofSymbol in the order of the file
 *
 * Refuses a text in which every address is 0. The kernel writes such a text for users who may
 * not see addresses (kptr_restrict).
 *
 * Returns: false with %UPROF_ERROR_BAD_DATA and the line number if a line is malformed, or the
 *   text has no symbols
 */
bool uprof_nm_parse(UprofSlice text, const char *name, GArray **symbols, GError **error);
