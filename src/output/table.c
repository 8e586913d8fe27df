/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/output.h"

#include <string.h>

/* Tenths of a percent, without floating point: output depends on no locale. */
static void
append_share(GString *out, uint64_t part, uint64_t whole)
{
    const uint64_t tenths = uprof_permille(part, whole);

    g_string_append_printf(out, "%4u.%u", (unsigned)(tenths / 10), (unsigned)(tenths % 10));
}

/* Takes the row of halted vCPUs out: shares are shares of what ran. Returns: its weight */
static uint64_t
take_idle(GArray *rows)
{
    for (guint i = 0; i < rows->len; i++) {
        const UprofProfileRow *row = &g_array_index(rows, UprofProfileRow, i);
        const uint64_t weight = row->self;
        if (strcmp(uprof_name_text(row->name), "[idle]") != 0)
            continue;
        g_array_remove_index(rows, i);
        return weight;
    }
    return 0;
}

GString *
uprof_table_render(const UprofProfile *profile, unsigned n_rows)
{
    g_autoptr(GArray) rows = uprof_profile_rows(profile);
    const uint64_t total = uprof_profile_total(profile) - take_idle(rows);
    GString *out = g_string_new("  self   total  function\n");

    for (guint i = 0; i < rows->len && i < n_rows; i++) {
        const UprofProfileRow *row = &g_array_index(rows, UprofProfileRow, i);
        append_share(out, row->self, total);
        g_string_append(out, "  ");
        append_share(out, row->total, total);
        g_string_append_printf(out, "  %s\n", uprof_name_text(row->name));
    }
    if (rows->len > n_rows)
        g_string_append_printf(out, "%u more functions; -n %u shows them all\n", rows->len - n_rows,
                               rows->len);
    return out;
}
