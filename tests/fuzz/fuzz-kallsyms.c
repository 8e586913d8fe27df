/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../src/parse/kallsyms-priv.h"
#include "fuzz.h"

#include <string.h>

#include "uprof/kallsyms.h"

void
fuzz_input(const uint8_t *data, size_t size)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofKallsyms) kallsyms =
        uprof_kallsyms_parse((UprofSlice){ data, size }, UINT64_C(0xffffffff81000000), 4, &error);

    check_answer(kallsyms != NULL, error);
    if (!kallsyms)
        return;
    g_assert(kallsyms->symbols->len >= 4 && kallsyms->symbols->len <= UPROF_KALLSYMS_MAX);
    g_assert(kallsyms->names->len <= UPROF_KALLSYMS_BYTES_MAX + UPROF_KALLSYMS_NAME_BYTES_MAX);
    for (guint i = 0; i < kallsyms->symbols->len; i++) {
        const UprofKallsym *symbol = &g_array_index(kallsyms->symbols, UprofKallsym, i);
        g_assert(symbol->name < kallsyms->names->len);
        const size_t len = strlen(uprof_kallsyms_name(kallsyms, symbol));
        g_assert(len < UPROF_KALLSYMS_NAME_BYTES_MAX && symbol->name + len < kallsyms->names->len);
    }
}
