/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/btf.h"

#include "btf-priv.h"

#include <string.h>

#include "uprof/scan.h"

/*
 * header:  u16 magic, u8 version, u8 flags, u32 header length,
 *          u32 offset, u32 length: of types, of strings, and from 7.1 on of layouts;
 *          offsets count from the end of the header
 * types:   u32 name, u32 { 24 bits n, 7 bits kind, flag }, u32 size or type;
 *          then the record of the kind, and n elements of the kind
 * strings: each ends with NUL; the first is empty
 * layouts: for each kind: u8 bytes of its record, u8 bytes of an element, u16 flags
 *
 * The number of a type counts from 1; 0 is void. In older kernels n has 16 bits and kind has 5;
 * the other bits are 0. All numbers are little-endian.
 */

enum {
    MAGIC = 0xeb9f,
    VERSION = 1,
    HEADER_BYTES = 24,
    LAYOUT_BYTES = 4,
    TYPE_BYTES = 12,
    MEMBER_BYTES = 12, /* name, type, bit offset */
    ENUM_BYTES = 8,    /* name, value */
    ENUM64_BYTES = 12, /* name, low half, high half */
    ARRAY_BYTES = 12,  /* type, type of its index, n */
    N_BITS = 24,
    KIND_MASK = 0x7f,
    BIT_OFFSET_BITS = 24,
    BIT_OFFSET_MASK =
        0xffffff, /* if the structure has the flag; the bits above are the size of a bit field */
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

/* Bytes of the record of a kind, and of each element. */
static const struct {
    uint8_t record, element;
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

/* A structure, union or typedef, which callers find by name. */
typedef struct {
    uint32_t name;
    uint32_t id;
} Named;

struct _UprofBtf {
    UprofSlice types, strings, layouts;
    GArray *starts; /* of uint32_t: offset of each type in @types */
    GArray *named;  /* of Named */
};

typedef struct {
    uint32_t name;
    unsigned kind;
    uint32_t n;
    bool flag;
    uint32_t size; /* or the type to which this type refers */
    size_t rest;   /* offset of the record of the kind */
} Type;

typedef struct {
    uint32_t name, type;
    uint64_t bits;   /* from the start of the structure */
    uint32_t n_bits; /* of a bit field; 0: not a bit field */
} Member;

static const char *
get_string(const UprofBtf *btf, uint32_t name)
{
    return (const char *)btf->strings.data + name;
}

/* Reads inside a type whose length take_type() has checked. */
static uint32_t
read_u32(const UprofBtf *btf, size_t at)
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
        return uprof_bytes_fail(bytes, error, "types or names outside the data");
    if (header_len >= HEADER_BYTES + 8 && !take_section(bytes, body, &btf->layouts))
        return uprof_bytes_fail(bytes, error, "layouts outside the data");
    const char *strings = btf->strings.data;
    if (btf->strings.len == 0 || strings[0] != '\0' || strings[btf->strings.len - 1] != '\0')
        return uprof_bytes_fail(bytes, error, "names without an end");
    return true;
}

/* Returns: false if the layout of @kind is unknown */
static bool
find_layout(const UprofBtf *btf, unsigned kind, size_t *record, size_t *element)
{
    UprofSlice layout;

    if (kind == 0)
        return false;
    if (kind < N_KINDS) {
        *record = layouts[kind].record;
        *element = layouts[kind].element;
        return true;
    }
    if (!uprof_slice_sub(btf->layouts, (uint64_t)kind * LAYOUT_BYTES, LAYOUT_BYTES, &layout))
        return false;
    *record = ((const uint8_t *)layout.data)[0];
    *element = ((const uint8_t *)layout.data)[1];
    return true;
}

static void
note_name(UprofBtf *btf, uint32_t name, unsigned kind)
{
    const Named named = { name, btf->starts->len };

    if (kind == KIND_STRUCT || kind == KIND_UNION || kind == KIND_TYPEDEF || kind == KIND_ENUM)
        g_array_append_val(btf->named, named);
}

static bool
take_type(UprofBtf *btf, UprofBytes *bytes, GError **error)
{
    const uint32_t start = (uint32_t)bytes->at;
    uint32_t name, info, size;
    size_t record, element;
    UprofSlice rest;

    if (!uprof_bytes_u32(bytes, &name) || !uprof_bytes_u32(bytes, &info) ||
        !uprof_bytes_u32(bytes, &size))
        return uprof_bytes_fail(bytes, error, "a truncated type");
    const unsigned kind = info >> N_BITS & KIND_MASK;
    if (name >= btf->strings.len)
        return uprof_bytes_fail(bytes, error, "a name outside the data");
    if (!find_layout(btf, kind, &record, &element))
        return uprof_bytes_fail(bytes, error, "a type of kind %u", kind);
    if (!uprof_bytes_take(bytes, record + (info & N_MASK) * element, &rest))
        return uprof_bytes_fail(bytes, error, "a truncated type");
    if (btf->starts->len == UPROF_BTF_TYPES_MAX)
        return uprof_bytes_fail(bytes, error, "more than %d types", UPROF_BTF_TYPES_MAX);
    g_array_append_val(btf->starts, start);
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
    btf->starts = g_array_new(FALSE, FALSE, sizeof(uint32_t));
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
    g_array_unref(btf->starts);
    g_array_unref(btf->named);
    g_free(btf);
}

/* ---- Types ---- */

static bool
read_type(const UprofBtf *btf, uint32_t id, Type *type)
{
    if (id == 0 || id > btf->starts->len)
        return false;
    const size_t at = g_array_index(btf->starts, uint32_t, id - 1);
    const uint32_t info = read_u32(btf, at + 4);
    *type = (Type){
        .name = read_u32(btf, at),
        .kind = info >> N_BITS & KIND_MASK,
        .n = info & N_MASK,
        .flag = info & FLAG,
        .size = read_u32(btf, at + 8),
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

/* Follows typedefs and qualifiers to the type that they name. */
static bool
resolve_type(const UprofBtf *btf, uint32_t id, Type *type)
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
    return resolve_type(btf, id, type) && (type->kind == KIND_STRUCT || type->kind == KIND_UNION);
}

static bool
is_name(const UprofBtf *btf, uint32_t name, UprofSlice text)
{
    const char *string = get_string(btf, name);

    /* take_sections() has checked that the last string ends */
    return strncmp(string, text.data, text.len) == 0 && string[text.len] == '\0';
}

/* @is_typedef: C has one name space for typedefs and one for structures and unions. */
static bool
find_named(const UprofBtf *btf, const char *name, bool is_typedef, Type *type)
{
    const UprofSlice text = { name, strlen(name) };

    for (guint i = 0; i < btf->named->len; i++) {
        const Named *named = &g_array_index(btf->named, Named, i);
        Type found;
        if (!is_name(btf, named->name, text) || !read_type(btf, named->id, &found) ||
            found.kind == KIND_ENUM || (found.kind == KIND_TYPEDEF) != is_typedef)
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

/*
 * If a structure does not have the flag, its bit fields are integers with fewer bits. Returns: how
 * many; 0 if the type is not such an integer
 */
static uint32_t
get_short_bits(const UprofBtf *btf, uint32_t id)
{
    Type type;

    if (!resolve_type(btf, id, &type) || type.kind != KIND_INT)
        return 0;
    const uint32_t bits = read_u32(btf, type.rest);
    return (bits & 0xff) != type.size * 8 || (bits >> 16 & 0xff) != 0 ? MAX(bits & 0xff, 1) : 0;
}

static Member
read_member(const UprofBtf *btf, const Type *structure, uint32_t i)
{
    const size_t at = structure->rest + (size_t)i * MEMBER_BYTES;
    const uint32_t position = read_u32(btf, at + 8);
    const Member member = { .name = read_u32(btf, at), .type = read_u32(btf, at + 4) };

    return (Member){
        .name = member.name < btf->strings.len ? member.name : 0,
        .type = member.type,
        .bits = structure->flag ? position & BIT_OFFSET_MASK : position,
        .n_bits = structure->flag ? position >> BIT_OFFSET_BITS : get_short_bits(btf, member.type),
    };
}

/* One level of structures inside each other, while find_member() searches them. */
typedef struct {
    Type type;
    uint32_t next; /* member */
    uint64_t bits; /* offset of this level in the outermost structure */
} Level;

/* @steps: (inout): members read so far */
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
        if (get_string(btf, member.name)[0] == '\0' && depth <= UPROF_BTF_DEPTH_MAX &&
            resolve_structure(btf, member.type, &inner))
            levels[depth++] = (Level){ .type = inner, .bits = member.bits };
    }
    return false;
}

/* @path: (inout): loses its first name. Returns: false if the name is empty */
static bool
take_name(UprofSlice *path, UprofSlice *name)
{
    if (!uprof_slice_split(*path, '.', name, path)) {
        *name = *path;
        path->len = 0;
    }
    return name->len > 0;
}

/* @found: (out): its bit offset counts from the start of @type; only the last name may be a bit
 * field */
static bool
find_any_path(const UprofBtf *btf, const char *type, const char *path, Member *found)
{
    UprofSlice rest = { path, strlen(path) }, name;
    unsigned steps = 0;
    uint64_t bits = 0;
    Type structure;

    if (!find_structure(btf, type, &structure))
        return false;
    const uint64_t size = structure.size;
    for (;;) {
        if (!take_name(&rest, &name) || !find_member(btf, &structure, name, &steps, found) ||
            (rest.len > 0 && (found->n_bits > 0 || found->bits % 8 != 0)))
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

static bool
find_path(const UprofBtf *btf, const char *type, const char *path, Member *found)
{
    return find_any_path(btf, type, path, found) && found->n_bits == 0 && found->bits % 8 == 0;
}

bool
uprof_btf_bits(const UprofBtf *btf, const char *type, const char *member, uint64_t *offset,
               uint64_t *n)
{
    Member found;

    if (!find_any_path(btf, type, member, &found) || found.n_bits == 0)
        return false;
    *offset = found.bits;
    *n = found.n_bits;
    return true;
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

    if (!find_path(btf, type, member, &found) || !resolve_type(btf, found.type, &array) ||
        array.kind != KIND_ARRAY)
        return false;
    *n = read_u32(btf, array.rest + 8);
    return true;
}

/* Returns: false if @enumeration has no such value */
static bool
find_value(const UprofBtf *btf, const Type *enumeration, const char *name, uint32_t *value)
{
    const UprofSlice text = { name, strlen(name) };

    for (uint32_t i = 0; i < MIN(enumeration->n, (uint32_t)UPROF_BTF_STEPS_MAX); i++) {
        const size_t at = enumeration->rest + (size_t)i * ENUM_BYTES;
        const uint32_t found = read_u32(btf, at);
        if (found < btf->strings.len && is_name(btf, found, text)) {
            *value = read_u32(btf, at + 4);
            return true;
        }
    }
    return false;
}

bool
uprof_btf_enum(const UprofBtf *btf, const char *type, const char *name, uint32_t *value)
{
    const UprofSlice text = { type, strlen(type) };

    for (guint i = 0; i < btf->named->len; i++) {
        const Named *named = &g_array_index(btf->named, Named, i);
        Type found;
        if (is_name(btf, named->name, text) && read_type(btf, named->id, &found) &&
            found.kind == KIND_ENUM)
            return find_value(btf, &found, name, value);
    }
    return false;
}
