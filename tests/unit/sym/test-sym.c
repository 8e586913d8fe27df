/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <elf.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../../src/sym/file-bytes-priv.h"
#include "build-orc.h"
#include "symbol-elf.h"
#include "uprof/error.h"
#include "uprof/sym.h"

enum { NOBODY = 65534 };

enum { CODE = 0x1000, CODE_LEN = 0x2000 };

static uint8_t text[CODE_LEN];

/* clang-format off */
static const ElfSymbol symbols[] = {
    { "main",              CODE,         0x40, true },
    { "work",              CODE + 0x40,  0x40, true },
    { "a;b\x1b[31m\n 12",  CODE + 0x100, 0x40, true },
    { "bad\xff" "utf",     CODE + 0x140, 0x40, false },
};
/* clang-format on */

typedef struct {
    char *folder;
    UprofNames *names;
    UprofSym *sym;
} Fixture;

static void
init_fixture(Fixture *fixture)
{
    g_autoptr(GError) error = NULL;

    fixture->folder = g_dir_make_tmp("uprof-test-XXXXXX", &error);
    g_assert_no_error(error);
    fixture->names = uprof_names_new();
    fixture->sym = uprof_sym_new(uprof_arch_find("x86_64"), fixture->names);
}

static void
clear_fixture(Fixture *fixture)
{
    g_autoptr(GDir) dir = g_dir_open(fixture->folder, 0, NULL);
    const char *name;

    while ((name = g_dir_read_name(dir))) {
        g_autofree char *path = g_build_filename(fixture->folder, name, NULL);
        if (unlink(path) < 0)
            rmdir(path);
    }
    rmdir(fixture->folder);
    uprof_sym_free(fixture->sym);
    uprof_names_free(fixture->names);
    g_free(fixture->folder);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Fixture, clear_fixture)

static char *
make_path(const Fixture *fixture, const char *name)
{
    return g_build_filename(fixture->folder, name, NULL);
}

static ElfPlan
plan_elf(bool has_symbols)
{
    return (ElfPlan){
        .entry = CODE + 8,
        .text_gva = CODE,
        .text = text,
        .text_len = sizeof(text),
        .symbols = symbols,
        .n_symbols = has_symbols ? G_N_ELEMENTS(symbols) : 0,
    };
}

static void
add_file(const Fixture *fixture, const char *name)
{
    g_autofree char *path = make_path(fixture, name);
    g_autoptr(GError) error = NULL;

    g_assert_true(uprof_sym_add_file(fixture->sym, path, true, &error));
    g_assert_no_error(error);
}

static void
add_elf(const Fixture *fixture, const char *name)
{
    const ElfPlan plan = plan_elf(true);
    g_autofree char *path = make_path(fixture, name);

    symbol_elf_write(&plan, path);
    add_file(fixture, name);
}

static void
add_text(const Fixture *fixture, const char *name, const char *content)
{
    g_autofree char *path = make_path(fixture, name);

    g_assert_true(g_file_set_contents(path, content, -1, NULL));
    add_file(fixture, name);
}

static void
assert_name(const Fixture *fixture, uint64_t pc, bool is_return, UprofSymKind kind,
            const char *name)
{
    /* the second time from the cache */
    for (unsigned i = 0; i < 2; i++) {
        const UprofSymAnswer answer = uprof_sym_find(fixture->sym, pc, is_return);
        g_assert_cmpstr(uprof_name_text(answer.name), ==, name);
        g_assert_cmpint(answer.kind, ==, kind);
    }
}

static void
test_no_source(void)
{
    g_auto(Fixture) fixture;

    init_fixture(&fixture);
    assert_name(&fixture, 0x1234, false, UPROF_SYM_OUTSIDE, "0x1234");
    assert_name(&fixture, 0x1234, true, UPROF_SYM_OUTSIDE, "0x1233");
    assert_name(&fixture, 0, true, UPROF_SYM_OUTSIDE, "0x0");
    assert_name(&fixture, UINT64_MAX, false, UPROF_SYM_OUTSIDE, "0xffffffffffffffff");
    g_assert_false(uprof_sym_is_code(fixture.sym, 0x1234));
}

