/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../../src/parse/go-lines-priv.h"

#include <string.h>

#include "build-go.h"
#include "uprof/mapped-elf.h"

enum {
    TEXT = 0x401000,
    TABLE_AT = 0x500000,
    TREES_AT = 0x480000,
    SIZE = BUILT_GO_SIZE,
    HEAD = BUILT_GO_HEAD,
};

typedef struct {
    GByteArray *table, *trees;
} Program;

static void
clear_program(Program *program)
{
    g_byte_array_unref(program->table);
    g_byte_array_unref(program->trees);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Program, clear_program)

static Program
build_program(const BuiltGoPlan *plan)
{
    return (Program){ build_go_table(plan), build_go_trees(plan) };
}

static UprofGoBytes
view(const GByteArray *bytes)
{
    return (UprofGoBytes){ .all = { bytes->data, bytes->len } };
}

/* Returns: (transfer full): "NAME FILE:LINE START" of each frame at @address, innermost first */
static char *
find_frames(const UprofGoLines *lines, uint64_t address)
{
    UprofGoLine frames[UPROF_GO_LINES_FRAMES_MAX];
    const unsigned n = uprof_go_lines_find(lines, address, frames);
    GString *text = g_string_new(NULL);

    g_assert_cmpuint(n, <=, UPROF_GO_LINES_FRAMES_MAX);
    for (unsigned i = 0; i < n; i++)
        g_string_append_printf(text, "%s%.*s %.*s:%u %u", i > 0 ? ", " : "",
                               (int)frames[i].name.len, (const char *)frames[i].name.data,
                               (int)frames[i].file.len, (const char *)frames[i].file.data,
                               frames[i].line, frames[i].function_line);
    return g_string_free(text, FALSE);
}

static void
check_frames(const UprofGoLines *lines, uint64_t offset, const char *wanted)
{
    g_autofree char *found = find_frames(lines, TEXT + offset);

    g_assert_cmpstr(found, ==, wanted);
}

static UprofGoLines *
read_program(const Program *program, const UprofGoBytes *trees)
{
    const UprofGoBytes table = view(program->table);

    return uprof_go_lines_new(&table, TEXT, trees);
}

static void
check_program(const BuiltGoPlan *plan, const char *at_inl1, const char *at_inl2, const char *at_end)
{
    g_auto(Program) program = build_program(plan);
    const UprofGoBytes trees = view(program.trees);
    UprofGoLines *lines = read_program(&program, &trees);

    check_frames(lines, 16, at_inl1);
    check_frames(lines, 26, at_inl2);
    check_frames(lines, SIZE - 1, at_end);
    uprof_go_lines_free(lines);
}

static void
test_inlined(void)
{
    static const BuiltGoPlan old = { BUILT_GO_1_18, BUILT_GO_FILE_B, BUILT_GO_CALL_1,
                                     BUILT_GO_CALL_2 };

    check_program(&built_go_usual, "main.inl1 /src/a.go:7 5,  /src/a.go:100 90",
                  "main.inl2 /src/b.go:20 15, main.inl1 /src/a.go:7 5,  /src/a.go:100 90",
                  " /src/a.go:101 90");
    check_program(&old, "main.inl1 /src/a.go:7 0,  /src/a.go:100 100",
                  "main.inl2 /src/b.go:20 0, main.inl1 /src/a.go:7 0,  /src/a.go:100 100",
                  " /src/a.go:101 100");
}

static void
test_ranges(void)
{
    g_auto(Program) program = build_program(&built_go_usual);
    UprofGoLines *lines = read_program(&program, NULL);

    check_frames(lines, (uint64_t)-1, "");
    check_frames(lines, 0, " /src/a.go:100 90");
    check_frames(lines, SIZE, " /src/a.go:100 154");
    check_frames(lines, 2 * SIZE, "");
    uprof_go_lines_free(lines);
}

/* Code that the compiler has made is in no file, and a compilation unit may lack a file. */
static void
test_no_file(void)
{
    static const BuiltGoPlan made = { BUILT_GO_1_20, BUILT_GO_FILE_NONE, BUILT_GO_CALL_1,
                                      BUILT_GO_CALL_2 };
    static const BuiltGoPlan absent = { BUILT_GO_1_20, UINT32_MAX, BUILT_GO_CALL_1,
                                        BUILT_GO_CALL_2 };
    static const char wanted[] = "main.inl2 :0 15, main.inl1 /src/a.go:7 5,  /src/a.go:100 90";

    check_program(&made, "main.inl1 /src/a.go:7 5,  /src/a.go:100 90", wanted, " /src/a.go:101 90");
    check_program(&absent, "main.inl1 /src/a.go:7 5,  /src/a.go:100 90", wanted,
                  " /src/a.go:101 90");
}

