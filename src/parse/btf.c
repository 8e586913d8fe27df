/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/btf.h"

#include <string.h>

#include "uprof/scan.h"

/*
 * header:  u16 magic, u8 version, u8 flags, u32 header length,
 *          u32 offset, u32 length: of types, of strings, and from 7.1 on of layouts;
 *          offsets count from the end of the header
 * types:   u32 name, u32 { 24 bits n, 7 bits kind, flag }, u32 size or type;
 *          then what the kind has, and n times what the kind has of each
 * strings: ended by NUL; the first is empty
 * layouts: u8 bytes that a kind has, u8 bytes of each, u16 flags; of all kinds
 *
 * A type's number counts from 1; 0 is void. (n had 16 bits, and a kind 5, before those
 * beside them were taken, which were 0.) All numbers are little-endian.
 */

enum {
    MAGIC = 0xeb9f,
    VERSION = 1,
    HEADER_BYTES = 24,
    LAYOUT_BYTES = 4,
    TYPE_BYTES = 12,
    MEMBER_BYTES = 12, /* name, type, place */
    ENUM_BYTES = 8,    /* name, value */
    ENUM64_BYTES = 12, /* name, low half, high half */
    ARRAY_BYTES = 12,  /* type, type of its index, n */
    N_BITS = 24,
    KIND_MASK = 0x7f,
    BIT_OFFSET_MASK = 0xffffff, /* of a place, if the structure has the flag; above: a bit field */
};
#define N_MASK ((1U << N_BITS) - 1)
#define FLAG (1U << 31)

enum {
    KIND_INT = 1,
    KIND_PTR = 2,
    KIND_ARRAY = 3,
    KIND_STRUCT = 4,
    KIND_UNION = 5,
    KIND_ENUM = 6,
    KIND_FWD = 7,
    KIND_TYPEDEF = 8,
    KIND_VOLATILE = 9,
    KIND_CONST = 10,
    KIND_RESTRICT = 11,
    KIND_FUNC = 12,
    KIND_FUNC_PROTO = 13,
    KIND_VAR = 14,
    KIND_DATASEC = 15,
    KIND_FLOAT = 16,
    KIND_DECL_TAG = 17,
    KIND_TYPE_TAG = 18,
    KIND_ENUM64 = 19,
    N_KINDS,
};

/* clang-format off */

/* Bytes that a kind has, and bytes of each of its n. */
static const struct {
    uint8_t own, each;
} layouts[N_KINDS] = {
    [KIND_INT]        = { 4, 0 },
    [KIND_ARRAY]      = { ARRAY_BYTES, 0 },
    [KIND_STRUCT]     = { 0, MEMBER_BYTES },
    [KIND_UNION]      = { 0, MEMBER_BYTES },
    [KIND_ENUM]       = { 0, ENUM_BYTES },
    [KIND_FUNC_PROTO] = { 0, 8 },
    [KIND_VAR]        = { 4, 0 },
    [KIND_DATASEC]    = { 0, 12 },
    [KIND_DECL_TAG]   = { 4, 0 },
    [KIND_ENUM64]     = { 0, ENUM64_BYTES },
};
/* clang-format on */

/* Those that may be asked for by name. */
typedef struct {
    uint32_t name;
    uint32_t id;
} Named;

struct _UprofBtf {
    UprofSlice types, strings, layouts;
    GArray *places; /* of uint32_t: where each type begins */
    GArray *named;  /* of Named */
};

typedef struct {
    uint32_t name;
    unsigned kind;
    uint32_t n;
    bool flag;
    uint32_t size; /* or type */
    size_t rest;   /* where what the kind has begins */
} Type;

typedef struct {
    uint32_t name, type;
    uint64_t bits; /* from the start of the structure */
    bool is_bit_field;
} Member;

static const char *
string_at(const UprofBtf *btf, uint32_t name)
{
    return (const char *)btf->strings.data + name;
}

/* Of what was checked when it was parsed. */
static uint32_t
read32(const UprofBtf *btf, size_t at)
{
    const uint8_t *bytes = (const uint8_t *)btf->types.data + at;

    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
           (uint32_t)bytes[3] << 24;
}

/* ---- Parsing ---- */