static void
test_elf(void)
{
    g_auto(Fixture) fixture;
    UprofSymSource source;

    init_fixture(&fixture);
    add_elf(&fixture, "app");
    assert_name(&fixture, CODE, false, UPROF_SYM_NAMED, "main");
    assert_name(&fixture, CODE + 0x3f, false, UPROF_SYM_NAMED, "main");
    assert_name(&fixture, CODE + 0x40, false, UPROF_SYM_NAMED, "work");
    assert_name(&fixture, CODE + 0x40, true, UPROF_SYM_NAMED,
                "main"); /* a return address belongs to the call before it */
    assert_name(&fixture, CODE + 0x80, true, UPROF_SYM_NAMED, "work");
    assert_name(&fixture, CODE + 0x80, false, UPROF_SYM_IN_IMAGE, "[app+0x80]");
    assert_name(&fixture, CODE + 0x100, false, UPROF_SYM_NAMED, "a:b?[31m?_12");
    assert_name(&fixture, CODE + 0x140, false, UPROF_SYM_NAMED, "bad\xef\xbf\xbdutf");
    assert_name(&fixture, CODE + CODE_LEN - 1, false, UPROF_SYM_IN_IMAGE, "[app+0x1fff]");
    assert_name(&fixture, CODE + CODE_LEN, false, UPROF_SYM_OUTSIDE, "[unknown]");
    assert_name(&fixture, CODE + CODE_LEN, true, UPROF_SYM_IN_IMAGE, "[app+0x1fff]");
    assert_name(&fixture, CODE - 1, false, UPROF_SYM_OUTSIDE, "[unknown]");
    g_assert_true(uprof_sym_is_code(fixture.sym, CODE));
    g_assert_false(uprof_sym_is_code(fixture.sym, CODE - 1));

    g_assert_true(uprof_sym_find(fixture.sym, CODE, false).is_entry);
    g_assert_false(uprof_sym_find(fixture.sym, CODE + 0x40, false).is_entry);
    g_assert_cmphex(uprof_sym_find(fixture.sym, CODE + 0x50, false).start, ==, CODE + 0x40);

    g_assert_cmpuint(uprof_sym_n_sources(fixture.sym), ==, 1);
    uprof_sym_source(fixture.sym, 0, &source);
    g_assert_cmpstr(source.label, ==, "[app]");
    g_assert_cmpstr(source.kind, ==, "ELF");
    g_assert_true(g_str_has_suffix(source.path, "/app"));
    g_assert_cmpuint(source.n_symbols, ==, G_N_ELEMENTS(symbols));
    g_assert_cmpuint(source.machine, ==, EM_X86_64);
    g_assert_cmpuint(strlen(source.digest), ==, 64);
    g_assert_null(source.build_id);
    g_assert_cmpint(source.match, ==, UPROF_SYM_UNCHECKED);
}

/* The entry has a symbol without size. The function that it calls has no symbol. */
static void
test_unsized_entry(void)
{
    static const uint8_t code[] = {
        0xe8, 0x0b, 0,    0,    0,    0xf4, 0x90, 0x90, /* call 1f; hlt */
        0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xc3
    }; /* 1: nop; nop; ret */
    static const ElfSymbol start = { "_start", CODE, 0, true };
    const ElfPlan plan = { .entry = CODE,
                           .text_gva = CODE,
                           .text = code,
                           .text_len = sizeof(code),
                           .symbols = &start,
                           .n_symbols = 1 };
    g_auto(Fixture) fixture;
    uint64_t first, len;
    bool is_entry;

    init_fixture(&fixture);
    g_autofree char *path = make_path(&fixture, "app");
    symbol_elf_write(&plan, path);
    g_assert_true(uprof_sym_add_file(fixture.sym, path, true, NULL));
    g_assert_true(uprof_sym_find(fixture.sym, CODE, false).is_entry);
    g_assert_true(uprof_sym_function(fixture.sym, CODE + 5, &first, &len, &is_entry));
    g_assert_true(is_entry);
    g_assert_cmphex(first, ==, CODE);
    g_assert_cmphex(len, ==, 0x10);
    g_assert_false(uprof_sym_find(fixture.sym, CODE + 0x11, false).is_entry);
    g_assert_true(uprof_sym_function(fixture.sym, CODE + 0x11, &first, &len, &is_entry));
    g_assert_false(is_entry);
    g_assert_cmphex(first, ==, CODE + 0x10);
    g_assert_cmphex(len, ==, sizeof(code) - 0x10);
}

