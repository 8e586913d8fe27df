/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * build-btf.h - types as a Linux kernel describes them, one after another
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    BTF_INT = 1,
    BTF_PTR = 2,
    BTF_ARRAY = 3,
    BTF_STRUCT = 4,
    BTF_UNION = 5,
    BTF_ENUM = 6,
    BTF_FWD = 7,
    BTF_TYPEDEF = 8,
    BTF_VOLATILE = 9,
    BTF_CONST = 10,
    BTF_RESTRICT = 11,
    BTF_FUNC = 12,
    BTF_FUNC_PROTO = 13,
    BTF_VAR = 14,
    BTF_DATASEC = 15,
    BTF_FLOAT = 16,
    BTF_DECL_TAG = 17,
    BTF_TYPE_TAG = 18,
    BTF_ENUM64 = 19,
};

/** BtfBuilder: @n: types so far */
typedef struct {
    GByteArray *types, *strings, *layouts;
    unsigned n;
} BtfBuilder;

/** BtfMember: @place: bits; with the structure's flag and a bit field's bits above the 24th */
typedef struct {
    const char *name; /* NULL: none */
    uint32_t type;
    uint32_t place;
} BtfMember;

void btf_init(BtfBuilder *builder);
void btf_clear(BtfBuilder *builder);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(BtfBuilder, btf_clear)

/** btf_name: Returns: where @name is; @name: (nullable): the empty one */
uint32_t btf_name(BtfBuilder *builder, const char *name);

/**
 * btf_add:
 * @n: of what follows, or whatever is to stand there
 * @size: or type
 * @rest: @n_rest numbers that follow
 *
 * Returns: its number
 */
unsigned btf_add(BtfBuilder *builder, const char *name, unsigned kind, bool flag, uint32_t n,
                 uint32_t size, const uint32_t *rest, size_t n_rest);

/** btf_add_struct: @kind: %BTF_STRUCT or %BTF_UNION. Returns: its number */
unsigned btf_add_struct(BtfBuilder *builder, const char *name, unsigned kind, bool flag,
                        uint32_t size, const BtfMember *members, uint32_t n);

/** btf_add_layout: from kind 0 on: bytes that the next kind has, and bytes of each of its n */
void btf_add_layout(BtfBuilder *builder, uint8_t own, uint8_t each);

/** btf_finish: Returns: (transfer full): all of it */
GByteArray *btf_finish(const BtfBuilder *builder);

/** build_btf: Returns: (transfer full): a small kernel with structures of all kinds */
GByteArray *build_btf(void);
