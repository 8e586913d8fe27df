/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../../src/parse/btf-priv.h"
#include "uprof/btf.h"

#include <string.h>

#include "build-btf.h"
#include "uprof/error.h"

#define NONE UINT64_MAX

/* clang-format off */
static const struct {
    const char *type, *member;
    uint64_t offset;
} members[] = {
    { "path", "mnt", 0 },
    { "path", "dentry", 8 },
    { "path", "dentr", NONE },
    { "path", "dentryx", NONE },
    { "path", "", NONE },
    { "path", ".mnt", NONE },
    { "path", "mnt.dentry", NONE }, /* a pointer leads elsewhere */
    { "path_t", "dentry", 8 },
    { "file", "f_path", 16 },
    { "file", "f_path.dentry", 24 },
    { "file", "f_path.comm", NONE },
    { "file", "f_mode.dentry", NONE },
    { "file", "dentry", NONE }, /* of a member with a name */
    { "task_struct", "flags", 0 },
    { "task_struct", "on_rq", NONE }, /* a bit field */
    { "task_struct", "pid", 8 },
    { "task_struct", "left", 16 },
    { "task_struct", "right", 24 },
    { "task_struct", "both", 16 },
    { "task_struct", "both.dentry", 24 },
    { "task_struct", "comm", 32 },
    { "task_struct", "tail", 48 },
    { "task_struct", "nothing", NONE },
    { "old_bits", "three", NONE },
    { "old_bits", "odd", NONE },
    { "old_bits", "four", 0 },
    { "atomic_t", "counter", 4 },
    { "mystery", "anything", NONE },
    { "int", "int", NONE },
    { "", "left", NONE },
    { "no_struct", "left", NONE },
};

static const struct {
    const char *type, *member;
    uint64_t offset, n; /* NONE: no such bit field */
} fields[] = {
    { "task_struct", "on_rq", 32, 1 },
    { "task_struct", "pid", NONE, NONE },
    { "task_struct", "both.dentry", NONE, NONE },
    { "old_bits", "three", 0, 3 },
    { "old_bits", "four", NONE, NONE },
    { "no_struct", "left", NONE, NONE },
};

/* One malformed header for each row. */
static const struct {
    const char *name;
    guint at, len;      /* the replaced bytes */
    uint32_t value;     /* the new value */
    const char *error;
} headers[] = {
    { "magic",          0, 2, 0x9feb,     "BTF byte *: no header" },
    { "version",        2, 1, 2,          "BTF byte *: no header" },
    { "short",          4, 4, 23,         "BTF byte *: a header of 23 bytes" },
    { "long",           4, 4, 0x7fffffff, "BTF byte *: a header of 2147483647 bytes" },
    { "with-layouts",   4, 4, 32,         "*" },
    { "types-far",      8, 4, 0xfffffff0, "BTF byte *: types or names outside the data" },
    { "types-odd",      8, 4, 1,          "*" },
    { "types-long",     12, 4, 0xffffffff, "BTF byte *: types or names outside the data" },
    { "types-cut",      12, 4, 13,        "BTF types byte 12: a truncated type" },
    { "type-cut",       12, 4, 20,        "BTF types byte 20: a truncated type" },
    { "names-far",      16, 4, 0xffffffff, "BTF byte *: types or names outside the data" },
    { "names-long",     20, 4, 0xffffffff, "BTF byte *: types or names outside the data" },
    { "no-names",       20, 4, 0,         "BTF byte *: names without an end" },
    { "names-cut",      20, 4, 8,         "BTF byte *: names without an end" },
    { "few-names",      20, 4, 1,         "BTF types byte 12: a name outside the data" },
    { "kind-0",         24 + 7, 1, 0,     "BTF types byte 12: a type of kind 0" },
    { "kind-unknown",   24 + 7, 1, 20,    "BTF types byte 12: a type of kind 20" },
    { "kind-127",       24 + 7, 1, 0xff,  "BTF types byte 12: a type of kind 127" },
    { "too-many",       24 + 4, 4, 4U << 24 | 0xffffff, "BTF types byte 12: a truncated type" },
    { "name-far",       24 + 0, 4, 0xfffffff, "BTF types byte 12: a name outside the data" },
};
/* clang-format on */

static UprofBtf *
parse(const GByteArray *bytes, GError **error)
{
    return uprof_btf_parse((UprofSlice){ bytes->data, bytes->len }, error);
}

