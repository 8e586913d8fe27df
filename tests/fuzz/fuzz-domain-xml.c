/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../src/parse/domain-xml-priv.h"
#include "../../src/parse/profile-xml-priv.h"
#include "fuzz.h"

#include <string.h>

#include "uprof/domain-xml.h"

void
fuzz_input(const uint8_t *data, size_t size)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofDomainXml) xml = uprof_domain_xml_parse((UprofSlice){ data, size }, &error);

    check_answer(xml != NULL, error);
    if (!xml)
        return;

    const UprofMetadata *metadata = &xml->metadata;
    g_assert(xml->type[0] && xml->name[0] && xml->uuid[0]);
    g_assert(strlen(xml->name) <= UPROF_XML_VALUE_BYTES_MAX);
    g_assert(xml->vcpus >= 1 && xml->vcpus <= xml->vcpus_max);
    g_assert(xml->vcpus_max <= UPROF_XML_VCPUS_MAX);
    g_assert(metadata->symbols->len <= UPROF_METADATA_SYMBOLS_MAX);
    g_assert(metadata->present || (!metadata->enabled && !metadata->unknown));
    g_assert(!metadata->present || !metadata->bad);
}
