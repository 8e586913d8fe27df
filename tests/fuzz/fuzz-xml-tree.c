/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fuzz.h"

#include <string.h>

#include "../../src/parse/xml-tree-priv.h"

enum { BYTES_MAX = 64 * 1024 };

void
fuzz_input(const uint8_t *data, size_t size)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(xmlDoc) doc = uprof_xml_load((UprofSlice){ data, size }, "fuzz", BYTES_MAX, &error);

    check_answer(doc != NULL, error);
    g_assert(!doc || size <= BYTES_MAX);
    if (!doc)
        return;

    xmlNode *root = xmlDocGetRootElement(doc);
    g_autofree char *text = uprof_xml_value(root, NULL);
    g_assert(!xmlGetIntSubset(doc));
    g_assert(!text || g_utf8_validate(text, -1, NULL));
    for (const xmlAttr *attr = root->properties; attr; attr = attr->next) {
        g_autofree char *value = uprof_xml_value(root, (const char *)attr->name);
        g_assert(!value || g_utf8_validate(value, -1, NULL));
    }
}
