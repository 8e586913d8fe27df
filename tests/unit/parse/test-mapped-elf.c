/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../../src/parse/mapped-elf-priv.h"
#include "uprof/mapped-elf.h"

#include <elf.h>
#include <string.h>

#include "build-mapped.h"
#include "uprof/cfi-table.h"

/* A file of which some pages are missing */
typedef struct {
    GByteArray *file;
    uint64_t missing; /* a bit for each page */
    unsigned n_reads; /* pages that were asked for */
} Source;

static void
read_pages(void *data, uint64_t first, unsigned n, uint8_t *bytes, bool *is_here)
{
    Source *source = data;

    source->n_reads += n;
    for (unsigned i = 0; i < n; i++) {
        const uint64_t page = first + i;
        is_here[i] = page < source->file->len / MAPPED_PAGE && !(source->missing >> page & 1);
        if (is_here[i])
            memcpy(bytes + i * MAPPED_PAGE, source->file->data + page * MAPPED_PAGE, MAPPED_PAGE);
        else
            memset(bytes + i * MAPPED_PAGE, 0, MAPPED_PAGE);
    }
}

static bool
read_source(Source *source, UprofMappedElf *mapped)
{
    const UprofMappedReader reader = { read_pages, source };

    return uprof_mapped_elf_read(&reader, mapped);
}

static bool
has_symbol(const UprofMappedElf *mapped, const char *name, uint64_t start, uint64_t size)
{
    for (guint i = 0; i < mapped->elf.symbols->len; i++) {
        const UprofSymbol *symbol = &g_array_index(mapped->elf.symbols, UprofSymbol, i);
        if (symbol->name.len == strlen(name) &&
            memcmp(symbol->name.data, name, symbol->name.len) == 0)
            return symbol->start == start && symbol->size == size && symbol->code;
    }
    return false;
}

static unsigned
count_rules(const UprofMappedElf *mapped)
{
    static const uint64_t functions[] = { MAPPED_OPEN, MAPPED_CLOSE, MAPPED_HIDDEN };
    g_autoptr(UprofCfi) cfi = uprof_cfi_compile_listed(&mapped->elf, mapped->frames, "file", NULL);
    unsigned n = 0;

    g_assert_nonnull(cfi);
    for (size_t i = 0; i < G_N_ELEMENTS(functions); i++)
        n += uprof_cfi_find(cfi, functions[i] + 4) != NULL;
    g_assert_null(uprof_cfi_find(cfi, MAPPED_OPEN + MAPPED_OPEN_LEN));
    g_assert_null(uprof_cfi_find(cfi, MAPPED_OPEN - 1));
    return n;
}

static void
test_whole(void)
{
    g_autoptr(GByteArray) file = build_mapped(0xab);
    Source source = { file, 0, 0 };
    g_auto(UprofMappedElf) mapped = { 0 };

    g_assert_true(read_source(&source, &mapped));
    g_assert_cmpuint(mapped.elf.build_id.len, ==, 8);
    g_assert_cmpuint(((const uint8_t *)mapped.elf.build_id.data)[7], ==, 0xab);
    g_assert_cmpuint(mapped.elf.machine, ==, EM_X86_64);
    g_assert_cmpuint(mapped.elf.text->len, ==, 1);
    g_assert_cmpuint(g_array_index(mapped.elf.text, UprofElfRange, 0).start, ==, MAPPED_TEXT_AT);
    g_assert_true(has_symbol(&mapped, "open_door", MAPPED_OPEN, MAPPED_OPEN_LEN));
    g_assert_true(has_symbol(&mapped, "close_door", MAPPED_CLOSE, MAPPED_CLOSE_LEN));
    g_assert_true(has_symbol(&mapped, "hidden_helper", MAPPED_HIDDEN, MAPPED_HIDDEN_LEN));
    g_assert_false(has_symbol(&mapped, "malloc", MAPPED_TEXT_AT, 0x10));
    g_assert_cmpuint(mapped.elf.symbols->len, ==, 4); /* open_door is in both tables */
    g_assert_true(mapped.has_all_symbols);
    g_assert_cmpuint(count_rules(&mapped), ==, 3);
    g_assert_cmpuint(mapped.n_missing, ==, 0);
    g_assert_cmpuint(mapped.n_here, ==, source.n_reads);
}

