/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* usage: test-lines IMAGE...; the images are builds of tests/lib/inlined.c */
#include <elf.h>
#include <string.h>

#include "../../../src/sym/lines-priv.h"
#include "symbol-elf.h"
#include "uprof/clock.h"
#include "uprof/elf-image.h"
#include "uprof/sym.h"

enum { FRAMES_MAX = 4, DAMAGES = 150 };

#define CPU_NS (20 * UPROF_NS_PER_S)

/* clang-format off */
static const struct {
    const char *label;
    struct {
        const char *name; /* NULL: end of the list */
        const char *file;
        unsigned line;
        const char *function_file;
        unsigned function_line;
    } frames[FRAMES_MAX];
} cases[] = {
    { "at_inner",  { { "inner", "/some/folder/inner.h", 103, "/some/folder/inner.h", 101 }, { "middle", "/some/folder/middle.c", 204, "/some/folder/middle.c", 201 }, { "", "outer.c", 307, "outer.c", 302 } } },
    { "at_middle", { { "middle", "/some/folder/middle.c", 203, "/some/folder/middle.c", 201 }, { "", "outer.c", 307, "outer.c", 302 } } },
    { "at_outer",  { { "", "outer.c", 304, "outer.c", 302 } } },
};
/* clang-format on */

typedef struct {
    char *path;
    char *bytes;
    size_t len;
    uint64_t addresses[G_N_ELEMENTS(cases)]; /* in ascending order */
    size_t order[G_N_ELEMENTS(cases)];       /* the case of each address */
} Fixture;

static void
init_fixture(Fixture *fixture, const char *path)
{
    g_auto(UprofElfImage) image = { 0 };
    unsigned n = 0;

    fixture->path = g_strdup(path);
    g_assert_true(g_file_get_contents(path, &fixture->bytes, &fixture->len, NULL));
    g_assert_true(
        uprof_elf_parse((UprofSlice){ fixture->bytes, fixture->len }, path, &image, NULL));
    g_assert_true(image.has_lines);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        for (guint j = 0; j < image.symbols->len; j++) {
            const UprofSymbol *symbol = &g_array_index(image.symbols, UprofSymbol, j);
            if (symbol->name.len != strlen(cases[i].label) ||
                memcmp(symbol->name.data, cases[i].label, symbol->name.len) != 0)
                continue;
            unsigned at = n++;
            for (; at > 0 && fixture->addresses[at - 1] > symbol->start; at--) {
                fixture->addresses[at] = fixture->addresses[at - 1];
                fixture->order[at] = fixture->order[at - 1];
            }
            fixture->addresses[at] = symbol->start;
            fixture->order[at] = i;
        }
    }
    g_assert_cmpuint(n, ==, G_N_ELEMENTS(cases));
}

static void
clear_fixture(Fixture *fixture)
{
    g_free(fixture->path);
    g_free(fixture->bytes);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Fixture, clear_fixture)

static void
assert_slice(UprofSlice slice, const char *text)
{
    g_autofree char *copy = g_strndup(slice.data, slice.len);

    g_assert_cmpstr(copy, ==, text);
}

/* Relative paths are given with the folder in which the compiler ran. */
static void
assert_ends(UprofSlice path, const char *end)
{
    g_autofree char *copy = g_strndup(path.data, path.len);

    g_assert_true(g_str_has_suffix(copy, end));
}

static void
test_frames(gconstpointer data)
{
    g_auto(Fixture) fixture = { 0 };
    g_autofree char *why = NULL;

    init_fixture(&fixture, data);
    g_autoptr(UprofLines) lines =
        uprof_lines_read((UprofSlice){ fixture.bytes, fixture.len }, fixture.addresses,
                         G_N_ELEMENTS(cases), CPU_NS, &why);
    g_assert_cmpstr(why, ==, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        const size_t k = fixture.order[i];
        const UprofLineFrame *frames;
        const unsigned n = uprof_lines_get(lines, i, &frames);
        unsigned n_wanted = 0;
        while (n_wanted < FRAMES_MAX && cases[k].frames[n_wanted].name)
            n_wanted++;
        g_assert_cmpuint(n, ==, n_wanted);
        for (unsigned j = 0; j < n; j++) {
            assert_slice(frames[j].name, cases[k].frames[j].name);
            g_assert_cmpuint(frames[j].line, ==, cases[k].frames[j].line);
            g_assert_cmpuint(frames[j].function_line, ==, cases[k].frames[j].function_line);
            assert_ends(frames[j].file, cases[k].frames[j].file);
            assert_ends(frames[j].function_file, cases[k].frames[j].function_file);
        }
    }
}

