/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../../src/parse/perf-map-priv.h"
#include "build-jitdump.h"
#include "uprof/jitdump.h"

#include <string.h>

typedef struct {
    GByteArray *file;
    UprofJitdump *dump;
    UprofPerfMap *map;
} Fixture;

static void
init_fixture(Fixture *fixture)
{
    fixture->file = build_jitdump_new();
    fixture->dump = uprof_jitdump_new();
    fixture->map = uprof_perf_map_new();
}

static void
clear_fixture(Fixture *fixture)
{
    g_byte_array_unref(fixture->file);
    uprof_jitdump_free(fixture->dump);
    uprof_perf_map_free(fixture->map);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Fixture, clear_fixture)

/* Reads the whole file, in pieces of @step bytes. */
static void
read_file(Fixture *fixture, size_t step)
{
    for (size_t at = 0; at < fixture->file->len; at += step)
        uprof_jitdump_add(
            fixture->dump, fixture->map,
            (UprofSlice){ fixture->file->data + at, MIN(step, fixture->file->len - at) }, 0);
}

/* @name: (nullable): of the function at @address; %NULL: none is there */
static void
check_function(const Fixture *fixture, uint64_t address, const char *name)
{
    UprofSymbol symbol;

    if (!name) {
        g_assert_false(uprof_perf_map_find(fixture->map, address, &symbol));
        return;
    }
    g_assert_true(uprof_perf_map_find(fixture->map, address, &symbol));
    g_assert_cmpmem(symbol.name.data, symbol.name.len, name, strlen(name));
}

static void
test_usual(void)
{
    static const size_t steps[] = { 1, 7, 64, 4096, SIZE_MAX / 2 };

    for (size_t i = 0; i < G_N_ELEMENTS(steps); i++) {
        g_auto(Fixture) fixture;
        init_fixture(&fixture);
        build_jitdump_load(fixture.file, 0x1000, 0x20, "py::run:/a.py");
        build_jitdump_other(fixture.file, 2, 100);
        build_jitdump_load(fixture.file, 0x2000, 5000, "second");
        build_jitdump_load(fixture.file, 0x1010, 0x20, "new");
        read_file(&fixture, steps[i]);
        g_assert_cmpuint(uprof_perf_map_count(fixture.map), ==, 2);
        check_function(&fixture, 0x1000, NULL);
        check_function(&fixture, 0x1010, "new");
        check_function(&fixture, 0x2000 + 4999, "second");
    }
}

static void
test_move(void)
{
    g_auto(Fixture) fixture;

    init_fixture(&fixture);
    build_jitdump_load(fixture.file, 0x1000, 0x20, "run");
    build_jitdump_move(fixture.file, 0x1000, 0x3000, 0x20);
    build_jitdump_move(fixture.file, 0x1008, 0x4000, 0x20); /* not the start of a function */
    build_jitdump_move(fixture.file, 0x9000, 0x5000, 0x20); /* no function */
    build_jitdump_move(fixture.file, 0x3000, 0x3008, 0x40); /* over itself */
    read_file(&fixture, 4096);
    check_function(&fixture, 0x1000, "run");
    check_function(&fixture, 0x3000, NULL);
    check_function(&fixture, 0x3008, "run");
    check_function(&fixture, 0x4000, NULL);
    check_function(&fixture, 0x5000, NULL);
}

/* A part of the code is not in memory; then a part of a record. */
static void
test_missing(void)
{
    g_auto(Fixture) fixture;

    init_fixture(&fixture);
    build_jitdump_load(fixture.file, 0x1000, 10000, "large");
    build_jitdump_load(fixture.file, 0x8000, 10000, "next");
    uprof_jitdump_add(fixture.dump, fixture.map, (UprofSlice){ fixture.file->data, 1000 }, 0);
    uprof_jitdump_add(fixture.dump, fixture.map,
                      (UprofSlice){ fixture.file->data + 9000, fixture.file->len - 9000 - 10 },
                      8000);
    check_function(&fixture, 0x1000, "large");
    check_function(&fixture, 0x8000, "next");
    g_byte_array_set_size(fixture.file, 0);
    build_jitdump_load(fixture.file, 0x20000, 16, "lost");
    uprof_jitdump_add(fixture.dump, fixture.map,
                      (UprofSlice){ fixture.file->data, fixture.file->len }, 11);
    uprof_jitdump_add(fixture.dump, fixture.map,
                      (UprofSlice){ fixture.file->data, fixture.file->len }, 0);
    check_function(&fixture, 0x20000, NULL);
}