static void
test_members(void)
{
    g_autoptr(GByteArray) bytes = build_btf();
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofBtf) btf = parse(bytes, &error);

    g_assert_no_error(error);
    for (size_t i = 0; i < G_N_ELEMENTS(members); i++) {
        uint64_t offset = NONE;
        const bool found = uprof_btf_member(btf, members[i].type, members[i].member, &offset);
        if (offset != members[i].offset || found != (offset != NONE))
            g_error("%s.%s: %s, %" G_GUINT64_FORMAT, members[i].type, members[i].member,
                    found ? "found" : "not found", offset);
    }
}

static void
test_bit_fields(void)
{
    g_autoptr(GByteArray) bytes = build_btf();
    g_autoptr(UprofBtf) btf = parse(bytes, NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(fields); i++) {
        uint64_t offset = NONE, n = NONE;
        const bool found = uprof_btf_bits(btf, fields[i].type, fields[i].member, &offset, &n);
        if (offset != fields[i].offset || n != fields[i].n || found != (offset != NONE))
            g_error("%s.%s: %s, %" G_GUINT64_FORMAT ", %" G_GUINT64_FORMAT, fields[i].type,
                    fields[i].member, found ? "found" : "not found", offset, n);
    }
}

static void
test_others(void)
{
    g_autoptr(GByteArray) bytes = build_btf();
    g_autoptr(UprofBtf) btf = parse(bytes, NULL);
    uint64_t value = 42;

    g_assert_false(uprof_btf_size(btf, "mystery", &value));
    g_assert_false(uprof_btf_size(btf, "int", &value));
    g_assert_false(uprof_btf_array(btf, "task_struct", "pid", &value));
    g_assert_false(uprof_btf_array(btf, "task_struct", "com", &value));
    g_assert_cmpuint(value, ==, 42);

    g_assert_true(uprof_btf_size(btf, "task_struct", &value));
    g_assert_cmpuint(value, ==, 80);
    g_assert_true(uprof_btf_size(btf, "atomic_t", &value));
    g_assert_cmpuint(value, ==, 8);
    g_assert_true(uprof_btf_array(btf, "task_struct", "comm", &value));
    g_assert_cmpuint(value, ==, 16);
}

static void
test_header(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_autoptr(GByteArray) bytes = build_btf();
    g_autoptr(GError) error = NULL;

    for (guint k = 0; k < headers[i].len; k++)
        bytes->data[headers[i].at + k] = (uint8_t)(headers[i].value >> 8 * k);
    g_assert_null(parse(bytes, &error));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
    if (!g_pattern_match_simple(headers[i].error, error->message))
        g_error("%s: %s", headers[i].name, error->message);
}

/* Asks for every member of the table. Returns: number of answers */
static unsigned
count_answers(const UprofBtf *btf)
{
    unsigned n = 0;
    uint64_t value, size;

    for (size_t i = 0; i < G_N_ELEMENTS(members); i++) {
        if (!uprof_btf_member(btf, members[i].type, members[i].member, &value))
            continue;
        g_assert_true(uprof_btf_size(btf, members[i].type, &size));
        g_assert_cmpuint(value, <=, size);
        n++;
    }
    n += uprof_btf_array(btf, "task_struct", "comm", &value);
    return n;
}

/* Truncates the data at every byte, and replaces every byte. */
static void
test_bytes_changed(void)
{
    g_autoptr(GByteArray) bytes = build_btf();
    unsigned n_taken = 0;

    for (guint len = 0; len < bytes->len; len++) {
        g_autofree uint8_t *copy = g_memdup2(bytes->data, len);
        g_autoptr(GError) error = NULL;
        g_assert_null(uprof_btf_parse((UprofSlice){ copy, len }, &error));
        g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
    }
    for (guint at = 0; at < bytes->len; at++) {
        for (unsigned change = 1; change < 256; change += 27) {
            bytes->data[at] ^= (uint8_t)change;
            g_autoptr(UprofBtf) btf = parse(bytes, NULL);
            bytes->data[at] ^= (uint8_t)change;
            n_taken += btf && count_answers(btf) > 0;
        }
    }
    g_assert_cmpuint(n_taken, >, bytes->len);
}