/* Addresses outside of all units, and an empty list of addresses. */
static void
test_nothing(gconstpointer data)
{
    static const uint64_t addresses[] = { 0, 1, UINT64_MAX - 1, UINT64_MAX };
    g_auto(Fixture) fixture = { 0 };

    init_fixture(&fixture, data);
    for (unsigned n = 0; n <= G_N_ELEMENTS(addresses); n += 2) {
        g_autofree char *why = NULL;
        const UprofLineFrame *frames;
        g_autoptr(UprofLines) lines = uprof_lines_read((UprofSlice){ fixture.bytes, fixture.len },
                                                       addresses, n, CPU_NS, &why);
        g_assert_null(why);
        for (unsigned i = 0; i < n; i++)
            g_assert_cmpuint(uprof_lines_get(lines, i, &frames), ==, 0);
    }
}

/* The frames as names in stacks. */
static void
test_names(gconstpointer data)
{
    static const char *const plain[] = { "outer", "middle_[i]", "inner_[i]" };
    static const char *const lined[] = { "outer (outer.c:307)", "middle (middle.c:204)_[i]",
                                         "inner (inner.h:103)_[i]" };
    g_auto(Fixture) fixture = { 0 };

    init_fixture(&fixture, data);
    for (unsigned with_lines = 0; with_lines < 2; with_lines++) {
        g_autoptr(UprofNames) names = uprof_names_new();
        g_autoptr(UprofSym) sym = uprof_sym_new(uprof_arch_find("x86_64"), names);
        const UprofSymConfig config = { .lines = with_lines };
        const UprofName *const *frames;
        uint64_t address = 0;

        uprof_sym_configure(sym, &config);
        g_assert_true(uprof_sym_add_file(sym, data, true, NULL));
        for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++)
            if (fixture.order[i] == 0)
                address = fixture.addresses[i];
        const UprofSymAnswer answer = uprof_sym_find(sym, address + 1, true);
        g_assert_nonnull(answer.site);
        g_assert_true(uprof_sym_find(sym, address, false).site == answer.site);
        g_assert_true(uprof_sym_find(sym, address + 1, false).site != answer.site);
        /* before it is resolved, the name is the function; its labels are symbols, too */
        g_assert_cmpuint(uprof_sym_expand(sym, answer.site, &frames), ==, 1);
        g_assert_true(frames[0] == answer.name);
        g_assert_cmpuint(uprof_sym_expand(sym, answer.name, &frames), ==, 0);
        uprof_sym_resolve(sym, UPROF_SYM_RESOLVE_MS);
        g_assert_cmpuint(uprof_sym_expand(sym, answer.site, &frames), ==, 3);
        for (unsigned i = 1; i < 3; i++)
            g_assert_cmpstr(uprof_name_text(frames[i]), ==, with_lines ? lined[i] : plain[i]);
        g_assert_true(g_str_has_suffix(uprof_name_text(frames[0]),
                                       with_lines ? " (outer.c:307)" : "at_inner"));
        uprof_sym_coarsen(sym);
        g_assert_null(uprof_sym_find(sym, address, false).site);
    }
}

/* A damaged file gives some answer, in bounded time. */
static void
test_damage(gconstpointer data)
{
    g_auto(Fixture) fixture = { 0 };
    g_autoptr(GRand) random = g_rand_new_with_seed(1);

    init_fixture(&fixture, data);
    for (unsigned round = 0; round < DAMAGES; round++) {
        g_autofree char *damaged = g_memdup2(fixture.bytes, fixture.len);
        g_autofree char *why = NULL;
        const uint64_t start_ns = uprof_clock_now_ns();
        const UprofLineFrame *frames;
        size_t len = fixture.len;

        if (round % 10 == 0)
            len = (size_t)g_rand_int_range(random, 0, (gint)len);
        for (unsigned i = 0; i < 1U << (round % 11); i++) {
            const size_t at = (size_t)g_rand_int_range(random, 0, (gint)fixture.len);
            damaged[at] = (char)g_rand_int_range(random, 0, 256);
        }
        g_autoptr(UprofLines) lines = uprof_lines_read(
            (UprofSlice){ damaged, len }, fixture.addresses, G_N_ELEMENTS(cases), CPU_NS, &why);
        for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++)
            g_assert_cmpuint(uprof_lines_get(lines, i, &frames), <=, UPROF_LINES_FRAMES_MAX);
        g_assert_cmpuint(uprof_clock_now_ns() - start_ns, <, 30 * UPROF_NS_PER_S);
    }
}