/* Without the tree, the line would be one of a function that is not known. */
static void
test_missing_tree(void)
{
    g_auto(Program) program = build_program(&built_go_usual);
    const bool is_here = false;
    const UprofGoBytes trees = { { program.trees->data, program.trees->len }, &is_here, 0 };
    UprofGoLines *lines = read_program(&program, &trees);

    check_frames(lines, 16, " :0 0");
    check_frames(lines, SIZE - 1, " /src/a.go:101 90");
    uprof_go_lines_free(lines);
}

/* A call in the code that it has become, or outside of the function */
static void
test_malformed_tree(void)
{
    static const BuiltGoPlan endless = { BUILT_GO_1_20, BUILT_GO_FILE_B, 26, BUILT_GO_CALL_2 };
    static const BuiltGoPlan outside = { BUILT_GO_1_20, BUILT_GO_FILE_B, SIZE, BUILT_GO_CALL_2 };

    check_program(&endless, " :0 0", " :0 0", " /src/a.go:101 90");
    check_program(&outside, " :0 0", " :0 0", " /src/a.go:101 90");
}

/* The end of the table is missing: what is known is right. */
static void
test_missing_page(void)
{
    static const char right[] =
        "main.inl2 /src/b.go:20 15, main.inl1 /src/a.go:7 5,  /src/a.go:100 90";
    g_auto(Program) program = build_program(&built_go_usual);
    const bool is_here[] = { true, false };
    unsigned n_right = 0, n_bare = 0;

    for (uint64_t first = 1; first <= program.table->len; first++) {
        const UprofGoBytes table = { { program.table->data, program.table->len },
                                     is_here,
                                     UPROF_GO_PAGE_BYTES - first };
        const UprofGoBytes trees = view(program.trees);
        UprofGoLines *lines = uprof_go_lines_new(&table, TEXT, &trees);
        g_assert_true((lines != NULL) == (first >= HEAD));
        if (!lines)
            continue;
        g_autofree char *found = find_frames(lines, TEXT + 26);
        if (strcmp(found, right) == 0)
            n_right++;
        else if (strcmp(found, " :0 0") == 0)
            n_bare++;
        else
            g_assert_cmpstr(found, ==, "");
        uprof_go_lines_free(lines);
    }
    g_assert_cmpuint(n_right, >, 0);
    g_assert_cmpuint(n_bare, >, 0);
}

static void
put_u64(GByteArray *bytes, size_t at, uint64_t value)
{
    value = GUINT64_TO_LE(value);
    memcpy(bytes->data + at, &value, sizeof(value));
}

static void
test_module(void)
{
    static const struct {
        uint8_t magic;
        unsigned trees_at;
    } versions[] = { { BUILT_GO_1_18, 304 }, { BUILT_GO_1_20, 320 }, { BUILT_GO_1_20, 344 } };

    for (size_t i = 0; i < G_N_ELEMENTS(versions); i++) {
        const BuiltGoPlan plan = { versions[i].magic, BUILT_GO_FILE_B, BUILT_GO_CALL_1,
                                   BUILT_GO_CALL_2 };
        g_auto(Program) program = build_program(&plan);
        const UprofGoBytes table = view(program.table);
        g_autoptr(GByteArray) data = g_byte_array_new();
        UprofGoModule module = { 0 };
        const uint64_t trees = versions[i].trees_at == 344 ? TABLE_AT + 8 : TREES_AT;
        g_autoptr(GByteArray) record =
            build_go_module(program.table, TABLE_AT, TEXT, versions[i].trees_at, trees);

        g_byte_array_set_size(data, 64);
        memset(data->data, 0, data->len);
        put_u64(data, 8, TABLE_AT); /* a pointer to the table that is not in the record */
        if (versions[i].trees_at == 344)
            put_u64(record, 352, TABLE_AT + program.table->len);
        g_byte_array_append(data, record->data, record->len);
        UprofGoBytes all = view(data);
        g_assert_true(uprof_go_module_find(&all, &table, TABLE_AT, &module));
        g_assert_cmphex(module.text, ==, TEXT);
        g_assert_cmphex(module.trees, ==, trees);
        g_assert_false(uprof_go_module_find(&all, &table, TABLE_AT + 8, &module));
        all.all.len--;
        g_assert_false(uprof_go_module_find(&all, &table, TABLE_AT, &module));
    }
}

