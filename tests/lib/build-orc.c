/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "build-orc.h"

static void
put(GByteArray *table, uint64_t value, unsigned len)
{
    for (unsigned i = 0; i < len; i++) {
        const uint8_t byte = (uint8_t)(value >> 8 * i);
        g_byte_array_append(table, &byte, 1);
    }
}

void
build_orc(const OrcLine *lines, size_t n, uint64_t ips_at, GByteArray *ips, GByteArray *entries)
{
    for (size_t i = 0; i < n; i++) {
        put(ips, lines[i].pc - (ips_at + 4 * i), 4);
        put(entries, (uint16_t)lines[i].sp_offset, 2);
        put(entries, (uint16_t)lines[i].bp_offset, 2);
        put(entries, lines[i].flags, 2);
    }
}