/* Nested unnamed structures. */
static void
test_depth(void)
{
    for (unsigned depth = 1; depth <= UPROF_BTF_DEPTH_MAX + 1; depth++) {
        g_auto(BtfBuilder) builder;
        btf_init(&builder);
        unsigned id = btf_add_struct(&builder, NULL, BTF_STRUCT, false, 1000,
                                     &(BtfMember){ "deep", 99, 8 }, 1);
        for (unsigned i = 1; i < depth; i++)
            id = btf_add_struct(&builder, NULL, BTF_STRUCT, false, 1000,
                                &(BtfMember){ NULL, id, 8 }, 1);
        btf_add_struct(&builder, "top", BTF_STRUCT, false, 1000, &(BtfMember){ NULL, id, 8 }, 1);
        g_autoptr(GByteArray) bytes = btf_finish(&builder);
        g_autoptr(UprofBtf) btf = parse(bytes, NULL);
        uint64_t offset;
        g_assert_true(uprof_btf_member(btf, "top", "deep", &offset) ==
                      (depth <= UPROF_BTF_DEPTH_MAX));
        if (depth <= UPROF_BTF_DEPTH_MAX)
            g_assert_cmpuint(offset, ==, depth + 1);
    }
}

/* Structures with many members of their own type, and typedefs of themselves. */
static void
test_cycles(void)
{
    enum { MEMBERS = 100 };
    g_auto(BtfBuilder) builder;
    BtfMember members_of_itself[MEMBERS];
    uint64_t value;

    btf_init(&builder);
    for (unsigned i = 0; i < MEMBERS; i++)
        members_of_itself[i] = (BtfMember){ NULL, i % 2 ? 1 : 2, 0 };
    btf_add_struct(&builder, "one", BTF_STRUCT, false, 8, members_of_itself, MEMBERS);
    btf_add_struct(&builder, "other", BTF_UNION, true, 8, members_of_itself, MEMBERS);
    btf_add(&builder, "itself", BTF_TYPEDEF, false, 0, 3, NULL, 0);
    btf_add(&builder, "ping", BTF_TYPEDEF, false, 0, 5, NULL, 0);
    btf_add(&builder, NULL, BTF_CONST, false, 0, 4, NULL, 0);
    btf_add_struct(&builder, "own", BTF_STRUCT, false, 8, &(BtfMember){ "own", 6, 0 }, 1);
    btf_add(&builder, "nothing", BTF_TYPEDEF, false, 0, 0, NULL, 0);
    btf_add(&builder, "beyond", BTF_TYPEDEF, false, 0, 99, NULL, 0);
    g_autoptr(GByteArray) bytes = btf_finish(&builder);
    g_autoptr(UprofBtf) btf = parse(bytes, NULL);

    g_assert_false(uprof_btf_member(btf, "one", "missing", &value));
    g_assert_false(uprof_btf_member(btf, "other", "missing", &value));
    g_assert_false(uprof_btf_member(btf, "itself", "missing", &value));
    g_assert_false(uprof_btf_size(btf, "itself", &value));
    g_assert_false(uprof_btf_size(btf, "ping", &value));
    g_assert_false(uprof_btf_size(btf, "nothing", &value));
    g_assert_false(uprof_btf_size(btf, "beyond", &value));
    g_assert_true(uprof_btf_member(btf, "own", "own.own.own.own", &value));
    g_assert_cmpuint(value, ==, 0);
}

/* A member beyond the end of its structure is not found. */
static void
test_outside(void)
{
    const BtfMember far[] = { { "last", 9, 64 },
                              { "behind", 9, 72 },
                              { "far", 9, UINT32_MAX - 7 } };
    g_auto(BtfBuilder) builder;
    uint64_t value;

    btf_init(&builder);
    const unsigned id = btf_add_struct(&builder, "small", BTF_STRUCT, false, 8, far, 3);
    btf_add_struct(&builder, "around", BTF_STRUCT, false, 12, &(BtfMember){ "in", id, 64 }, 1);
    btf_add_struct(&builder, "without", BTF_STRUCT, false, 12, &(BtfMember){ NULL, id, 64 }, 1);
    g_autoptr(GByteArray) bytes = btf_finish(&builder);
    g_autoptr(UprofBtf) btf = parse(bytes, NULL);

    g_assert_true(uprof_btf_member(btf, "small", "last", &value)); /* an array without a length */
    g_assert_false(uprof_btf_member(btf, "small", "behind", &value));
    g_assert_false(uprof_btf_member(btf, "small", "far", &value));
    g_assert_true(uprof_btf_member(btf, "around", "in", &value));
    g_assert_false(uprof_btf_member(btf, "around", "in.last", &value));
    g_assert_false(uprof_btf_member(btf, "without", "far", &value));
}

