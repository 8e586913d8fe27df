/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * symbol-priv.h - rules for names that hold in all formats of symbol files
 */
#pragma once

#include <string.h>

#include "uprof/symbol.h"

enum {
    UPROF_SYMBOL_NAME_BYTES_MAX = 4096,
};

/*
 * Strips "@VERSION" and truncates long names.
 * Returns: false for empty names, local labels of the assembler, and the mapping symbols that
 * separate code from data on ARM (AAELF64, "Mapping symbols")
 */
static inline bool
trim_symbol_name(UprofSlice *name)
{
    const char *text = name->data;

    name->len = MIN(name->len, UPROF_SYMBOL_NAME_BYTES_MAX);
    if (name->len == 0)
        return false;

    const char *version = memchr(text, '@', name->len);
    if (version && version > text)
        name->len = version - text;
    if (name->len == 1)
        return true;
    if (text[0] == '.' && text[1] == 'L')
        return false;
    return !(text[0] == '$' && memchr("adtx", text[1], 4) && (name->len == 2 || text[2] == '.'));
}
