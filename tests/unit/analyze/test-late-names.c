/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>
#include <sys/stat.h>

#include "../../../src/analyze/frame-offset-priv.h"
#include "../../../src/analyze/late-names-priv.h"
#include "symbol-elf.h"

#define ID "0102030405060708"

static void
test_offset(void)
{
    static const char *const bad[] = {
        "",
        "[",
        "[]",
        "[libc.so.6]",
        "[libc.so.6+]",
        "[libc.so.6+0x]",
        "libc+0x10",
        "[a+0x10",
        "[a+0x1g]",
        "[a+0x10] ",
        "[a+10]",
        "[a+0x-1]",
        "[a+0x11112222333344445]",
    };
    uint64_t offset;
    size_t len;

    const char *label = uprof_frame_offset_parse("[libc++.so.1+0x1a2b]", &len, &offset);
    g_assert_cmpint(strncmp(label, "libc++.so.1", len), ==, 0);
    g_assert_cmpuint(len, ==, strlen("libc++.so.1"));
    g_assert_cmpuint(offset, ==, 0x1a2b);
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++)
        g_assert_null(uprof_frame_offset_parse(bad[i], &len, &offset));
}

typedef struct {
    char *cache;
    UprofNames *names;
    UprofSym *sym;
    UprofProfile *profile;
} Fixture;

static const UprofName *
intern(const Fixture *fixture, const char *text)
{
    return uprof_names_intern(fixture->names, (UprofSlice){ text, strlen(text) });
}

static void
init_fixture(Fixture *fixture)
{
    fixture->cache = g_dir_make_tmp("late-names-XXXXXX", NULL);
    fixture->names = uprof_names_new();
    fixture->sym = uprof_sym_new(uprof_arch_find("x86_64"), fixture->names);
    const UprofSymConfig config = { .cache_folder = fixture->cache };
    uprof_sym_configure(fixture->sym, &config);
    fixture->profile = uprof_profile_new(fixture->names, intern(fixture, "vm"), true);
}

static void
clear_fixture(Fixture *fixture)
{
    const char *const words[] = { "rm", "-rf", fixture->cache, NULL };

    uprof_profile_free(fixture->profile);
    uprof_sym_free(fixture->sym);
    uprof_names_free(fixture->names);
    g_assert_true(g_spawn_sync(NULL, (char **)words, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL,
                               NULL, NULL, NULL));
    g_free(fixture->cache);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Fixture, clear_fixture)

/* Writes the file with build-id ID into the cache: "work" is at 0x1000 of it. */
static void
write_program(const Fixture *fixture)
{
    static const uint8_t note[] = { 4,   0,   0,   0, 8, 0, 0, 0, 3, 0, 0, 0,
                                    'G', 'N', 'U', 0, 1, 2, 3, 4, 5, 6, 7, 8 };
    static const uint8_t text[64] = { 0xc3 };
    const ElfSymbol symbols[] = { { "work", 0x401000, 32, true } };
    const ElfExtra extras[] = { { ".note.gnu.build-id", 7, 2, 0x400200, note, sizeof(note) } };
    const ElfPlan plan = {
        .text_gva = 0x401000,
        .text = text,
        .text_len = sizeof(text),
        .extras = extras,
        .n_extras = G_N_ELEMENTS(extras),
        .symbols = symbols,
        .n_symbols = G_N_ELEMENTS(symbols),
    };
    g_autoptr(GByteArray) file = symbol_elf_new(&plan);
    g_autofree char *folder = g_build_filename(fixture->cache, ".build-id", "01", NULL);
    g_autofree char *path = g_build_filename(folder, &ID[2], NULL);

    symbol_elf_map(file, 0x400000, note, sizeof(note));
    g_assert_cmpint(g_mkdir_with_parents(folder, 0755), ==, 0);
    g_assert_true(g_file_set_contents(path, (const char *)file->data, (gssize)file->len, NULL));
}

static void
append_stack(const UprofName *const *frames, unsigned n, uint64_t weight, void *data)
{
    GString *out = data;

    for (unsigned i = 0; i < n; i++)
        g_string_append_printf(out, "%s%s", i > 0 ? ";" : "", uprof_name_text(frames[i]));
    g_string_append_printf(out, " %" G_GUINT64_FORMAT "\n", weight);
}