static bool
take_section(UprofBytes *bytes, UprofSlice body, UprofSlice *section)
{
    uint32_t offset, len;

    return uprof_bytes_u32(bytes, &offset) && uprof_bytes_u32(bytes, &len) &&
           uprof_slice_sub(body, offset, len, section);
}

static bool
take_sections(UprofBtf *btf, UprofBytes *bytes, GError **error)
{
    uint16_t magic;
    uint8_t version, flags;
    uint32_t header_len;
    UprofSlice body;

    if (!uprof_bytes_u16(bytes, &magic) || magic != MAGIC || !uprof_bytes_u8(bytes, &version) ||
        version != VERSION || !uprof_bytes_u8(bytes, &flags) ||
        !uprof_bytes_u32(bytes, &header_len))
        return uprof_bytes_fail(bytes, error, "no header");
    if (header_len < HEADER_BYTES || header_len > bytes->all.len)
        return uprof_bytes_fail(bytes, error, "a header of %u bytes", header_len);
    uprof_slice_sub(bytes->all, header_len, bytes->all.len - header_len, &body);
    if (!take_section(bytes, body, &btf->types) || !take_section(bytes, body, &btf->strings))
        return uprof_bytes_fail(bytes, error, "types or names that are not there");
    if (header_len >= HEADER_BYTES + 8 && !take_section(bytes, body, &btf->layouts))
        return uprof_bytes_fail(bytes, error, "layouts that are not there");
    const char *strings = btf->strings.data;
    if (btf->strings.len == 0 || strings[0] != '\0' || strings[btf->strings.len - 1] != '\0')
        return uprof_bytes_fail(bytes, error, "names that do not end");
    return true;
}

/* Returns: false if nobody knows */
static bool
find_layout(const UprofBtf *btf, unsigned kind, size_t *own, size_t *each)
{
    UprofSlice layout;

    if (kind == 0)
        return false;
    if (kind < N_KINDS) {
        *own = layouts[kind].own;
        *each = layouts[kind].each;
        return true;
    }
    if (!uprof_slice_sub(btf->layouts, (uint64_t)kind * LAYOUT_BYTES, LAYOUT_BYTES, &layout))
        return false;
    *own = ((const uint8_t *)layout.data)[0];
    *each = ((const uint8_t *)layout.data)[1];
    return true;
}

static void
note_name(UprofBtf *btf, uint32_t name, unsigned kind)
{
    const Named named = { name, btf->places->len };

    if (kind == KIND_STRUCT || kind == KIND_UNION || kind == KIND_TYPEDEF)
        g_array_append_val(btf->named, named);
}

static bool
take_type(UprofBtf *btf, UprofBytes *bytes, GError **error)
{
    const uint32_t place = (uint32_t)bytes->at;
    uint32_t name, info, size;
    size_t own, each;
    UprofSlice rest;

    if (!uprof_bytes_u32(bytes, &name) || !uprof_bytes_u32(bytes, &info) ||
        !uprof_bytes_u32(bytes, &size))
        return uprof_bytes_fail(bytes, error, "a type that is cut");
    const unsigned kind = info >> N_BITS & KIND_MASK;
    if (name >= btf->strings.len)
        return uprof_bytes_fail(bytes, error, "a name that is not there");
    if (!find_layout(btf, kind, &own, &each))
        return uprof_bytes_fail(bytes, error, "a type of kind %u", kind);
    if (!uprof_bytes_take(bytes, own + (info & N_MASK) * each, &rest))
        return uprof_bytes_fail(bytes, error, "a type that is cut");
    if (btf->places->len == UPROF_BTF_TYPES_MAX)
        return uprof_bytes_fail(bytes, error, "more than %d types", UPROF_BTF_TYPES_MAX);
    g_array_append_val(btf->places, place);
    note_name(btf, name, kind);
    return true;
}

UprofBtf *
uprof_btf_parse(UprofSlice slice, GError **error)
{
    UprofBytes bytes = { .name = "BTF", .all = slice };
    g_autoptr(UprofBtf) btf = NULL;

    if (slice.len > UPROF_BTF_BYTES_MAX) {
        uprof_bytes_fail(&bytes, error, "%zu bytes are too many", slice.len);
        return NULL;
    }
    btf = g_new0(UprofBtf, 1);
    btf->places = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    btf->named = g_array_new(FALSE, FALSE, sizeof(Named));
    if (!take_sections(btf, &bytes, error))
        return NULL;
    UprofBytes types = { .name = "BTF types", .all = btf->types };
    while (uprof_bytes_left(&types) > 0)
        if (!take_type(btf, &types, error))
            return NULL;
    return g_steal_pointer(&btf);
}