static void
test_header(void)
{
    g_auto(Fixture) fixture;

    init_fixture(&fixture);
    /* a longer header */
    const uint32_t bytes = 48;
    memcpy(fixture.file->data + 8, &bytes, sizeof(bytes));
    g_byte_array_append(fixture.file, (const guint8 *)"\xff\xff\xff\xff\xff\xff\xff\xff", 8);
    build_jitdump_load(fixture.file, 0x1000, 0x20, "run");
    read_file(&fixture, 3);
    check_function(&fixture, 0x1000, "run");
}

typedef void (*Spoil)(GByteArray *file);

static void
put_u32(GByteArray *file, size_t at, uint32_t value)
{
    g_assert_cmpuint(at + sizeof(value), <=, file->len);
    memcpy(file->data + at, &value, sizeof(value));
}

enum { HEADER_BYTES = 40, RECORD_SIZE_AT = HEADER_BYTES + 4 };

static void
spoil_magic(GByteArray *file)
{
    file->data[0] ^= 1;
}

static void
spoil_header_size(GByteArray *file)
{
    put_u32(file, 8, 39);
}

static void
spoil_large_header(GByteArray *file)
{
    put_u32(file, 8, UINT32_MAX);
}

static void
spoil_record_size(GByteArray *file)
{
    put_u32(file, RECORD_SIZE_AT, 15);
}

static void
spoil_no_record_size(GByteArray *file)
{
    put_u32(file, RECORD_SIZE_AT, 0);
}

static void
spoil_large_record(GByteArray *file)
{
    put_u32(file, RECORD_SIZE_AT, UINT32_MAX);
}

/* The record ends within its own fixed part. */
static void
spoil_short_load(GByteArray *file)
{
    put_u32(file, RECORD_SIZE_AT, 55);
}

static void
spoil_no_name(GByteArray *file)
{
    put_u32(file, RECORD_SIZE_AT, 56);
}

static void
test_malformed(void)
{
    static const Spoil spoils[] = {
        spoil_magic,          spoil_header_size,  spoil_large_header, spoil_record_size,
        spoil_no_record_size, spoil_large_record, spoil_short_load,   spoil_no_name,
    };

    for (size_t i = 0; i < G_N_ELEMENTS(spoils); i++) {
        g_auto(Fixture) fixture;
        init_fixture(&fixture);
        build_jitdump_load(fixture.file, 0x1000, 0x20, "run");
        spoils[i](fixture.file);
        read_file(&fixture, 16);
        check_function(&fixture, 0x1000, NULL);
    }
}

static void
test_long_name(void)
{
    g_autofree char *name = g_strnfill(100 * 1000, 'x');
    g_autofree char *cut = g_strnfill(UPROF_PERF_MAP_NAME_BYTES_MAX, 'x');
    g_auto(Fixture) fixture;

    init_fixture(&fixture);
    build_jitdump_load(fixture.file, 0x1000, 0x20, name);
    build_jitdump_load(fixture.file, 0x2000, 0x20, "next");
    read_file(&fixture, 4096);
    check_function(&fixture, 0x1000, cut);
    check_function(&fixture, 0x2000, "next");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/jitdump/usual", test_usual);
    g_test_add_func("/jitdump/move", test_move);
    g_test_add_func("/jitdump/missing", test_missing);
    g_test_add_func("/jitdump/header", test_header);
    g_test_add_func("/jitdump/malformed", test_malformed);
    g_test_add_func("/jitdump/long-name", test_long_name);
    return g_test_run();
}