/* Adds "prog;TEXT", applies late names, and compares. */
static void
assert_named(Fixture *fixture, const char *text, const char *expected)
{
    const UprofName *frames[] = { intern(fixture, "prog"),
                                  uprof_names_marker(fixture->names, text) };
    g_autoptr(GString) out = g_string_new(NULL);
    g_autofree char *all = g_strdup_printf("vm;prog;%s 3\n", expected);

    uprof_profile_free(fixture->profile);
    fixture->profile = uprof_profile_new(fixture->names, intern(fixture, "vm"), true);
    uprof_profile_add(fixture->profile, frames, G_N_ELEMENTS(frames), 3);
    uint64_t n_named = 10;
    fixture->profile = uprof_late_names_apply(fixture->profile, fixture->sym, &n_named);
    g_assert_cmpuint(n_named, ==, strcmp(text, expected) == 0 ? 10 : 13);
    uprof_profile_walk(fixture->profile, append_stack, out);
    g_assert_cmpstr(out->str, ==, all);
}

/* The file of a module arrives after its first samples. */
static void
test_arrival(void)
{
    g_auto(Fixture) fixture;
    UprofSymModule module;

    init_fixture(&fixture);
    const unsigned number = uprof_sym_add_module(fixture.sym, "lib.so", NULL, ID);
    uprof_sym_reload_modules(fixture.sym, ID);
    assert_named(&fixture, "[lib.so+0x1004]", "[lib.so+0x1004]");
    write_program(&fixture);
    uprof_sym_reload_modules(fixture.sym, "ffff030405060708");
    assert_named(&fixture, "[lib.so+0x1004]", "[lib.so+0x1004]");

    const uint32_t epoch = uprof_sym_epoch(fixture.sym);
    uprof_sym_reload_modules(fixture.sym, ID);
    g_assert_cmpuint(uprof_sym_epoch(fixture.sym), !=, epoch);
    g_assert_true(uprof_sym_module(fixture.sym, number, &module));
    g_assert_cmpstr(module.label, ==, "[lib.so]");
    g_assert_true(g_str_has_prefix(module.path, fixture.cache));
    assert_named(&fixture, "[lib.so+0x1004]", "work");
    g_assert_cmpstr(uprof_name_text(uprof_name_module(intern(&fixture, "work"))), ==, "lib.so");
    /* code without a symbol, and other modules, keep their offsets */
    assert_named(&fixture, "[lib.so+0x1030]", "[lib.so+0x1030]");
    assert_named(&fixture, "[other.so+0x1004]", "[other.so+0x1004]");
    assert_named(&fixture, "[lib.so+0xffffffffffffffff]", "[lib.so+0xffffffffffffffff]");
    /* the same file again changes nothing */
    const uint32_t loaded = uprof_sym_epoch(fixture.sym);
    uprof_sym_reload_modules(fixture.sym, ID);
    g_assert_cmpuint(uprof_sym_epoch(fixture.sym), ==, loaded);
}

/* Two modules have the same label: nobody knows which one a frame means. */
static void
test_same_label(void)
{
    g_auto(Fixture) fixture;

    init_fixture(&fixture);
    write_program(&fixture);
    uprof_sym_add_module(fixture.sym, "lib.so", NULL, ID);
    uprof_sym_add_module(fixture.sym, "lib.so", NULL, ID);
    assert_named(&fixture, "[lib.so+0x1004]", "work"); /* the same file */
    uprof_sym_add_module(fixture.sym, "lib.so", NULL, "1111111111111111");
    assert_named(&fixture, "[lib.so+0x1004]", "[lib.so+0x1004]");
    uprof_sym_add_module(fixture.sym, "lib.so", NULL, ID);
    assert_named(&fixture, "[lib.so+0x1004]", "[lib.so+0x1004]");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/late-names/offset", test_offset);
    g_test_add_func("/late-names/arrival", test_arrival);
    g_test_add_func("/late-names/same-label", test_same_label);
    return g_test_run();
}
