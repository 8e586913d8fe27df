/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * nm.h - symbols as text: nm, nm -S, nm -n, System.map, /proc/kallsyms
 *
 * One grammar, a symbol per line:
 *
 *   line    = address [ " " size ] " " type " " name [ TAB "[" module "]" ]
 *   address = 1 to 16 hexadecimal digits; blanks where nm has none (undefined)
 *   type    = one character
 *
 * "nm -S" gives the size, in more than one digit. Skipped are empty lines,
 * symbols that are undefined, absolute, common or of debuggers, and the names
 * that uprof_elf_parse() drops; "@VERSION" is stripped. Other symbols than of
 * code are kept with code = false.
 */
#pragma once

#include "uprof/bytes.h"
#include "uprof/symbol.h"

enum { UPROF_NM_BYTES_MAX = 512 * 1024 * 1024 };

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
 * Returns: false with %UPROF_ERROR_BAD_DATA, naming the line; also if there is
 *   no symbol at all
 */
bool uprof_nm_parse(UprofSlice text, const char *name, GArray **symbols, GError **error);