/* clang-format off */
static const struct {
    const char *name;
    uint64_t missing; /* address of a byte in the page that is missing */
    bool has_exported, has_hidden;
    unsigned n_rules;
} holes[] = {
    { "hash",           MAPPED_HASH_AT,        false, true,  3 },
    { "names",          MAPPED_NAMES_AT,       false, true,  3 },
    { "code",           MAPPED_TEXT_AT,        true,  true,  3 },
    { "index",          MAPPED_INDEX_AT,       true,  true,  0 },
    { "frames",         MAPPED_FRAMES_AT,      true,  true,  1 },
    { "late-frames",    MAPPED_LATE_FRAMES_AT, true,  true,  1 },
    { "dynamic",        MAPPED_DYNAMIC_AT,     false, true,  3 },
    { "all-symbols",    MAPPED_ALL_SYMBOLS_AT, true,  false, 3 },
    { "all-names",      MAPPED_ALL_NAMES_AT,   true,  false, 3 },
    { "sections",       MAPPED_SECTIONS_AT,    true,  false, 3 },
};
/* clang-format on */

/* Symbols in other pages are found. */
static void
test_hole(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_autoptr(GByteArray) file = build_mapped(0xab);
    Source source = { file, UINT64_C(1) << holes[i].missing / MAPPED_PAGE, 0 };
    g_auto(UprofMappedElf) mapped = { 0 };

    g_assert_true(read_source(&source, &mapped));
    g_assert_cmpint(has_symbol(&mapped, "close_door", MAPPED_CLOSE, MAPPED_CLOSE_LEN), ==,
                    holes[i].has_exported);
    g_assert_cmpint(has_symbol(&mapped, "hidden_helper", MAPPED_HIDDEN, MAPPED_HIDDEN_LEN), ==,
                    holes[i].has_hidden);
    g_assert_cmpint(mapped.has_all_symbols, ==, holes[i].has_hidden);
    g_assert_cmpuint(count_rules(&mapped), ==, holes[i].n_rules);
    /* Code itself is not read here. */
    g_assert_cmpint(mapped.n_missing > 0, ==, holes[i].missing != MAPPED_TEXT_AT);
}

/* Without an index the entries are read up to the first hole. Zeros separate entries. */
static void
test_no_index(void)
{
    g_autoptr(GByteArray) file = build_mapped(0xab);
    Source source = { file, 0, 0 };
    const size_t segment = 64 + 5 * 56; /* PT_GNU_EH_FRAME */

    memset(file->data + segment, 0, 4);
    for (unsigned i = 0; i < 2; i++) {
        g_auto(UprofMappedElf) mapped = { 0 };
        g_assert_true(read_source(&source, &mapped));
        g_assert_cmpuint(count_rules(&mapped), ==, i == 0 ? 3 : 1);
        source.missing = 1 << MAPPED_LATE_FRAMES_AT / MAPPED_PAGE;
    }
}

static void
test_no_head(void)
{
    g_autoptr(GByteArray) file = build_mapped(0xab);
    Source source = { file, 1, 0 };
    UprofMappedElf mapped;

    g_assert_false(read_source(&source, &mapped));
    source.missing = 0;
    file->data[EI_CLASS] = ELFCLASS32;
    g_assert_false(read_source(&source, &mapped));
}

/* ---- Hostile files ---- */

enum { DYNAMIC_VALUE = MAPPED_DYNAMIC_AT + 8, DYNAMIC_BYTES = 16 };

