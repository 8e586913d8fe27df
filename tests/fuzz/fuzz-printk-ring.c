/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The rings of a kernel's log. The first two bytes are the logarithms of their lengths. Two ids of
 * 8 bytes follow, then descriptors, infos and text. The descriptors are the same afterwards, but
 * for one byte: its place and value are the last bytes.
 */
#include "fuzz.h"

#include <string.h>

#include "build-printk.h"

enum { COUNT_BITS_MAX = 6, SIZE_BITS_MAX = 12, HEAD_BYTES = 18, TAIL_BYTES = 3 };

static uint8_t *
take(UprofSlice *rest, size_t len)
{
    uint8_t *bytes = g_malloc0(len);
    const size_t n = MIN(rest->len, len);

    memcpy(bytes, rest->data, n);
    *rest = (UprofSlice){ (const uint8_t *)rest->data + n, rest->len - n };
    return bytes;
}

static void
check_record(const UprofPrintkRing *ring, const UprofPrintkRecord *record)
{
    const char *text = record->text.data, *all = ring->text.data;

    g_assert(record->level < 8);
    g_assert(text || record->text.len == 0);
    if (record->text.len > 0)
        g_assert(text >= all && text + record->text.len <= all + ring->text.len);
}

void
fuzz_input(const uint8_t *data, size_t size)
{
    if (size < HEAD_BYTES + TAIL_BYTES)
        return;
    UprofPrintkRing ring = {
        .layout = &printk_layout,
        .count_bits = data[0] % (COUNT_BITS_MAX + 1),
        .size_bits = data[1] % (SIZE_BITS_MAX + 1),
    };
    memcpy(&ring.tail, data + 2, sizeof(ring.tail));
    memcpy(&ring.head, data + 10, sizeof(ring.head));
    UprofSlice rest = { data + HEAD_BYTES, size - HEAD_BYTES - TAIL_BYTES };
    ring.descs.len = (size_t)PRINTK_DESC_BYTES << ring.count_bits;
    ring.infos.len = (size_t)PRINTK_INFO_BYTES << ring.count_bits;
    ring.text.len = (size_t)1 << ring.size_bits;
    g_autofree uint8_t *descs = take(&rest, ring.descs.len);
    g_autofree uint8_t *infos = take(&rest, ring.infos.len);
    g_autofree uint8_t *text = take(&rest, ring.text.len);
    g_autofree uint8_t *after = g_memdup2(descs, ring.descs.len);
    after[(data[size - 3] | data[size - 2] << 8) % ring.descs.len] ^= data[size - 1];
    ring.descs.data = descs;
    ring.descs_after = (UprofSlice){ after, ring.descs.len };
    ring.infos.data = infos;
    ring.text.data = text;
    g_autoptr(GError) error = NULL;
    g_autoptr(GArray) records = uprof_printk_ring_list(&ring, &error);
    check_answer(records != NULL, error);
    g_assert(records->len <= 1U << ring.count_bits);
    size_t sum = 0;
    for (guint i = 0; i < records->len; i++) {
        check_record(&ring, &g_array_index(records, UprofPrintkRecord, i));
        sum += g_array_index(records, UprofPrintkRecord, i).text.len;
        g_assert(i == 0 || g_array_index(records, UprofPrintkRecord, i - 1).sequence <
                               g_array_index(records, UprofPrintkRecord, i).sequence);
    }
    g_assert(sum <= ring.text.len);
}