/*
 * One unit with many functions, which all share one list of many ranges. libdw would need hours for
 * this unit.
 */
static GByteArray *
make_slow_elf(void)
{
    enum { FUNCTIONS = 100 * 1000, RANGES = 100 * 1000 };
    /* clang-format off */
    static const uint8_t abbrev[] = {
        1, 0x11, 1, 0x11, 0x01, 0x12, 0x07, 0, 0, /* compile_unit: low_pc addr, high_pc data8 */
        2, 0x2e, 0, 0x55, 0x17, 0, 0,             /* subprogram: ranges sec_offset */
        0,
    };
    static const uint8_t unit[] = {
        4, 0, 0, 0, 0, 0, 8,    /* version 4, abbrev 0, 8-byte addresses */
        1,                      /* the unit: */
        0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0,
    };
    static const uint8_t function[] = { 2, 0, 0, 0, 0 };
    /* clang-format on */
    g_autoptr(GByteArray) info = g_byte_array_new();
    g_autoptr(GByteArray) ranges = g_byte_array_new();
    const uint32_t len = sizeof(unit) + FUNCTIONS * sizeof(function) + 1;
    const uint64_t range[] = { 1, 2 }, end[] = { 0, 0 };

    g_byte_array_append(info, (const guint8 *)&len, sizeof(len));
    g_byte_array_append(info, unit, sizeof(unit));
    for (unsigned i = 0; i < FUNCTIONS; i++)
        g_byte_array_append(info, function, sizeof(function));
    g_byte_array_append(info, (const guint8 *)"", 1);
    for (unsigned i = 0; i < RANGES; i++)
        g_byte_array_append(ranges, (const guint8 *)range, sizeof(range));
    g_byte_array_append(ranges, (const guint8 *)end, sizeof(end));
    const ElfExtra extras[] = {
        { .name = ".debug_abbrev", .type = SHT_PROGBITS, .bytes = abbrev, .len = sizeof(abbrev) },
        { .name = ".debug_info", .type = SHT_PROGBITS, .bytes = info->data, .len = info->len },
        { .name = ".debug_ranges",
          .type = SHT_PROGBITS,
          .bytes = ranges->data,
          .len = ranges->len },
    };
    static const uint8_t code[16] = { 0xc3 };
    const ElfPlan plan = {
        .text_gva = 0x100000,
        .text = code,
        .text_len = sizeof(code),
        .extras = extras,
        .n_extras = G_N_ELEMENTS(extras),
    };
    return symbol_elf_new(&plan);
}

static void
test_time(void)
{
    static const uint64_t addresses[] = { 0x100008 };
    g_autoptr(GByteArray) elf = make_slow_elf();
    g_autofree char *why = NULL;
    const uint64_t start_ns = uprof_clock_cpu_ns();

    g_autoptr(UprofLines) lines = uprof_lines_read((UprofSlice){ elf->data, elf->len }, addresses,
                                                   1, UPROF_NS_PER_S / 2, &why);
    g_assert_nonnull(lines);
    g_assert_cmpstr(why, ==, "its DWARF took too long to read");
    g_assert_cmpuint(uprof_clock_cpu_ns() - start_ns, <, 2 * UPROF_NS_PER_S);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/lines/time", test_time);
    for (int i = 1; i < argc; i++) {
        g_autofree char *name = g_path_get_basename(argv[i]);
        g_autofree char *frames = g_strdup_printf("/lines/frames/%s", name);
        g_autofree char *nothing = g_strdup_printf("/lines/nothing/%s", name);
        g_autofree char *names = g_strdup_printf("/lines/names/%s", name);
        g_autofree char *damage = g_strdup_printf("/lines/damage/%s", name);
        g_test_add_data_func(frames, argv[i], test_frames);
        g_test_add_data_func(nothing, argv[i], test_nothing);
        g_test_add_data_func(names, argv[i], test_names);
        g_test_add_data_func(damage, argv[i], test_damage);
    }
    return g_test_run();
}