/* clang-format off */
static const struct {
    const char *name;
    size_t at;      /* of the bytes that change */
    unsigned len;
    uint64_t value;
    bool has_exported; /* the exported symbols are still found */
} wrongs[] = {
    { "no-buckets",        MAPPED_HASH_AT,     4, 0,          false },
    { "many-buckets",      MAPPED_HASH_AT,     4, 0xffffffff, false },
    { "late-first",        MAPPED_HASH_AT + 4, 4, 0xffffffff, false },
    { "first-is-behind",   MAPPED_HASH_AT + 4, 4, 3,          false },
    { "huge-filter",       MAPPED_HASH_AT + 8, 4, 0xffffffff, false },
    { "large-filter",      MAPPED_HASH_AT + 8, 4, 0x10000,    false },
    { "bucket-nowhere",    MAPPED_HASH_AT + 24, 4, 0xfffffff0, false },
    { "hash-nowhere",      DYNAMIC_VALUE + DYNAMIC_BYTES, 8, UINT64_MAX, false },
    { "symbols-nowhere",   DYNAMIC_VALUE + 2 * DYNAMIC_BYTES, 8, UINT64_MAX - 7, false },
    { "names-nowhere",     DYNAMIC_VALUE + 3 * DYNAMIC_BYTES, 8, INT64_MAX, false },
    { "huge-names",        DYNAMIC_VALUE + 4 * DYNAMIC_BYTES, 8, UINT64_MAX, true },
    { "no-names",          DYNAMIC_VALUE + 4 * DYNAMIC_BYTES, 8, 0, false },
    { "name-nowhere",      MAPPED_SYMBOLS_AT + 3 * 24, 4, UINT32_MAX, false },
    { "symbol-nowhere",    MAPPED_SYMBOLS_AT + 3 * 24 + 8, 8, UINT64_MAX, false },
    { "symbol-in-data",    MAPPED_SYMBOLS_AT + 3 * 24 + 8, 8, MAPPED_INDEX_AT, false },
    { "index-version",     MAPPED_INDEX_AT, 1, 2, true },
    { "index-encoding",    MAPPED_INDEX_AT + 3, 1, 0x1b, true },
    { "many-frames",       MAPPED_INDEX_AT + 8, 4, UINT32_MAX, true },
    { "frames-nowhere",    MAPPED_INDEX_AT + 4, 4, 0x7fffffff, true },
    { "frame-nowhere",     MAPPED_INDEX_AT + 16, 4, 0x80000000, true },
    { "frame-without-cie", MAPPED_FRAMES_AT + 0x44, 4, UINT32_MAX, true },
    { "frame-is-cie",      MAPPED_FRAMES_AT + 0x44, 4, 0, true },
    { "long-frame",        MAPPED_FRAMES_AT + 0x40, 4, 0xfffffff0, true },
    { "frame-to-the-end",  MAPPED_FRAMES_AT + 0x40, 4, 0x100000, true },
    { "sections-nowhere",  0x28, 8, UINT64_MAX, true },
    { "sections-far",      0x28, 8, INT64_MAX - 4096, true },
    { "many-sections",     0x3c, 2, 0xffff, true },
    { "small-sections",    0x3a, 2, 1, true },
    { "names-of-sections", 0x3e, 2, 0xffff, true },
    { "huge-symbols",      MAPPED_SECTIONS_AT + 64 + 0x20, 8, UINT64_MAX, true },
    { "no-link",           MAPPED_SECTIONS_AT + 64 + 0x28, 4, UINT32_MAX, true },
};
/* clang-format on */

static void
test_wrong(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    const uint64_t value = GUINT64_TO_LE(wrongs[i].value);
    g_autoptr(GByteArray) file = build_mapped(0xab);
    Source source = { file, 0, 0 };
    g_auto(UprofMappedElf) mapped = { 0 };

    memcpy(file->data + wrongs[i].at, &value, wrongs[i].len);
    g_assert_true(read_source(&source, &mapped));
    g_assert_cmpint(has_symbol(&mapped, "close_door", MAPPED_CLOSE, MAPPED_CLOSE_LEN), ==,
                    wrongs[i].has_exported);
    count_rules(&mapped);
    g_assert_cmpuint(source.n_reads, <=, UPROF_MAPPED_ELF_BYTES_MAX / MAPPED_PAGE);
}

static void
compile(const UprofMappedElf *mapped)
{
    g_autoptr(UprofCfi) cfi = uprof_cfi_compile_listed(&mapped->elf, mapped->frames, "file", NULL);

    if (cfi)
        g_assert_cmpuint(uprof_cfi_summary(cfi).n_fdes, <=, MAPPED_N_FRAMES);
}