/* Xen may start an image elsewhere than a boot loader. */
static void
test_xen_entry(void)
{
    static const uint8_t note[] = { 4, 0, 0,   0,   4,   0, 0,    0,    18, 0,
                                    0, 0, 'X', 'e', 'n', 0, 0x48, 0x10, 0,  0 };
    static const ElfExtra extra = {
        .name = ".note.Xen", .type = SHT_NOTE, .bytes = note, .len = sizeof(note)
    };
    ElfPlan plan = plan_elf(true);
    g_auto(Fixture) fixture;

    init_fixture(&fixture);
    plan.extras = &extra;
    plan.n_extras = 1;
    g_autofree char *path = make_path(&fixture, "app");
    symbol_elf_write(&plan, path);
    add_file(&fixture, "app");
    g_assert_true(uprof_sym_find(fixture.sym, CODE, false).is_entry);
    g_assert_true(uprof_sym_find(fixture.sym, CODE + 0x40, false).is_entry);
    g_assert_false(uprof_sym_find(fixture.sym, CODE + 0x100, false).is_entry);
}

/* A label in a function does not take the name of the code behind it, and does not hide the entry.
 */
static void
test_label(void)
{
    static const ElfSymbol start[] = { { "_start", CODE, 0, true },
                                       { "no_feature", CODE + 4, 0, false, true },
                                       { "next", CODE + 0x10, 0, false, true } };
    static const uint8_t code[] = { 0x74, 0x02, 0xf4, 0xf4, 0xe8, 0x07, 0x00, 0x00, 0x00,
                                    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x90, 0xc3 };
    const ElfPlan plan = { .entry = CODE,
                           .text_gva = CODE,
                           .text = code,
                           .text_len = sizeof(code),
                           .symbols = start,
                           .n_symbols = G_N_ELEMENTS(start) };
    g_auto(Fixture) fixture;

    init_fixture(&fixture);
    g_autofree char *path = make_path(&fixture, "app");
    symbol_elf_write(&plan, path);
    add_file(&fixture, "app");
    assert_name(&fixture, CODE + 9, true, UPROF_SYM_NAMED, "_start");
    assert_name(&fixture, CODE + 0x10, false, UPROF_SYM_NAMED, "next");
    g_assert_true(uprof_sym_find(fixture.sym, CODE + 9, true).is_entry);
    g_assert_false(uprof_sym_find(fixture.sym, CODE + 0x10, false).is_entry);
}

static void
test_text(void)
{
    g_auto(Fixture) fixture;
    UprofSymSource source;

    init_fixture(&fixture);
    add_text(&fixture, "System.map",
             "0000000000001000 T first\n0000000000001100 t second\n0000000000001200 D data\n"
             "0000000000001300 T last\n");
    assert_name(&fixture, 0x10ff, false, UPROF_SYM_NAMED, "first");
    assert_name(&fixture, 0x1100, false, UPROF_SYM_NAMED, "second");
    assert_name(&fixture, 0x1200, false, UPROF_SYM_IN_IMAGE, "[app+0x200]");
    assert_name(&fixture, 0x1300, false, UPROF_SYM_NAMED, "last");
    assert_name(&fixture, 0x22ff, false, UPROF_SYM_NAMED, "last");
    assert_name(&fixture, 0x2300, false, UPROF_SYM_OUTSIDE, "[unknown]");
    g_assert_false(uprof_sym_find(fixture.sym, 0x1000, false).is_entry);
    uprof_sym_source(fixture.sym, 0, &source);
    g_assert_cmpstr(source.kind, ==, "text");
}

/* The first file with a name wins; an address without name belongs to the first image. */
static void
test_order(void)
{
    g_auto(Fixture) fixture;
    UprofSymSource source;

    init_fixture(&fixture);
    assert_name(&fixture, CODE + 0x50, false, UPROF_SYM_OUTSIDE, "0x1050");
    add_elf(&fixture, "app");
    assert_name(&fixture, CODE + 0x50, false, UPROF_SYM_NAMED, "work");
    add_text(&fixture, "map", "1040 T other\n1080 T gap\n10c0 D end\n5000 T far\n");
    assert_name(&fixture, CODE + 0x50, false, UPROF_SYM_NAMED, "work");
    assert_name(&fixture, CODE + 0x90, false, UPROF_SYM_NAMED, "gap");
    assert_name(&fixture, CODE + 0xd0, false, UPROF_SYM_IN_IMAGE, "[app+0xd0]");
    assert_name(&fixture, CODE + 0x2100, false, UPROF_SYM_IN_IMAGE, "[app2+0x20c0]");
    assert_name(&fixture, 0x5000, false, UPROF_SYM_NAMED, "far");
    uprof_sym_source(fixture.sym, 1, &source);
    g_assert_cmpstr(source.label, ==, "[app2]");
}

