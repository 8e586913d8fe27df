/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/build-id.h"

char *
uprof_build_id_hex(UprofSlice build_id)
{
    const uint8_t *bytes = build_id.data;
    GString *hex = g_string_new(NULL);

    for (size_t i = 0; i < build_id.len; i++)
        g_string_append_printf(hex, "%02x", bytes[i]);
    return g_string_free(hex, FALSE);
}
