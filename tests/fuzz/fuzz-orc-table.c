/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The first byte is the version, the second byte the number of bytes to cut from the end of the
 * input. Then come two tables: addresses of 4 bytes, and as many entries of 6 bytes.
 */
#include "fuzz.h"

#include "uprof/orc-table.h"

#define TABLE UINT64_C(0xffffffff82400000)

enum { HEADER = 2, LOOK_UPS = 64 };

/* A linear search for the same answer. */
static bool
is_covered(UprofSlice ips, uint64_t pc)
{
    const uint8_t *raw = ips.data;
    uint64_t first = 0, last = 0;

    for (size_t i = 0; i < ips.len / 4; i++) {
        const uint32_t offset = (uint32_t)raw[4 * i] | (uint32_t)raw[4 * i + 1] << 8 |
                                (uint32_t)raw[4 * i + 2] << 16 | (uint32_t)raw[4 * i + 3] << 24;
        last = TABLE + 4 * i + (uint64_t)(int64_t)(int32_t)offset;
        first = i == 0 ? last : first;
    }
    return pc - first < last - first;
}

void
fuzz_input(const uint8_t *data, size_t size)
{
    g_autoptr(GError) error = NULL;

    if (size < HEADER)
        return;
    const UprofOrcVersion version =
        UPROF_ORC_4_14 + data[0] % (UPROF_ORC_N_VERSIONS - UPROF_ORC_4_14);
    const size_t left = size - HEADER, tail = MIN(left, data[1]);
    const size_t n = (left - tail) / (UPROF_ORC_IP_BYTES + UPROF_ORC_ENTRY_BYTES);
    const UprofSlice ips = { data + HEADER, n * UPROF_ORC_IP_BYTES };
    const UprofSlice entries = { data + HEADER + ips.len, left - tail - ips.len };
    g_autoptr(UprofOrc) orc = uprof_orc_parse(ips, TABLE, entries, version, &error);

    check_answer(orc != NULL, error);
    if (!orc)
        return;
    g_assert(uprof_orc_n(orc) == n);
    for (unsigned i = 0; i < LOOK_UPS; i++) {
        const uint64_t pc = TABLE - 0x10000 + 0x800 * (uint64_t)i;
        UprofOrcRule rule;
        if (!uprof_orc_find(orc, pc, &rule))
            continue;
        g_assert(is_covered(ips, pc));
        g_assert(rule.type <= UPROF_ORC_PARTIAL);
        g_assert(rule.sp_reg <= UPROF_ORC_REG_AT_BP_OFFSET);
        if (rule.type >= UPROF_ORC_CALL)
            g_assert(rule.sp_reg > UPROF_ORC_REG_CFA && rule.bp_reg <= UPROF_ORC_REG_BP);
    }
    uprof_orc_version(entries, "");
}