/* The image is linked at CODE, but loaded at another address. */
static void
test_moved(void)
{
    static const uint64_t bases[] = { 0, 0x7000, UINT64_C(0xffffffff9a000000) };

    for (size_t i = 0; i < G_N_ELEMENTS(bases); i++) {
        g_auto(Fixture) fixture;
        UprofSymSource source;

        init_fixture(&fixture);
        const ElfPlan plan = plan_elf(true);
        g_autofree char *path = make_path(&fixture, "app");
        g_autofree char *map = make_path(&fixture, "map");
        const uint64_t far = bases[i] + 0x10000;
        g_autoptr(GError) error = NULL;
        symbol_elf_write(&plan, path);
        g_assert_true(g_file_set_contents(map, "2010 T f\n2030 T g\n", -1, NULL));
        g_assert_true(uprof_sym_add_file_at(fixture.sym, path, &bases[i], true, &error));
        g_assert_true(uprof_sym_add_file_at(fixture.sym, map, &far, true, &error));
        assert_name(&fixture, bases[i] + 0x50, false, UPROF_SYM_NAMED, "work");
        g_assert_cmphex(uprof_sym_find(fixture.sym, bases[i] + 0x50, false).start, ==,
                        bases[i] + 0x40);
        g_assert_true(uprof_sym_find(fixture.sym, bases[i], false).is_entry);
        assert_name(&fixture, bases[i] + 0x80, false, UPROF_SYM_IN_IMAGE, "[app+0x80]");
        g_assert_true(uprof_sym_is_code(fixture.sym, bases[i]));
        g_assert_false(uprof_sym_is_code(fixture.sym, bases[i] - 1));
        g_assert_false(uprof_sym_is_code(fixture.sym, CODE + CODE_LEN + 0x100000));
        assert_name(&fixture, far, false, UPROF_SYM_NAMED, "f");
        assert_name(&fixture, far + 0x20, false, UPROF_SYM_NAMED, "g");
        uprof_sym_source(fixture.sym, 0, &source);
        g_assert_true(source.is_moved);
        g_assert_cmphex(source.base, ==, bases[i]);
        const uint64_t odd = bases[i] + 16;
        g_assert_false(uprof_sym_add_file_at(fixture.sym, path, &odd, true, &error));
        g_assert_true(g_pattern_match_simple("'*/app' cannot be at *10, which is not the "
                                             "beginning of a page",
                                             error->message));
    }
}

static void
test_i386_on_x86_64(void)
{
    ElfPlan plan = plan_elf(true);
    g_auto(Fixture) fixture;

    init_fixture(&fixture);
    plan.is_32 = true;
    g_autofree char *path = make_path(&fixture, "app32");
    symbol_elf_write(&plan, path);
    add_file(&fixture, "app32");
    assert_name(&fixture, CODE + 0x50, false, UPROF_SYM_NAMED, "work");
}

static void
make_stripped(const char *path)
{
    const ElfPlan plan = plan_elf(false);

    symbol_elf_write(&plan, path);
}

static void
make_arm(const char *path)
{
    ElfPlan plan = plan_elf(true);

    plan.machine = EM_AARCH64;
    symbol_elf_write(&plan, path);
}

static void
make_cut(const char *path)
{
    const ElfPlan plan = plan_elf(true);
    g_autoptr(GByteArray) file = symbol_elf_new(&plan);

    g_assert_true(g_file_set_contents(path, (const char *)file->data, 100, NULL));
}

static void
make_empty(const char *path)
{
    g_assert_true(g_file_set_contents(path, "", 0, NULL));
}

static void
make_garbage(const char *path)
{
    g_assert_true(g_file_set_contents(path, "\1\2\3\4 what is this\n", -1, NULL));
}

static void
make_zeros(const char *path)
{
    g_assert_true(
        g_file_set_contents(path, "0000000000000000 T a\n0000000000000000 T b\n", -1, NULL));
}

/* Debian 12 has this text as /boot/System.map-VERSION. */
static void
make_stub(const char *path)
{
    g_assert_true(g_file_set_contents(path,
                                      "ffffffffffffffff B The real System.map is in the "
                                      "linux-image-<version>-dbg package\n",
                                      -1, NULL));
}

static void
make_folder(const char *path)
{
    g_assert_cmpint(mkdir(path, 0700), ==, 0);
}

static void
make_fifo(const char *path)
{
    g_assert_cmpint(mkfifo(path, 0600), ==, 0);
}

static void
make_unreadable(const char *path)
{
    make_stripped(path);
    g_assert_cmpint(chmod(path, 0), ==, 0);
}

static void
make_loop(const char *path)
{
    g_assert_cmpint(symlink(path, path), ==, 0);
}

static void
make_device(const char *path)
{
    g_assert_cmpint(symlink("/dev/zero", path), ==, 0);
}

