/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "build-btf.h"

#include <string.h>

static void
put(GByteArray *bytes, uint64_t value, unsigned len)
{
    for (unsigned i = 0; i < len; i++) {
        const uint8_t byte = (uint8_t)(value >> 8 * i);
        g_byte_array_append(bytes, &byte, 1);
    }
}

void
btf_init(BtfBuilder *builder)
{
    *builder = (BtfBuilder){ .types = g_byte_array_new(),
                             .strings = g_byte_array_new(),
                             .layouts = g_byte_array_new() };
    put(builder->strings, 0, 1);
}

void
btf_clear(BtfBuilder *builder)
{
    g_byte_array_unref(builder->types);
    g_byte_array_unref(builder->strings);
    g_byte_array_unref(builder->layouts);
}

uint32_t
btf_name(BtfBuilder *builder, const char *name)
{
    const uint32_t at = builder->strings->len;

    if (!name || !name[0])
        return 0;
    g_byte_array_append(builder->strings, (const uint8_t *)name, (guint)strlen(name) + 1);
    return at;
}

unsigned
btf_add(BtfBuilder *builder, const char *name, unsigned kind, bool flag, uint32_t n, uint32_t size,
        const uint32_t *rest, size_t n_rest)
{
    put(builder->types, btf_name(builder, name), 4);
    put(builder->types, n | (uint32_t)kind << 24 | (uint32_t)flag << 31, 4);
    put(builder->types, size, 4);
    for (size_t i = 0; i < n_rest; i++)
        put(builder->types, rest[i], 4);
    return ++builder->n;
}

unsigned
btf_add_struct(BtfBuilder *builder, const char *name, unsigned kind, bool flag, uint32_t size,
               const BtfMember *members, uint32_t n)
{
    g_autofree uint32_t *rest = g_new(uint32_t, (size_t)3 * n + 1);

    for (uint32_t i = 0; i < n; i++) {
        rest[3 * i] = btf_name(builder, members[i].name);
        rest[3 * i + 1] = members[i].type;
        rest[3 * i + 2] = members[i].place;
    }
    return btf_add(builder, name, kind, flag, n, size, rest, (size_t)3 * n);
}

void
btf_add_layout(BtfBuilder *builder, uint8_t own, uint8_t each)
{
    put(builder->layouts, own, 1);
    put(builder->layouts, each, 1);
    put(builder->layouts, 0, 2);
}

GByteArray *
btf_finish(const BtfBuilder *builder)
{
    const bool has_layouts = builder->layouts->len > 0;
    const guint types = builder->types->len, strings = builder->strings->len;
    GByteArray *all = g_byte_array_new();

    put(all, 0xeb9f, 2);
    put(all, 1, 1);
    put(all, 0, 1);
    put(all, has_layouts ? 32 : 24, 4);
    put(all, 0, 4);
    put(all, types, 4);
    put(all, types, 4);
    put(all, strings, 4);
    if (has_layouts) {
        put(all, types + strings, 4);
        put(all, builder->layouts->len, 4);
    }
    g_byte_array_append(all, builder->types->data, types);
    g_byte_array_append(all, builder->strings->data, strings);
    if (has_layouts)
        g_byte_array_append(all, builder->layouts->data, builder->layouts->len);
    return all;
}

#define ADD(name, kind, flag, n, size, ...)                                                        \
    btf_add(&builder, name, kind, flag, n, size, (const uint32_t[]){ __VA_ARGS__ },                \
            sizeof((const uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t))
#define ADD_BARE(name, kind, size) btf_add(&builder, name, kind, false, 0, size, NULL, 0)
#define ADD_STRUCT(name, kind, flag, size, ...)                                                    \
    btf_add_struct(&builder, name, kind, flag, size, (const BtfMember[]){ __VA_ARGS__ },           \
                   sizeof((const BtfMember[]){ __VA_ARGS__ }) / sizeof(BtfMember))

GByteArray *
build_btf(void)
{
    g_auto(BtfBuilder) builder;

    btf_init(&builder);
    const unsigned integer = ADD("int", BTF_INT, false, 0, 4, 1 << 24 | 32);
    const unsigned byte = ADD("char", BTF_INT, false, 0, 1, 2 << 24 | 8);
    const unsigned pointer = ADD_BARE(NULL, BTF_PTR, integer);
    const unsigned comm = ADD(NULL, BTF_ARRAY, false, 0, 0, byte, integer, 16);
    const unsigned bits = ADD(NULL, BTF_INT, false, 0, 4, 1 << 24 | 3);
    const unsigned path =
        ADD_STRUCT("path", BTF_STRUCT, false, 16, { "mnt", pointer, 0 }, { "dentry", pointer, 64 });
    const unsigned path_t = ADD_BARE("path_t", BTF_TYPEDEF, path);
    const unsigned volatile_path = ADD_BARE(NULL, BTF_VOLATILE, path_t);
    const unsigned const_path = ADD_BARE(NULL, BTF_CONST, volatile_path);
    const unsigned tagged_path = ADD_BARE("user", BTF_TYPE_TAG, const_path);
    ADD_STRUCT("file", BTF_STRUCT, false, 32, { "f_mode", integer, 0 },
               { "f_path", tagged_path, 128 });
    const unsigned inner =
        ADD_STRUCT(NULL, BTF_STRUCT, false, 16, { "left", integer, 0 }, { "right", pointer, 64 });
    const unsigned either =
        ADD_STRUCT(NULL, BTF_UNION, false, 16, { NULL, inner, 0 }, { "both", path, 0 });
    ADD_STRUCT("task_struct", BTF_STRUCT, true, 80, { "flags", integer, 0 },
               { "on_rq", integer, 1 << 24 | 32 }, { "pid", integer, 64 }, { NULL, either, 128 },
               { "comm", comm, 256 }, { "tail", pointer, 384 });
    ADD_STRUCT("old_bits", BTF_UNION, false, 4, { "three", bits, 0 }, { "odd", byte, 4 },
               { "four", integer, 0 });
    const unsigned anonymous = ADD_STRUCT(NULL, BTF_STRUCT, false, 8, { "counter", integer, 32 });
    ADD_BARE("atomic_t", BTF_TYPEDEF, anonymous);
    ADD_BARE("mystery", BTF_FWD, 0);
    const unsigned prototype = ADD(NULL, BTF_FUNC_PROTO, false, 1, integer, 0, pointer);
    btf_add(&builder, "start", BTF_FUNC, false, 1, prototype, NULL, 0);
    const unsigned jiffies = ADD("jiffies", BTF_VAR, false, 0, integer, 1);
    ADD(".data", BTF_DATASEC, false, 1, 4, jiffies, 0, 4);
    ADD_BARE("double", BTF_FLOAT, 8);
    ADD("tag", BTF_DECL_TAG, false, 0, path, UINT32_MAX);
    ADD_BARE(NULL, BTF_RESTRICT, pointer);
    ADD("mod_mem_type", BTF_ENUM, false, 2, 4, btf_name(&builder, "MOD_TEXT"), 0,
        btf_name(&builder, "MOD_DATA"), 0xfffffffe);
    ADD("signs", BTF_ENUM, true, 1, 4, btf_name(&builder, "MINUS_TWO"), 0xfffffffe);
    ADD("wide", BTF_ENUM64, false, 1, 8, btf_name(&builder, "WIDE"), 0x89abcdef, 0x01234567);
    return btf_finish(&builder);
}