/* Every byte of the first page, and of each table, gets other values. */
static void
test_bytes_changed(void)
{
    static const uint8_t values[] = { 0x00, 0x01, 0x7f, 0x80, 0xff };
    static const struct {
        size_t from, len;
    } parts[] = { { 16, 0x1d0 },
                  { MAPPED_HASH_AT, 0x40 },
                  { MAPPED_SYMBOLS_AT, 0x80 },
                  { MAPPED_INDEX_AT, 40 },
                  { MAPPED_FRAMES_AT, 0x70 },
                  { MAPPED_DYNAMIC_AT, 0x60 },
                  { MAPPED_SECTIONS_AT, 0x100 } };
    g_autoptr(GByteArray) file = build_mapped(0xab);
    Source source = { file, 0, 0 };

    for (size_t p = 0; p < G_N_ELEMENTS(parts); p++)
        for (size_t at = parts[p].from; at < parts[p].from + parts[p].len; at++)
            for (size_t i = 0; i < G_N_ELEMENTS(values); i++) {
                g_auto(UprofMappedElf) mapped = { 0 };
                const uint8_t before = file->data[at];
                source.n_reads = 0;
                file->data[at] = values[i];
                if (read_source(&source, &mapped))
                    compile(&mapped);
                g_assert_cmpuint(source.n_reads, <=, UPROF_MAPPED_ELF_BYTES_MAX / MAPPED_PAGE);
                file->data[at] = before;
            }
}

/* Variables that the file exports */
static void
test_objects(void)
{
    g_autoptr(GByteArray) file = build_mapped(0xab);
    Source source = { file, 0 };
    const UprofMappedReader reader = { read_pages, &source };
    uint64_t offset = 0;

    g_assert_true(uprof_mapped_elf_find_object(&reader, "_PyRuntime", &offset));
    g_assert_cmphex(offset, ==, MAPPED_RUNTIME);
    g_assert_true(uprof_mapped_elf_find_object(&reader, "Py_Version", &offset));
    g_assert_cmphex(offset, ==, MAPPED_VERSION);
    g_assert_false(uprof_mapped_elf_find_object(&reader, "_PyRuntim", &offset));
    g_assert_false(uprof_mapped_elf_find_object(&reader, "open_door", &offset));
    g_assert_false(uprof_mapped_elf_find_object(&reader, "malloc", &offset));
    /* each of these pages is needed */
    static const uint64_t needed[] = { 0, MAPPED_HASH_AT, MAPPED_NAMES_AT, MAPPED_DYNAMIC_AT };
    for (size_t i = 0; i < G_N_ELEMENTS(needed); i++) {
        source.missing = UINT64_C(1) << needed[i] / MAPPED_PAGE;
        g_assert_false(uprof_mapped_elf_find_object(&reader, "_PyRuntime", &offset));
    }
    source.missing = 0;
    for (size_t at = 0; at < 64; at++) {
        file->data[MAPPED_HASH_AT + at] ^= 0xff;
        uprof_mapped_elf_find_object(&reader, "_PyRuntime", &offset);
        file->data[MAPPED_HASH_AT + at] ^= 0xff;
    }
    g_assert_true(uprof_mapped_elf_find_object(&reader, "_PyRuntime", &offset));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/mapped-elf/whole", test_whole);
    g_test_add_func("/mapped-elf/no-index", test_no_index);
    g_test_add_func("/mapped-elf/no-head", test_no_head);
    for (size_t i = 0; i < G_N_ELEMENTS(holes); i++) {
        g_autofree char *path = g_strdup_printf("/mapped-elf/hole/%s", holes[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_hole);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(wrongs); i++) {
        g_autofree char *path = g_strdup_printf("/mapped-elf/wrong/%s", wrongs[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_wrong);
    }
    g_test_add_func("/mapped-elf/bytes-changed", test_bytes_changed);
    g_test_add_func("/mapped-elf/objects", test_objects);
    return g_test_run();
}