static void
make_sparse(const char *path)
{
    make_empty(path);
    g_assert_cmpint(truncate(path, (off_t)UPROF_SYM_FILE_BYTES_MAX_MIB << 20), ==, 0);
}

/* clang-format off */
static const struct {
    const char *name; /* of the file */
    void (*make)(const char *path);
    bool not_root;
    UprofErrorCode code;
    const char *error;
} refusals[] = {
    { "missing",    NULL,            false, UPROF_ERROR_NO_FILE,  "cannot open symbol file '*/missing': *" },
    { "folder",     make_folder,     false, UPROF_ERROR_BAD_DATA, "'*/folder' is not a regular file" },
    { "fifo",       make_fifo,       false, UPROF_ERROR_BAD_DATA, "'*/fifo' is not a regular file" },
    { "device",     make_device,     false, UPROF_ERROR_BAD_DATA, "'*/device' is not a regular file" },
    { "loop",       make_loop,       false, UPROF_ERROR_FAILED,   "cannot open symbol file '*/loop': *" },
    { "unreadable", make_unreadable, true,  UPROF_ERROR_DENIED,   "cannot open symbol file '*/unreadable': *" },
    { "empty",      make_empty,      false, UPROF_ERROR_BAD_DATA, "'*/empty' is empty" },
    { "too-large",  make_sparse,     false, UPROF_ERROR_BAD_DATA, "'*/too-large' is too large: symbol files have up to 2048 MiB" },
    { "garbage",    make_garbage,    false, UPROF_ERROR_BAD_DATA, "'*/garbage' is neither an ELF file nor text as nm, System.map or kallsyms write it" },
    { "zeros",      make_zeros,      false, UPROF_ERROR_BAD_DATA, "*/zeros*" },
    { "stub",       make_stub,       false, UPROF_ERROR_BAD_DATA, "'*/stub' names no code; Debian's /boot/System.map is a stub, the package linux-image-VERSION-dbg has the complete map" },
    { "cut",        make_cut,        false, UPROF_ERROR_BAD_DATA, "*/cut*" },
    { "stripped",   make_stripped,   false, UPROF_ERROR_BAD_DATA, "'*/stripped' has no symbols (stripped?), and there is no debug file with them, such as '*/stripped.dbg'" },
    { "arm",        make_arm,        false, UPROF_ERROR_BAD_DATA, "'*/arm' is an image of another architecture (ELF machine 183) than the guest's x86_64" },
    { "hostile\x1b[31m;\n%s", make_garbage, false, UPROF_ERROR_BAD_DATA, "'*/hostile?[31m;?%s' is neither *" },
};
/* clang-format on */

static void
test_refusal(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_auto(Fixture) fixture;
    g_autoptr(GError) error = NULL;

    init_fixture(&fixture);
    g_autofree char *path = make_path(&fixture, refusals[i].name);
    if (refusals[i].make)
        refusals[i].make(path);
    /* root may read everything, so this case runs as another user */
    const bool as_other = refusals[i].not_root && geteuid() == 0;
    g_assert_true(!as_other || seteuid(NOBODY) == 0);
    g_assert_false(uprof_sym_add_file(fixture.sym, path, true, &error));
    g_assert_true(!as_other || seteuid(0) == 0);
    g_assert_error(error, UPROF_ERROR, (gint)refusals[i].code);
    g_assert_true(g_pattern_match_simple(refusals[i].error, error->message));
    g_assert_cmpuint(uprof_sym_n_sources(fixture.sym), ==, 0);
    assert_name(&fixture, 0x1234, false, UPROF_SYM_OUTSIDE, "0x1234");
}

/* A stripped image uses the debug file beside it, if there is one. */
static void
test_debug_file(void)
{
    const ElfPlan plan = plan_elf(true);
    g_auto(Fixture) fixture;
    g_autoptr(GError) error = NULL;
    UprofSymSource source;

    init_fixture(&fixture);
    g_autofree char *path = make_path(&fixture, "app");
    g_autofree char *debug = make_path(&fixture, "app.dbg");
    make_stripped(path);
    g_assert_true(uprof_sym_add_file(fixture.sym, path, false, &error));
    assert_name(&fixture, CODE + 0x50, false, UPROF_SYM_IN_IMAGE, "[app+0x50]");

    make_garbage(debug);
    g_assert_false(uprof_sym_add_file(fixture.sym, path, true, &error));
    g_clear_error(&error);
    symbol_elf_write(&plan, debug);
    g_assert_true(uprof_sym_add_file(fixture.sym, path, true, &error));
    assert_name(&fixture, CODE + 0x50, false, UPROF_SYM_NAMED, "work");
    uprof_sym_source(fixture.sym, 1, &source);
    g_assert_true(g_str_has_suffix(source.path, "/app"));
    g_assert_true(g_str_has_suffix(source.debug_path, "/app.dbg"));
}

