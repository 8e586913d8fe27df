/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fuzz.h"

#include "uprof/rule-list.h"

FuzzBounds
fuzz_bounds(void)
{
    return (FuzzBounds){
        .base_ms = 20,
        .us_per_kib = 400,
        .base_kib = 64,
        .bytes_per_byte = 256,
        .n_mutations = 100,
    };
}

/* A list that was read can be written, and read again. */
void
fuzz_input(const uint8_t *data, size_t size)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofRuleList) list =
        uprof_rule_list_parse("rules", (UprofSlice){ data, size }, &error);
    g_autoptr(GPtrArray) ids = g_ptr_array_new();

    g_assert((list != NULL) == (error == NULL));
    if (!list)
        return;
    for (unsigned i = 0; i < uprof_rule_list_n(list); i++) {
        const UprofListedFacts *facts = uprof_rule_list_at(list, i);
        while (ids->len <= facts->id)
            g_ptr_array_add(ids, (gpointer)uprof_rule_list_id(list, ids->len));
    }
    g_autoptr(GByteArray) bytes = uprof_rule_list_begin(ids);
    for (unsigned i = 0; i < uprof_rule_list_n(list); i++)
        g_assert(uprof_rule_list_append(bytes, uprof_rule_list_at(list, i)));
    g_autoptr(UprofRuleList) again =
        uprof_rule_list_parse("rules", (UprofSlice){ bytes->data, bytes->len }, &error);
    g_assert_no_error(error);
    g_assert(uprof_rule_list_n(again) == uprof_rule_list_n(list));
}
