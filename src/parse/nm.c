/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/nm.h"

#include "nm-priv.h"

#include <string.h>

#include "uprof/scan.h"

#include "symbol-priv.h"

enum { CHECKED_LINES = 10 }; /* by uprof_nm_is() */

typedef enum {
    TYPE_SKIPPED,
    TYPE_CODE,
    TYPE_OTHER,
} Type;

/* clang-format off */
static const struct {
    char letter; /* nm(1) */
    Type type;
    UprofBinding binding;
} types[] = {
    { 'T', TYPE_CODE,    UPROF_BINDING_GLOBAL },
    { 't', TYPE_CODE,    UPROF_BINDING_LOCAL  },
    { 'W', TYPE_CODE,    UPROF_BINDING_WEAK   },
    { 'w', TYPE_CODE,    UPROF_BINDING_WEAK   },
    { 'i', TYPE_CODE,    UPROF_BINDING_GLOBAL }, /* indirect function */
    { 'D', TYPE_OTHER,   UPROF_BINDING_GLOBAL },
    { 'd', TYPE_OTHER,   UPROF_BINDING_LOCAL  },
    { 'B', TYPE_OTHER,   UPROF_BINDING_GLOBAL },
    { 'b', TYPE_OTHER,   UPROF_BINDING_LOCAL  },
    { 'R', TYPE_OTHER,   UPROF_BINDING_GLOBAL },
    { 'r', TYPE_OTHER,   UPROF_BINDING_LOCAL  },
    { 'G', TYPE_OTHER,   UPROF_BINDING_GLOBAL },
    { 'g', TYPE_OTHER,   UPROF_BINDING_LOCAL  },
    { 'S', TYPE_OTHER,   UPROF_BINDING_GLOBAL },
    { 's', TYPE_OTHER,   UPROF_BINDING_LOCAL  },
    { 'V', TYPE_OTHER,   UPROF_BINDING_WEAK   },
    { 'v', TYPE_OTHER,   UPROF_BINDING_WEAK   },
    { 'u', TYPE_OTHER,   UPROF_BINDING_GLOBAL }, /* unique */
    { 'n', TYPE_OTHER,   UPROF_BINDING_LOCAL  }, /* read-only data */
    { 'p', TYPE_OTHER,   UPROF_BINDING_LOCAL  }, /* stack unwinding */
    { 'A', TYPE_SKIPPED, UPROF_BINDING_GLOBAL }, /* absolute: not an address */
    { 'a', TYPE_SKIPPED, UPROF_BINDING_LOCAL  },
    { 'C', TYPE_SKIPPED, UPROF_BINDING_GLOBAL }, /* common: no address yet */
    { 'c', TYPE_SKIPPED, UPROF_BINDING_LOCAL  },
    { 'I', TYPE_SKIPPED, UPROF_BINDING_GLOBAL }, /* refers to another symbol */
    { 'N', TYPE_SKIPPED, UPROF_BINDING_LOCAL  }, /* for debuggers */
    { 'U', TYPE_SKIPPED, UPROF_BINDING_GLOBAL },
    { '-', TYPE_SKIPPED, UPROF_BINDING_LOCAL  },
    { '?', TYPE_SKIPPED, UPROF_BINDING_LOCAL  },
};
/* clang-format on */

UprofBinding
uprof_nm_binding(char letter)
{
    for (size_t i = 0; i < G_N_ELEMENTS(types); i++)
        if (types[i].letter == letter)
            return types[i].binding;
    return UPROF_BINDING_LOCAL;
}

static bool
find_type(UprofSlice word, Type *type, UprofSymbol *symbol)
{
    if (word.len != 1)
        return false;
    for (size_t i = 0; i < G_N_ELEMENTS(types); i++) {
        if (types[i].letter != *(const char *)word.data)
            continue;
        *type = types[i].type;
        symbol->code = types[i].type == TYPE_CODE;
        symbol->binding = types[i].binding;
        return true;
    }
    return false;
}

/* @rest: " name", or " name TAB [module]" */
static bool
read_name(UprofSlice rest, UprofSlice *name)
{
    UprofSlice module;

    if (!uprof_slice_split(rest, '\t', name, &module))
        *name = rest;
    *name = uprof_slice_trim(*name);
    return name->len > 0;
}

/* @line: not empty. Returns: false if the line does not follow the grammar */
static bool
read_line(UprofSlice line, Type *type, UprofSymbol *symbol)
{
    const bool has_address = *(const char *)line.data != ' ';
    UprofSlice word;

    *symbol = (UprofSymbol){ 0 };
    if (!uprof_scan_word(&line, &word))
        return false;
    if (has_address &&
        (word.len > 16 || !uprof_slice_to_uint(word, 16, 0, UINT64_MAX, &symbol->start) ||
         !uprof_scan_word(&line, &word)))
        return false;
    if (has_address && word.len > 1 &&
        (!uprof_slice_to_uint(word, 16, 0, UINT64_MAX, &symbol->size) ||
         !uprof_scan_word(&line, &word)))
        return false;
    if (!find_type(word, type, symbol) || !read_name(line, &symbol->name))
        return false;
    if (!has_address)
        *type = TYPE_SKIPPED;
    symbol->size = MIN(symbol->size, UINT64_MAX - symbol->start);
    return true;
}

bool
uprof_nm_is(UprofSlice text)
{
    UprofScan scan = { .rest = text };
    unsigned n = 0;
    UprofSlice line;
    UprofSymbol symbol;
    Type type;

    while (scan.line < CHECKED_LINES && uprof_scan_line(&scan, &line)) {
        if (line.len == 0)
            continue;
        if (!read_line(line, &type, &symbol))
            return false;
        n++;
    }
    return n > 0;
}

bool
uprof_nm_parse(UprofSlice text, const char *name, GArray **symbols, GError **error)
{
    UprofScan scan = { .name = name, .rest = text };
    g_autoptr(GArray) found = g_array_new(FALSE, FALSE, sizeof(UprofSymbol));
    bool has_address = false;
    UprofSlice line;
    UprofSymbol symbol;
    Type type;

    if (text.len > UPROF_NM_BYTES_MAX)
        return uprof_scan_fail(&scan, error, "%zu bytes are too many", text.len);

    while (uprof_scan_line(&scan, &line)) {
        if (line.len == 0)
            continue;
        if (!read_line(line, &type, &symbol))
            return uprof_scan_fail(&scan, error, "not 'ADDRESS TYPE NAME'");
        has_address |= symbol.start != 0;
        if (type == TYPE_SKIPPED || !trim_symbol_name(&symbol.name))
            continue;
        if (found->len == UPROF_SYMBOLS_MAX)
            return uprof_scan_fail(&scan, error, "more than %d symbols", UPROF_SYMBOLS_MAX);
        g_array_append_val(found, symbol);
    }
    if (found->len == 0)
        return uprof_scan_fail(&scan, error, "no symbol up to here");
    if (!has_address)
        return uprof_scan_fail(&scan, error,
                               "every address is 0: the kernel hid them (kptr_restrict); "
                               "read the file as root");

    *symbols = g_steal_pointer(&found);
    return true;
}