static void
test_too_many(void)
{
    g_auto(Fixture) fixture;
    g_autoptr(GError) error = NULL;

    init_fixture(&fixture);
    g_autofree char *path = make_path(&fixture, "map");
    g_assert_true(g_file_set_contents(path, "1000 T f\n", -1, NULL));
    for (unsigned i = 0; i < UPROF_SYM_SOURCES_MAX; i++)
        g_assert_true(uprof_sym_add_file(fixture.sym, path, true, &error));
    g_assert_false(uprof_sym_add_file(fixture.sym, path, true, &error));
    g_assert_true(
        g_pattern_match_simple("'*' exceeds the limit of * symbol files", error->message));
}

static void
test_too_much(void)
{
    static const char table[] = "1000 T f\n";
    g_auto(Fixture) fixture;
    g_autoptr(GError) error = NULL;

    init_fixture(&fixture);
    /* room for two files and the tables of their symbols, but not for three */
    uprof_sym_configure(fixture.sym, &(UprofSymConfig){ .bytes_max = sizeof(table) * 2 + 500 });
    g_autofree char *path = make_path(&fixture, "map");
    g_assert_true(g_file_set_contents(path, table, -1, NULL));
    for (unsigned i = 0; i < 2; i++)
        g_assert_true(uprof_sym_add_file(fixture.sym, path, true, &error));
    g_assert_false(uprof_sym_add_file(fixture.sym, path, true, &error));
    g_assert_true(g_pattern_match_simple("'*/map' needs more than *; allow more with --memory",
                                         error->message));
    g_assert_cmpuint(uprof_sym_n_sources(fixture.sym), ==, 2);
}

/* Random addresses of the code, which are found with and without the cache. */
static void
test_cache(void)
{
    g_auto(Fixture) fixture;

    init_fixture(&fixture);
    add_elf(&fixture, "app");
    for (unsigned round = 0; round < 20000; round++) {
        /* some of these addresses share a slot of the cache */
        const uint64_t pc = CODE + (uint64_t)g_test_rand_int_range(0, 0x100) +
                            (uint64_t)g_test_rand_int_range(0, 4) * (UINT64_C(1) << 28);
        const char *name = uprof_name_text(uprof_sym_find(fixture.sym, pc, false).name);
        if (pc >= CODE + CODE_LEN)
            g_assert_cmpstr(name, ==, "[unknown]");
        else if (pc < CODE + 0x80)
            g_assert_cmpstr(name, ==, pc < CODE + 0x40 ? "main" : "work");
        else
            g_assert_true(g_str_has_prefix(name, "[app+0x"));
    }
}

/* One function of 64 bytes, at CODE: its CFA is RSP + 8. */
static const uint8_t frames[] = "\x14\0\0\0\0\0\0\0\1zR\0\1\x78\x10\1\3\x0c\7\x08\x90\1\0\0"
                                "\x0d\0\0\0\x1c\0\0\0\0\x10\0\0\x40\0\0\0";

static void
test_rule(void)
{
    ElfPlan plan = plan_elf(true);
    g_auto(Fixture) fixture;
    g_autofree char *path = NULL;
    const UprofCfi *cfi = NULL;
    UprofSymSource source;

    init_fixture(&fixture);
    add_elf(&fixture, "without");
    g_assert_null(uprof_sym_rule(fixture.sym, CODE, &cfi));
    uprof_sym_source(fixture.sym, 0, &source);
    g_assert_null(source.cfi);

    path = make_path(&fixture, "with");
    plan.eh_frame_gva = 0x8000;
    plan.eh_frame = frames;
    plan.eh_frame_len = sizeof(frames);
    symbol_elf_write(&plan, path);
    add_file(&fixture, "with");
    uprof_sym_source(fixture.sym, 1, &source);
    g_assert_nonnull(source.cfi);
    for (unsigned at = 0; at < 0x80; at++) {
        const UprofCfiRule *rule = uprof_sym_rule(fixture.sym, CODE + at, &cfi);
        g_assert_true(!rule == (at >= 0x40));
        g_assert_true(!rule || (rule->cfa_value == 8 && cfi == source.cfi));
    }

    /* damaged unwind tables are ignored */
    add_text(&fixture, "text", "0000000000001000 T main\n");
    plan.eh_frame_len = 7;
    symbol_elf_write(&plan, path);
    add_file(&fixture, "with");
    uprof_sym_source(fixture.sym, 3, &source);
    g_assert_null(source.cfi);
    g_assert_cmpuint(source.n_symbols, ==, G_N_ELEMENTS(symbols));
}

