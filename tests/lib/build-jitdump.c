/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "build-jitdump.h"

#include <string.h>

enum { RECORD_BYTES = 16 };

static void
append_u32(GByteArray *file, uint32_t value)
{
    g_byte_array_append(file, (const guint8 *)&value, sizeof(value));
}

static void
append_u64(GByteArray *file, uint64_t value)
{
    g_byte_array_append(file, (const guint8 *)&value, sizeof(value));
}

static void
append_zeros(GByteArray *file, size_t len)
{
    g_byte_array_set_size(file, file->len + (guint)len);
    memset(file->data + file->len - len, 0, len);
}

static void
append_record(GByteArray *file, uint32_t type, size_t content)
{
    append_u32(file, type);
    append_u32(file, (uint32_t)(RECORD_BYTES + content));
    append_u64(file, 0); /* time */
}

GByteArray *
build_jitdump_new(void)
{
    static const uint32_t words[] = { 0x4a695444, 1, 40, 62, 0, 77 };
    GByteArray *file = g_byte_array_new();

    for (size_t i = 0; i < G_N_ELEMENTS(words); i++)
        append_u32(file, words[i]);
    append_u64(file, 0);
    append_u64(file, 0);
    return file;
}

void
build_jitdump_load(GByteArray *file, uint64_t address, uint64_t size, const char *name)
{
    const size_t name_bytes = strlen(name) + 1;

    append_record(file, 0, 40 + name_bytes + size);
    append_u64(file, 77);
    append_u64(file, address);
    append_u64(file, address);
    append_u64(file, size);
    append_u64(file, 1);
    g_byte_array_append(file, (const guint8 *)name, (guint)name_bytes);
    append_zeros(file, size);
}

void
build_jitdump_move(GByteArray *file, uint64_t from, uint64_t to, uint64_t size)
{
    append_record(file, 1, 48);
    append_u64(file, 77);
    append_u64(file, to);
    append_u64(file, from);
    append_u64(file, to);
    append_u64(file, size);
    append_u64(file, 1);
}

void
build_jitdump_other(GByteArray *file, uint32_t type, uint32_t len)
{
    append_record(file, type, len);
    append_zeros(file, len);
}
