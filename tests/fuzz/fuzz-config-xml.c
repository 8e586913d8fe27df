/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../src/parse/config-xml-priv.h"
#include "fuzz.h"

#include <string.h>

#include "uprof/config-xml.h"

void
fuzz_input(const uint8_t *data, size_t size)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofConfigXml) xml = uprof_config_xml_parse((UprofSlice){ data, size }, &error);

    check_answer(xml != NULL, error);
    if (!xml)
        return;
    for (size_t i = 0; i < sizeof(*xml) / sizeof(char *); i++) {
        const char *value = ((char **)xml)[i];
        g_assert(!value || strlen(value) <= UPROF_CONFIG_VALUE_BYTES_MAX);
        g_assert(!value || g_utf8_validate(value, -1, NULL));
    }
}