void
uprof_btf_free(UprofBtf *btf)
{
    if (!btf)
        return;
    g_array_unref(btf->places);
    g_array_unref(btf->named);
    g_free(btf);
}

unsigned
uprof_btf_n(const UprofBtf *btf)
{
    return btf->places->len;
}

/* ---- Types ---- */

static bool
read_type(const UprofBtf *btf, uint32_t id, Type *type)
{
    if (id == 0 || id > btf->places->len)
        return false;
    const size_t at = g_array_index(btf->places, uint32_t, id - 1);
    const uint32_t info = read32(btf, at + 4);
    *type = (Type){
        .name = read32(btf, at),
        .kind = info >> N_BITS & KIND_MASK,
        .n = info & N_MASK,
        .flag = info & FLAG,
        .size = read32(btf, at + 8),
        .rest = at + TYPE_BYTES,
    };
    return true;
}

static bool
is_alias(unsigned kind)
{
    return kind == KIND_TYPEDEF || kind == KIND_VOLATILE || kind == KIND_CONST ||
           kind == KIND_RESTRICT || kind == KIND_TYPE_TAG;
}

/* The type itself, behind its other names. */
static bool
resolve(const UprofBtf *btf, uint32_t id, Type *type)
{
    for (unsigned i = 0; i < UPROF_BTF_ALIASES_MAX; i++) {
        if (!read_type(btf, id, type))
            return false;
        if (!is_alias(type->kind))
            return true;
        id = type->size;
    }
    return false;
}

static bool
resolve_structure(const UprofBtf *btf, uint32_t id, Type *type)
{
    return resolve(btf, id, type) && (type->kind == KIND_STRUCT || type->kind == KIND_UNION);
}

static bool
is_name(const UprofBtf *btf, uint32_t name, UprofSlice text)
{
    const char *string = string_at(btf, name);

    /* it ends in the section, and so does this, by then */
    return strncmp(string, text.data, text.len) == 0 && string[text.len] == '\0';
}

/* @is_typedef: structures and typedefs have names of their own. */
static bool
find_named(const UprofBtf *btf, const char *name, bool is_typedef, Type *type)
{
    const UprofSlice text = { name, strlen(name) };

    for (guint i = 0; i < btf->named->len; i++) {
        const Named *named = &g_array_index(btf->named, Named, i);
        Type found;
        if (!is_name(btf, named->name, text) || !read_type(btf, named->id, &found) ||
            (found.kind == KIND_TYPEDEF) != is_typedef)
            continue;
        return resolve_structure(btf, named->id, type);
    }
    return false;
}

static bool
find_structure(const UprofBtf *btf, const char *name, Type *type)
{
    return name[0] && (find_named(btf, name, false, type) || find_named(btf, name, true, type));
}

bool
uprof_btf_size(const UprofBtf *btf, const char *type, uint64_t *size)
{
    Type found;

    if (!find_structure(btf, type, &found))
        return false;
    *size = found.size;
    return true;
}

/* ---- Members ---- */

/* Before the flag was there, bit fields were integers of so many bits. */
static bool
is_short_int(const UprofBtf *btf, uint32_t id)
{
    Type type;

    if (!resolve(btf, id, &type) || type.kind != KIND_INT)
        return false;
    const uint32_t bits = read32(btf, type.rest);
    return (bits & 0xff) != type.size * 8 || (bits >> 16 & 0xff) != 0;
}

static Member
read_member(const UprofBtf *btf, const Type *structure, uint32_t i)
{
    const size_t at = structure->rest + (size_t)i * MEMBER_BYTES;
    const uint32_t place = read32(btf, at + 8);
    const Member member = { .name = read32(btf, at), .type = read32(btf, at + 4) };

    return (Member){
        .name = member.name < btf->strings.len ? member.name : 0,
        .type = member.type,
        .bits = structure->flag ? place & BIT_OFFSET_MASK : place,
        .is_bit_field = structure->flag ? place > BIT_OFFSET_MASK : is_short_int(btf, member.type),
    };
}