/* Unknown kinds whose lengths are in the table of layouts. */
static void
test_layouts(void)
{
    const uint32_t rest[] = { 1, 2, 3, 4, 5 };
    uint64_t value;

    for (unsigned n_kinds = 20; n_kinds <= 22; n_kinds++) {
        g_auto(BtfBuilder) builder;
        g_autoptr(GError) error = NULL;
        btf_init(&builder);
        for (unsigned kind = 0; kind < n_kinds; kind++)
            btf_add_layout(&builder, kind < 20 ? 0 : 4, kind < 20 ? 0 : 8);
        btf_add(&builder, NULL, 20, true, 2, 7, rest, 5);
        btf_add(&builder, NULL, 21, false, 0, 7, rest, 1);
        btf_add_struct(&builder, "s", BTF_STRUCT, false, 8, &(BtfMember){ "m", 1, 32 }, 1);
        g_autoptr(GByteArray) bytes = btf_finish(&builder);
        g_autoptr(UprofBtf) btf = parse(bytes, &error);
        g_assert_true(!btf == (n_kinds < 22));
        if (!btf)
            continue;
        g_assert_true(uprof_btf_member(btf, "s", "m", &value));
        g_assert_cmpuint(value, ==, 4);
    }
}

static void
test_too_many(void)
{
    g_auto(BtfBuilder) builder;
    g_autoptr(GError) error = NULL;

    btf_init(&builder);
    btf_add(&builder, NULL, BTF_PTR, false, 0, 0, NULL, 0);
    g_autoptr(GByteArray) one = g_byte_array_new();
    g_byte_array_append(one, builder.types->data, builder.types->len);
    for (unsigned i = 1; i < UPROF_BTF_TYPES_MAX; i++)
        g_byte_array_append(builder.types, one->data, one->len);
    g_autoptr(GByteArray) bytes = btf_finish(&builder);
    g_autoptr(UprofBtf) btf = parse(bytes, &error);
    g_assert_no_error(error);
    g_assert_nonnull(btf);

    g_byte_array_append(builder.types, one->data, one->len);
    g_autoptr(GByteArray) more = btf_finish(&builder);
    g_assert_null(parse(more, &error));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
    g_assert_true(g_str_has_suffix(error->message, ": more than 1000000 types"));
}

static void
test_too_long(void)
{
    const size_t len = UPROF_BTF_BYTES_MAX + 1;
    g_autofree uint8_t *bytes = g_malloc0(len);
    g_autoptr(GError) error = NULL;

    g_assert_null(uprof_btf_parse((UprofSlice){ bytes, len }, &error));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
    g_assert_cmpstr(error->message, ==, "BTF byte 0: 67108865 bytes are too many");
}

/* clang-format off */
static const struct {
    const char *type, *name;
    bool is_known;
    uint32_t value;
} values[] = {
    { "mod_mem_type", "MOD_TEXT", true, 0 },
    { "mod_mem_type", "MOD_DATA", true, 0xfffffffe },
    { "mod_mem_type", "MOD_DAT", false, 0 },
    { "mod_mem_type", "", false, 0 },
    { "signs", "MINUS_TWO", true, 0xfffffffe },
    { "signs", "MOD_TEXT", false, 0 },
    { "wide", "WIDE", false, 0 },
    { "path", "mnt", false, 0 },
    { "nothing", "MOD_TEXT", false, 0 },
    { "", "", false, 0 },
};
/* clang-format on */

static void
test_values(void)
{
    g_autoptr(GByteArray) bytes = build_btf();
    g_autoptr(UprofBtf) btf = uprof_btf_parse((UprofSlice){ bytes->data, bytes->len }, NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(values); i++) {
        uint32_t value = 77;
        g_assert_cmpint(uprof_btf_enum(btf, values[i].type, values[i].name, &value), ==,
                        values[i].is_known);
        g_assert_cmpuint(value, ==, values[i].is_known ? values[i].value : 77);
    }
    uint64_t offset;
    g_assert_false(uprof_btf_member(btf, "mod_mem_type", "MOD_TEXT", &offset));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/btf/members", test_members);
    g_test_add_func("/btf/bit-fields", test_bit_fields);
    g_test_add_func("/btf/others", test_others);
    g_test_add_func("/btf/values", test_values);
    for (size_t i = 0; i < G_N_ELEMENTS(headers); i++) {
        g_autofree char *path = g_strdup_printf("/btf/header/%s", headers[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_header);
    }
    g_test_add_func("/btf/bytes-changed", test_bytes_changed);
    g_test_add_func("/btf/depth", test_depth);
    g_test_add_func("/btf/cycles", test_cycles);
    g_test_add_func("/btf/outside", test_outside);
    g_test_add_func("/btf/layouts", test_layouts);
    g_test_add_func("/btf/too-many", test_too_many);
    g_test_add_func("/btf/too-long", test_too_long);
    return g_test_run();
}
