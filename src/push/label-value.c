/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "label-value-priv.h"

#include <glib.h>
#include <stdbool.h>

char *
uprof_label_value(const char *name)
{
    GString *value = g_string_new(NULL);

    while (*name) {
        const gunichar character = g_utf8_get_char_validated(name, -1);
        const bool is_valid = (gint32)character >= 0;
        if (is_valid && character != '%' && !g_unichar_iscntrl(character)) {
            g_string_append_unichar(value, character);
            name = g_utf8_next_char(name);
            continue;
        }
        const char *end = is_valid ? g_utf8_next_char(name) : name + 1;
        for (; name < end; name++)
            g_string_append_printf(value, "%%%02X", (unsigned char)*name);
    }
    return g_string_free(value, FALSE);
}
