/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fuzz.h"

#include "uprof/btf.h"

static const char *const types[] = {
    "path", "file", "task_struct", "atomic_t", "path_t", "module"
};
static const char *const members[] = { "dentry", "f_path.dentry", "comm", "pid",
                                       "right",  "both.mnt",      "tail", "counter" };

void
fuzz_input(const uint8_t *data, size_t size)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofBtf) btf = uprof_btf_parse((UprofSlice){ data, size }, &error);
    uint64_t value, bytes;

    check_answer(btf != NULL, error);
    uint32_t number;
    if (!btf)
        return;
    uprof_btf_enum(btf, "mod_mem_type", "MOD_TEXT", &number);
    uprof_btf_enum(btf, "signs", "MINUS_TWO", &number);
    for (size_t i = 0; i < G_N_ELEMENTS(types); i++) {
        const bool has_type = uprof_btf_size(btf, types[i], &bytes);
        for (size_t k = 0; k < G_N_ELEMENTS(members); k++) {
            const bool has_member = uprof_btf_member(btf, types[i], members[k], &value);
            g_assert(!has_member || (has_type && value <= bytes));
            if (uprof_btf_array(btf, types[i], members[k], &value))
                g_assert(has_member && value <= UINT32_MAX);
        }
    }
}