/* A structure that is being looked through. */
typedef struct {
    Type type;
    uint32_t next;
    uint64_t bits;
} Level;

/* @steps: (inout): members that were looked at */
static bool
find_member(const UprofBtf *btf, const Type *structure, UprofSlice name, unsigned *steps,
            Member *found)
{
    Level levels[UPROF_BTF_DEPTH_MAX + 1] = { { .type = *structure } };
    unsigned depth = 1;

    while (depth > 0) {
        Level *level = &levels[depth - 1];
        if (level->next == level->type.n) {
            depth--;
            continue;
        }
        if (++*steps > UPROF_BTF_STEPS_MAX)
            return false;
        Member member = read_member(btf, &level->type, level->next++);
        member.bits += level->bits;
        if (is_name(btf, member.name, name)) {
            *found = member;
            return true;
        }
        Type inner;
        if (string_at(btf, member.name)[0] == '\0' && depth <= UPROF_BTF_DEPTH_MAX &&
            resolve_structure(btf, member.type, &inner))
            levels[depth++] = (Level){ .type = inner, .bits = member.bits };
    }
    return false;
}

/* @path: (inout): moves behind the next name. Returns: false if there is none */
static bool
next_name(UprofSlice *path, UprofSlice *name)
{
    if (!uprof_slice_split(*path, '.', name, path)) {
        *name = *path;
        path->len = 0;
    }
    return name->len > 0;
}

/* @found: (out): its place counts from the start of @type */
static bool
find_path(const UprofBtf *btf, const char *type, const char *path, Member *found)
{
    UprofSlice rest = { path, strlen(path) }, name;
    unsigned steps = 0;
    uint64_t bits = 0;
    Type structure;

    if (!find_structure(btf, type, &structure))
        return false;
    const uint64_t size = structure.size;
    for (;;) {
        if (!next_name(&rest, &name) || !find_member(btf, &structure, name, &steps, found) ||
            found->is_bit_field || found->bits % 8 != 0)
            return false;
        bits += found->bits;
        if (bits / 8 > size)
            return false;
        found->bits = bits;
        if (rest.len == 0)
            return true;
        if (!resolve_structure(btf, found->type, &structure))
            return false;
    }
}

bool
uprof_btf_member(const UprofBtf *btf, const char *type, const char *member, uint64_t *offset)
{
    Member found;

    if (!find_path(btf, type, member, &found))
        return false;
    *offset = found.bits / 8;
    return true;
}

bool
uprof_btf_array(const UprofBtf *btf, const char *type, const char *member, uint64_t *n)
{
    Member found;
    Type array;

    if (!find_path(btf, type, member, &found) || !resolve(btf, found.type, &array) ||
        array.kind != KIND_ARRAY)
        return false;
    *n = read32(btf, array.rest + 8);
    return true;
}

/* ---- Constants ---- */

static uint64_t
read_constant(const UprofBtf *btf, const Type *type, size_t at)
{
    const uint32_t low = read32(btf, at + 4);

    if (type->kind == KIND_ENUM64)
        return low | (uint64_t)read32(btf, at + 8) << 32;
    return type->flag ? (uint64_t)(int64_t)(int32_t)low : low;
}

static bool
find_constant(const UprofBtf *btf, const Type *type, UprofSlice name, uint64_t *value)
{
    const size_t each = layouts[type->kind].each;

    for (uint32_t i = 0; i < type->n; i++) {
        const size_t at = type->rest + i * each;
        const uint32_t its_name = read32(btf, at);
        if (its_name >= btf->strings.len || !is_name(btf, its_name, name))
            continue;
        *value = read_constant(btf, type, at);
        return true;
    }
    return false;
}

bool
uprof_btf_enum(const UprofBtf *btf, const char *name, uint64_t *value)
{
    const UprofSlice text = { name, strlen(name) };

    for (uint32_t id = 1; id <= btf->places->len; id++) {
        Type type;
        if (read_type(btf, id, &type) && (type.kind == KIND_ENUM || type.kind == KIND_ENUM64) &&
            find_constant(btf, &type, text, value))
            return true;
    }
    return false;
}
