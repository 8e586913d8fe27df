/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fuzz.h"

#include <string.h>

#include "../../src/sym/demangle-priv.h"

void
fuzz_input(const uint8_t *data, size_t size)
{
    const UprofSlice raw = { data, size };
    UprofDemangler demangler, other;

    uprof_demangler_init(&demangler);
    uprof_demangler_init(&other);
    g_autofree char *name = uprof_demangle(&demangler, raw);
    g_autofree char *again = uprof_demangle(&other, raw);

    /* a name that takes nearly all of the time limit may exceed the limit in only one call */
    if (name && again)
        g_assert_cmpstr(name, ==, again);
    if (name)
        g_assert(size <= UPROF_DEMANGLE_BYTES_MAX && strlen(name) <= UPROF_DEMANGLE_BYTES_MAX);
}
