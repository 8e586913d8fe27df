/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../../src/parse/go-table-priv.h"

#include <string.h>

#include "uprof/symbol.h"

enum {
    HEAD = 72,
    RECORD = 44, /* bytes of a function's record */
    TABLES = 32, /* bytes for lists of sizes */
    LIST = 1,    /* offset of the only list there */
    FUNCTIONS_MAX = 4,
    FIRST = 0x1000, /* address of the code that a header says */
    TEXT = 0x2000,  /* address of .text */
    APART = 0x40,   /* from one function to the next */
};

typedef struct {
    uint32_t magic;
    bool says_text; /* the header has the address of the code */
    const char *names[FUNCTIONS_MAX];
    const char *sizes; /* (nullable): bytes of the list of sizes that all functions have */
    uint8_t flags[FUNCTIONS_MAX];
} Plan;

static const Plan usual = { .magic = 0xfffffff1,
                            .names = { "main.main", "runtime.goexit", "main.(*T).f" },
                            .sizes = "\x02\x04\x30\x30\x2f\x08" };

static void
put_u32(GByteArray *bytes, size_t at, uint32_t value)
{
    value = GUINT32_TO_LE(value);
    memcpy(bytes->data + at, &value, sizeof(value));
}

static void
put_u64(GByteArray *bytes, size_t at, uint64_t value)
{
    value = GUINT64_TO_LE(value);
    memcpy(bytes->data + at, &value, sizeof(value));
}

static guint
grow(GByteArray *bytes, guint more)
{
    const guint at = bytes->len;

    g_byte_array_set_size(bytes, at + more);
    memset(bytes->data + at, 0, more);
    return at;
}

/* Returns: (transfer full): a table with functions APART bytes from each other */
static GByteArray *
build_table(const Plan *plan)
{
    GByteArray *bytes = g_byte_array_new();
    uint32_t names[FUNCTIONS_MAX];
    guint n = 0;

    grow(bytes, HEAD);
    put_u32(bytes, 0, plan->magic);
    bytes->data[6] = 1;
    bytes->data[7] = 8;
    put_u64(bytes, 24, plan->says_text ? FIRST : 0);
    put_u64(bytes, 32, HEAD);
    for (; n < FUNCTIONS_MAX && plan->names[n]; n++) {
        names[n] = bytes->len - HEAD;
        g_byte_array_append(bytes, (const guint8 *)plan->names[n],
                            (guint)strlen(plan->names[n]) + 1);
    }
    for (size_t at = 40; at < HEAD; at += 8)
        put_u64(bytes, at, grow(bytes, TABLES));
    const guint functions = bytes->len - TABLES;
    if (plan->sizes)
        memcpy(bytes->data + functions - TABLES + LIST, plan->sizes, strlen(plan->sizes));
    grow(bytes, 8 * n);
    for (guint i = 0; i < n; i++) {
        const guint record = grow(bytes, RECORD);
        put_u32(bytes, functions + 8 * i, i * APART);
        put_u32(bytes, functions + 8 * i + 4, record - functions);
        put_u32(bytes, record + 4, names[i]);
        put_u32(bytes, record + 16, plan->sizes ? LIST : 0);
        bytes->data[record + (plan->magic == 0xfffffff0 ? 37 : 41)] = plan->flags[i];
    }
    put_u32(bytes, functions + 8 * n, n * APART);
    put_u64(bytes, 8, n);
    return bytes;
}

static UprofGoBytes
view_table(const GByteArray *bytes)
{
    return (UprofGoBytes){ .all = { bytes->data, bytes->len } };
}

/* Returns: (transfer full) (nullable): "NAME START SIZE " of each function */
static char *
read_table(const GByteArray *bytes, uint64_t text, uint64_t entry)
{
    g_autoptr(GArray) symbols = g_array_new(FALSE, FALSE, sizeof(UprofSymbol));
    g_autoptr(GArray) frames = g_array_new(FALSE, FALSE, sizeof(UprofFrameSize));
    const UprofGoFound into = { symbols, 100, frames };
    const UprofGoBytes table = view_table(bytes);
    GString *found;

    if (uprof_go_table_read(&table, text, entry, &into) == 0)
        return NULL;
    found = g_string_new(NULL);
    for (guint i = 0; i < symbols->len; i++) {
        const UprofSymbol *symbol = &g_array_index(symbols, UprofSymbol, i);
        g_assert_true(symbol->code);
        g_string_append_printf(found, "%.*s %" G_GINT64_MODIFIER "x %" G_GINT64_MODIFIER "x ",
                               (int)symbol->name.len, (const char *)symbol->name.data,
                               symbol->start, symbol->size);
    }
    return g_string_free(found, FALSE);
}