static UprofOrc *
make_orc(uint64_t start, uint64_t len, int16_t offset)
{
    const OrcLine lines[] = { { start, offset, 0, 0x215 },
                              { start + len / 2, 0, 0, 0 },
                              { start + len, 0, 0, 0 } };
    g_autoptr(GByteArray) ips = g_byte_array_new(), entries = g_byte_array_new();

    build_orc(lines, G_N_ELEMENTS(lines), start, ips, entries);
    return uprof_orc_parse((UprofSlice){ ips->data, ips->len }, start,
                           (UprofSlice){ entries->data, entries->len }, UPROF_ORC_6_4, NULL);
}

static void
assert_orc(const Fixture *fixture, uint64_t pc, int offset)
{
    /* the second time from the cache */
    for (unsigned i = 0; i < 2; i++) {
        UprofOrcRule rule = { .sp_offset = 42 };
        g_assert_true(uprof_sym_orc(fixture->sym, pc, &rule) == (offset > 0));
        g_assert_cmpint(rule.sp_offset, ==, offset > 0 ? offset : 42);
    }
}

/* ORC tables of the kernel and of its modules are added and removed with their owner. */
static void
test_orc(void)
{
    const uint64_t kernel = UINT64_C(0xffffffff81000000), module = UINT64_C(0xffffffffc0100000);
    g_auto(Fixture) fixture;

    init_fixture(&fixture);
    assert_orc(&fixture, kernel, 0);
    const uint32_t before = uprof_sym_epoch(fixture.sym);
    uprof_sym_add_orc(fixture.sym, UPROF_SYM_KERNEL, make_orc(kernel, 0x1000, 8));
    uprof_sym_add_orc(fixture.sym, UPROF_SYM_MODULES, make_orc(module, 0x100, 16));
    uprof_sym_add_orc(fixture.sym, UPROF_SYM_MODULES, make_orc(module + 0x80, 0x200, 24));
    g_assert_cmpuint(uprof_sym_epoch(fixture.sym), !=, before);
    assert_orc(&fixture, kernel - 1, 0);
    assert_orc(&fixture, kernel, 8);
    assert_orc(&fixture, kernel + 0x7ff, 8);
    assert_orc(&fixture, kernel + 0x1000, 0);
    assert_orc(&fixture, module, 16);
    assert_orc(&fixture, module + 0x100, 24);
    g_assert_true(uprof_sym_is_code(fixture.sym, kernel + 0x7ff));
    /* addresses without an entry, or after the last entry, are not code */
    g_assert_false(uprof_sym_is_code(fixture.sym, kernel + 0x800));
    g_assert_false(uprof_sym_is_code(fixture.sym, kernel + 0x1000));
    g_assert_true(uprof_sym_is_code(fixture.sym, module));

    uprof_sym_set_own(fixture.sym, UPROF_SYM_MODULES, NULL, NULL, NULL);
    assert_orc(&fixture, module, 0);
    assert_orc(&fixture, kernel, 8);
    uprof_sym_set_own(fixture.sym, UPROF_SYM_KERNEL, NULL, NULL, NULL);
    assert_orc(&fixture, kernel, 0);
    g_assert_false(uprof_sym_is_code(fixture.sym, kernel));
}

/* Sets a kernel that was found in the guest: two functions of 256 bytes each, from @start on */
static void
set_kernel(const Fixture *fixture, uint64_t start)
{
    static const char text_names[] = "vfs_read\0kfree";
    const UprofSymCode code = { start, start + 0x200 };
    const UprofSymbol both[] = {
        { .start = start, .name = { text_names, 8 }, .code = true },
        { .start = start + 0x100, .name = { text_names + 9, 5 }, .code = true },
    };
    g_autoptr(GArray) functions = g_array_new(FALSE, FALSE, sizeof(UprofSymbol));
    g_autoptr(GArray) ranges = g_array_new(FALSE, FALSE, sizeof(UprofSymCode));

    g_array_append_vals(functions, both, G_N_ELEMENTS(both));
    g_array_append_val(ranges, code);
    uprof_sym_set_own(fixture->sym, UPROF_SYM_KERNEL, functions, g_byte_array_new(), ranges);
}

