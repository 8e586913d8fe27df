/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/row-list.h"

#include <string.h>

static void
put_u64(GByteArray *out, uint64_t value)
{
    value = GUINT64_TO_LE(value);
    g_byte_array_append(out, (const guint8 *)&value, sizeof(value));
}

void
uprof_row_list_pack(const GArray *rows, GByteArray *out)
{
    put_u64(out, rows->len);
    for (guint i = 0; i < rows->len; i++) {
        const UprofProfileRow *row = &g_array_index(rows, UprofProfileRow, i);
        const char *name = uprof_name_text(row->name);
        const uint32_t len = GUINT32_TO_LE((uint32_t)strlen(name));
        put_u64(out, row->self);
        put_u64(out, row->total);
        g_byte_array_append(out, (const guint8 *)&len, sizeof(len));
        g_byte_array_append(out, (const guint8 *)name, (guint)strlen(name));
    }
}

static bool
read_row(UprofBytes *bytes, UprofNames *names, UprofProfileRow *row)
{
    UprofSlice name;
    uint32_t len;

    if (!uprof_bytes_u64(bytes, &row->self) || !uprof_bytes_u64(bytes, &row->total) ||
        !uprof_bytes_u32(bytes, &len) || !uprof_bytes_take(bytes, len, &name))
        return false;
    row->name = uprof_names_read_back(names, name);
    return true;
}

GArray *
uprof_row_list_unpack(UprofBytes *bytes, UprofNames *names)
{
    GArray *rows = g_array_new(FALSE, FALSE, sizeof(UprofProfileRow));
    UprofProfileRow row;
    uint64_t n = 0;

    uprof_bytes_u64(bytes, &n);
    for (uint64_t i = 0; i < n && read_row(bytes, names, &row); i++)
        g_array_append_val(rows, row);
    return rows;
}