static void
check_table(const GByteArray *bytes, uint64_t text, uint64_t entry, const char *wanted)
{
    g_autofree char *found = read_table(bytes, text, entry);

    g_assert_cmpstr(found, ==, wanted);
}

static void
test_versions(void)
{
    static const uint32_t magics[] = { 0xfffffff0, 0xfffffff1, 0xfffffffa, 0xfffffffb, 0 };

    for (size_t i = 0; i < G_N_ELEMENTS(magics); i++) {
        const Plan plan = { magics[i], true, { "main.main" } };
        g_autoptr(GByteArray) bytes = build_table(&plan);
        check_table(bytes, 0, 0, i < 2 ? "main.main 1000 40 " : NULL);
    }
}

/* Where the header does not say where the functions are, the program's start must be one of them.
 */
static void
test_address(void)
{
    static const char all[] = "main.main 2000 40 runtime.goexit 2040 40 main.(*T).f 2080 40 ";
    g_autoptr(GByteArray) bytes = build_table(&usual);

    check_table(bytes, TEXT, TEXT, all);
    check_table(bytes, TEXT, TEXT + 2 * APART, all);
    check_table(bytes, TEXT, TEXT + 4, NULL);
    check_table(bytes, TEXT, TEXT + 3 * APART, NULL);
    check_table(bytes, TEXT, TEXT - APART, NULL);
    check_table(bytes, 0, TEXT, NULL);
    check_table(bytes, UINT64_MAX - 0x10, UINT64_MAX - 0x10, NULL);
}

static void
test_limit(void)
{
    g_autoptr(GByteArray) bytes = build_table(&usual);
    g_autoptr(GArray) symbols = g_array_new(FALSE, FALSE, sizeof(UprofSymbol));
    g_autoptr(GArray) frames = g_array_new(FALSE, FALSE, sizeof(UprofFrameSize));
    const UprofGoFound into = { symbols, 2, frames };
    const UprofGoBytes table = view_table(bytes);

    g_assert_cmphex(uprof_go_table_read(&table, TEXT, TEXT, &into), ==, TEXT);
    g_assert_cmpuint(symbols->len, ==, 2);
}

/* A function without a name, or without a length, is left out. */
static void
test_malformed_functions(void)
{
    static const Plan plan = { 0xfffffff1, true, { "a", "", "c", "d" } };
    g_autoptr(GByteArray) bytes = build_table(&plan);
    uint64_t functions;

    memcpy(&functions, bytes->data + 64, sizeof(functions));
    functions = GUINT64_FROM_LE(functions);
    check_table(bytes, 0, 0, "a 1000 40 c 1080 40 d 10c0 40 ");
    put_u32(bytes, functions + 8 * 2 + 4, UINT32_MAX); /* the record of "c" is outside */
    check_table(bytes, 0, 0, "a 1000 40 d 10c0 40 ");
    put_u32(bytes, functions + 8 * 4, 0); /* "d" ends before it starts */
    check_table(bytes, 0, 0, "a 1000 40 ");
}

/* ---- Sizes of frames ---- */

/* 0 for 4 bytes of code, 24 for 0x30 bytes, 0 for 8 bytes; the last 4 bytes are padding */
static const char usual_sizes[] = "\x02\x04\x30\x30\x2f\x08";

/* Returns: (transfer full): "ADDRESS:SIZE ", "ADDRESS:root ", "ADDRESS:switched " or "ADDRESS:none
 * " */
static char *
read_frames(const Plan *plan)
{
    static const char *const kinds[] = { "none", NULL, "root", "switched", NULL };
    g_autoptr(GByteArray) bytes = build_table(plan);
    g_autoptr(GArray) frames = g_array_new(FALSE, FALSE, sizeof(UprofFrameSize));
    const UprofGoFound into = { NULL, 0, frames };
    const UprofGoBytes table = view_table(bytes);
    GString *found = g_string_new(NULL);

    g_assert_cmphex(uprof_go_table_read(&table, 0, 0, &into), ==, FIRST);
    for (guint i = 0; i < frames->len; i++) {
        const UprofFrameSize *size = &g_array_index(frames, UprofFrameSize, i);
        g_assert_cmpuint(size->kind, <, G_N_ELEMENTS(kinds));
        g_string_append_printf(found, "%" G_GINT64_MODIFIER "x:", size->pc);
        if (kinds[size->kind])
            g_string_append_printf(found, "%s ", kinds[size->kind]);
        else
            g_string_append_printf(found, "%u ", size->bytes);
    }
    return g_string_free(found, FALSE);
}