/* All names of kernel functions get "_[k]". The kernel's symbol file moves to its load address. */
static void
test_kernel(void)
{
    const uint64_t linked = UINT64_C(0xffffffff81000000), moved = UINT64_C(0xffffffff9e000000);
    g_auto(Fixture) fixture;

    init_fixture(&fixture);
    add_text(&fixture, "System.map",
             "ffffffff81000000 T vfs_read\nffffffff81000080 t from_file\n"
             "ffffffff81000100 T kfree\n");
    add_text(&fixture, "program", "401000 T main\n401100 T vfs_read\n");
    assert_name(&fixture, linked, false, UPROF_SYM_NAMED, "vfs_read");
    set_kernel(&fixture, linked);
    assert_name(&fixture, linked, false, UPROF_SYM_NAMED, "vfs_read_[k]");
    assert_name(&fixture, linked + 0x80, false, UPROF_SYM_NAMED, "from_file_[k]");
    set_kernel(&fixture, moved);
    assert_name(&fixture, moved + 0x80, false, UPROF_SYM_NAMED, "from_file_[k]");
    assert_name(&fixture, moved + 0x100, false, UPROF_SYM_NAMED, "kfree_[k]");
    assert_name(&fixture, linked + 0x80, false, UPROF_SYM_OUTSIDE, "[unknown]");
    /* symbol files of other programs are not moved */
    assert_name(&fixture, 0x401000, false, UPROF_SYM_NAMED, "main");
    uprof_sym_set_own(fixture.sym, UPROF_SYM_KERNEL, NULL, NULL, NULL);
    assert_name(&fixture, linked + 0x80, false, UPROF_SYM_NAMED, "from_file");
    assert_name(&fixture, moved + 0x80, false, UPROF_SYM_OUTSIDE, "[unknown]");
}

/* In a kernel of another build, functions have different distances. */
static void
test_kernel_of_another_build(void)
{
    const uint64_t moved = UINT64_C(0xffffffff9e000000);
    g_auto(Fixture) fixture;

    init_fixture(&fixture);
    add_text(&fixture, "System.map", "ffffffff81000000 T vfs_read\nffffffff81000120 T kfree\n");
    set_kernel(&fixture, moved);
    assert_name(&fixture, moved + 0x20, false, UPROF_SYM_NAMED, "vfs_read_[k]");
    assert_name(&fixture, moved + 0x110, false, UPROF_SYM_NAMED, "kfree_[k]");
}

/* A base address that the user gives is not changed. */
static void
test_kernel_given_base(void)
{
    const uint64_t moved = UINT64_C(0xffffffff9e000000), base = UINT64_C(0xffffffff90000000);
    g_auto(Fixture) fixture;
    g_autoptr(GError) error = NULL;

    init_fixture(&fixture);
    g_autofree char *path = make_path(&fixture, "System.map");
    g_assert_true(g_file_set_contents(path, "ffffffff81000000 T vfs_read\n", -1, &error));
    g_assert_true(uprof_sym_add_file_at(fixture.sym, path, &base, true, &error));
    g_assert_no_error(error);
    set_kernel(&fixture, moved);
    assert_name(&fixture, base, false, UPROF_SYM_NAMED, "vfs_read_[k]");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = (uint8_t)(i * 7 + i / 256);
    g_test_add_func("/sym/moved", test_moved);
    g_test_add_func("/sym/no-source", test_no_source);
    g_test_add_func("/sym/elf", test_elf);
    g_test_add_func("/sym/unsized-entry", test_unsized_entry);
    g_test_add_func("/sym/xen-entry", test_xen_entry);
    g_test_add_func("/sym/label", test_label);
    g_test_add_func("/sym/text", test_text);
    g_test_add_func("/sym/order", test_order);
    g_test_add_func("/sym/i386-on-x86_64", test_i386_on_x86_64);
    for (size_t i = 0; i < G_N_ELEMENTS(refusals); i++) {
        g_autofree char *path = g_strdup_printf("/sym/refusal/%zu-%.7s", i, refusals[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_refusal);
    }
    g_test_add_func("/sym/debug-file", test_debug_file);
    g_test_add_func("/sym/kernel", test_kernel);
    g_test_add_func("/sym/kernel-given-base", test_kernel_given_base);
    g_test_add_func("/sym/kernel-of-another-build", test_kernel_of_another_build);
    g_test_add_func("/sym/too-many", test_too_many);
    g_test_add_func("/sym/too-much", test_too_much);
    g_test_add_func("/sym/cache", test_cache);
    uprof_sym_free(NULL);
    g_test_add_func("/sym/rule", test_rule);
    g_test_add_func("/sym/orc", test_orc);
    return g_test_run();
}