/* ---- A file ---- */

static const char at_inl2[] =
    "main.inl2 /src/b.go:20 15, main.inl1 /src/a.go:7 5,  /src/a.go:100 90";

static void
test_file(void)
{
    g_autoptr(GByteArray) file = build_go_file(&built_go_usual);
    g_auto(UprofElfImage) image = { 0 };
    g_autoptr(GError) error = NULL;

    uprof_elf_parse((UprofSlice){ file->data, file->len }, "go", &image, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(image.symbols->len, ==, 2);
    g_assert_nonnull(image.go_lines);
    check_frames(image.go_lines, 26, at_inl2);
    check_frames(image.go_lines, SIZE, " /src/a.go:100 154");
}

/* Guest memory, in which one page of the file is missing */
typedef struct {
    const GByteArray *file;
    uint64_t missing; /* offset of the page */
} Memory;

static void
read_memory(void *data, uint64_t first, unsigned n, uint8_t *bytes, bool *is_here)
{
    const Memory *memory = data;
    const GByteArray *file = memory->file;

    for (unsigned i = 0; i < n; i++) {
        const uint64_t at = (first + i) * UPROF_GO_PAGE_BYTES;
        is_here[i] = at != memory->missing && at + UPROF_GO_PAGE_BYTES <= file->len;
        memset(bytes + (size_t)i * UPROF_GO_PAGE_BYTES, 0, UPROF_GO_PAGE_BYTES);
        if (is_here[i])
            memcpy(bytes + (size_t)i * UPROF_GO_PAGE_BYTES, file->data + at, UPROF_GO_PAGE_BYTES);
    }
}

static void
check_memory(uint64_t missing, const char *wanted)
{
    g_autoptr(GByteArray) file = build_go_file(&built_go_usual);
    Memory memory = { file, missing };
    const UprofMappedReader reader = { read_memory, &memory };
    g_auto(UprofMappedElf) mapped = { 0 };

    g_assert_true(uprof_mapped_elf_read(&reader, &mapped));
    g_assert_true((mapped.elf.go_lines != NULL) == (wanted != NULL));
    if (wanted)
        check_frames(mapped.elf.go_lines, 26, wanted);
}

static void
test_memory(void)
{
    check_memory(UINT64_MAX, at_inl2);
    check_memory(BUILT_GO_TREES_AT, " :0 0");
    check_memory(BUILT_GO_DATA_AT, " :0 0");
    check_memory(BUILT_GO_TABLE_AT, NULL);
    check_memory(BUILT_GO_SECTIONS_AT, NULL);
}

/* Reading changed tables ends. */
static void
test_changed(void)
{
    g_auto(Program) program = build_program(&built_go_usual);
    const UprofGoBytes trees = view(program.trees);

    for (guint at = 0; at < program.table->len + program.trees->len; at++)
        for (unsigned bit = 0; bit < 8; bit++) {
            GByteArray *bytes = at < program.table->len ? program.table : program.trees;
            uint8_t *byte = bytes->data + (at < program.table->len ? at : at - program.table->len);
            *byte ^= (uint8_t)(1 << bit);
            UprofGoLines *lines = read_program(&program, &trees);
            for (uint64_t offset = 0; lines && offset < SIZE; offset += 8)
                g_free(find_frames(lines, TEXT + offset));
            uprof_go_lines_free(lines);
            *byte ^= (uint8_t)(1 << bit);
        }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/go-lines/inlined", test_inlined);
    g_test_add_func("/go-lines/ranges", test_ranges);
    g_test_add_func("/go-lines/no-file", test_no_file);
    g_test_add_func("/go-lines/missing-tree", test_missing_tree);
    g_test_add_func("/go-lines/malformed-tree", test_malformed_tree);
    g_test_add_func("/go-lines/missing-page", test_missing_page);
    g_test_add_func("/go-lines/module", test_module);
    g_test_add_func("/go-lines/file", test_file);
    g_test_add_func("/go-lines/memory", test_memory);
    g_test_add_func("/go-lines/changed", test_changed);
    return g_test_run();
}
