/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * build-btf.h - writes type information (BTF) like a Linux kernel's, for tests
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

/** BtfBuilder: type information that is being written */
typedef struct {
    GByteArray *types, *strings, *layouts; /* owned; the sections */
    unsigned n;                            /* types so far */
} BtfBuilder;

/** BtfMember: a member of a structure or union */
typedef struct {
    const char *name; /* (nullable): borrowed; NULL: no name */
    uint32_t type;    /* number of its type */
    /* offset in bits; if the structure has the flag, bits 24 to 31 are the length of a bit field */
    uint32_t place;
} BtfMember;

void btf_init(BtfBuilder *builder);
void btf_clear(BtfBuilder *builder);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(BtfBuilder, btf_clear)

/** btf_name: adds @name (nullable) to the strings. Returns: its offset; 0 for the empty name */
uint32_t btf_name(BtfBuilder *builder, const char *name);

/**
 * btf_add: adds a type
 * @n: number of members, parameters or values; a test may also pass a wrong number
 * @size: size, or the number of another type
 * @rest: @n_rest numbers that follow
 *
 * Returns: the number of the type
 */
unsigned btf_add(BtfBuilder *builder, const char *name, unsigned kind, bool flag, uint32_t n,
                 uint32_t size, const uint32_t *rest, size_t n_rest);

/** btf_add_struct: @kind: %BTF_STRUCT or %BTF_UNION. Returns: the number of the type */
unsigned btf_add_struct(BtfBuilder *builder, const char *name, unsigned kind, bool flag,
                        uint32_t size, const BtfMember *members, uint32_t n);

/**
 * btf_add_layout: adds the layout of the next kind, from kind 0 on
 * @own: bytes after the header
 * @each: bytes of each of its n members
 */
void btf_add_layout(BtfBuilder *builder, uint8_t own, uint8_t each);

/** btf_finish: Returns: (transfer full): header and all sections */
GByteArray *btf_finish(const BtfBuilder *builder);

/** build_btf: Returns: (transfer full): the types of a small kernel, with all kinds */
GByteArray *build_btf(void);