static void
check_frames(const Plan *plan, const char *wanted)
{
    g_autofree char *found = read_frames(plan);

    g_assert_cmpstr(found, ==, wanted);
}

static void
test_sizes(void)
{
    static const Plan plans[] = {
        { 0xfffffff0, true, { "a", "b" }, .sizes = usual_sizes },
        { 0xfffffff1, true, { "a", "b" }, .sizes = usual_sizes },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(plans); i++)
        check_frames(&plans[i], "1000:0 1004:24 1034:0 103c:none 1040:0 1044:24 1074:0 107c:none ");
}

/* Flags: 1 is the top of a stack, 2 writes the stack pointer. */
static void
test_kinds(void)
{
    static const Plan plan = { 0xfffffff1,
                               true,
                               { "runtime.goexit", "runtime.sigtramp", "runtime.systemstack",
                                 "runtime.mcall" },
                               .sizes = usual_sizes,
                               .flags = { 1, 1, 2, 2 } };
    static const Plan other = { 0xfffffff1,
                                true,
                                { "runtime.cgocallback.abi0", "runtime.mcallx" },
                                .sizes = "\x12\x40",
                                .flags = { 2, 2 } };

    check_frames(&plan, "1000:root 1040:none 1040:0 1044:24 1074:0 107c:none 1080:switched "
                        "10c0:none 10c0:root 1100:none ");
    check_frames(&other, "1000:8 1040:none 1040:switched 1080:none ");
}

static void
test_malformed_sizes(void)
{
    static const char *const lists[] = {
        "\x01\x40",                 /* below 0 */
        "\x02\x04\x05\x04",         /* falls below 0 */
        "\xff\xff\xff\xff\xff\x01", /* a number of more than 32 bits */
        "\x02",                     /* no bytes of code */
        "\xfe\xff\xff\xff\x0f\x40", /* more than a gigabyte */
    };

    for (size_t i = 0; i < G_N_ELEMENTS(lists); i++) {
        const Plan plan = { 0xfffffff1, true, { "a" }, .sizes = lists[i] };
        check_frames(&plan, "");
    }
}

/* Reading a cut or changed table ends. */
static void
test_cut_and_changed(void)
{
    g_autoptr(GByteArray) whole = build_table(&usual);

    for (guint len = 0; len < whole->len; len++) {
        g_autoptr(GByteArray) cut = g_byte_array_new();
        g_byte_array_append(cut, whole->data, len);
        g_free(read_table(cut, TEXT, TEXT));
    }
    for (guint at = 0; at < whole->len; at++)
        for (unsigned bit = 0; bit < 8; bit++) {
            whole->data[at] ^= (guint8)(1 << bit);
            g_free(read_table(whole, TEXT, TEXT));
            whole->data[at] ^= (guint8)(1 << bit);
        }
}

/* Many functions with the same long name take no more work than the table has bytes. */
static void
test_work(void)
{
    enum { N = 10000, NAME = 1000 };
    g_autofree char *name = g_strnfill(NAME, 'x');
    const Plan plan = { 0xfffffff1, true, { name } };
    g_autoptr(GByteArray) bytes = build_table(&plan);
    g_autoptr(GArray) symbols = g_array_new(FALSE, FALSE, sizeof(UprofSymbol));
    g_autoptr(GArray) frames = g_array_new(FALSE, FALSE, sizeof(UprofFrameSize));
    const UprofGoFound into = { symbols, N, frames };
    uint64_t functions;

    memcpy(&functions, bytes->data + 64, sizeof(functions));
    const uint32_t record = bytes->len - RECORD - (uint32_t)functions;
    grow(bytes, 8 * N);
    for (uint32_t i = 0; i < N; i++) {
        put_u32(bytes, functions + 8 * i, i * APART);
        put_u32(bytes, functions + 8 * i + 4, record);
    }
    put_u64(bytes, 8, N - 1);
    const UprofGoBytes table = view_table(bytes);
    g_assert_cmphex(uprof_go_table_read(&table, 0, 0, &into), ==, FIRST);
    g_assert_cmpuint(symbols->len, <=, 4 * bytes->len / NAME);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/go-table/versions", test_versions);
    g_test_add_func("/go-table/address", test_address);
    g_test_add_func("/go-table/limit", test_limit);
    g_test_add_func("/go-table/malformed-functions", test_malformed_functions);
    g_test_add_func("/go-table/sizes", test_sizes);
    g_test_add_func("/go-table/kinds", test_kinds);
    g_test_add_func("/go-table/malformed-sizes", test_malformed_sizes);
    g_test_add_func("/go-table/cut-and-changed", test_cut_and_changed);
    g_test_add_func("/go-table/work", test_work);
    return g_test_run();
}
