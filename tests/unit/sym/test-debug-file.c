/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The search for the symbols of a stripped image. The tests make all files, in a folder of
 * their own, which is also the folder for debug files.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <lzma.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbol-elf.h"
#include "uprof/error.h"
#include "uprof/sym.h"

enum { CODE = 0x1000, CODE_LEN = 0x1000, FRAMES = 0x8000 };

/* A note "GNU" with 4 bytes of build-id; @last is the last one */
#define NOTE(last) "\4\0\0\0\4\0\0\0\3\0\0\0GNU\0\xab\xcd\xef" last
#define LINK_CRC 0x5a
enum { NOTE_LEN = 20, LINK_LEN = 16, LINK_CRC_AT = 12 };

/* clang-format off */
/* Tables of functions from CODE on: the CFA is rsp + 8 in eh_frame, rsp + 24 in debug_frame. */
#define CIE_EH "\x14\0\0\0\0\0\0\0\1zR\0\1\x78\x10\1\3\x0c\7\x08\x90\1\0\0"
static const uint8_t eh_frame[] =
    CIE_EH "\x10\0\0\0\x1c\0\0\0" "\0\x10\0\0\x40\0\0\0" "\0\0\0\0" "\0\0\0\0";
#define CIE_DEBUG "\x10\0\0\0\xff\xff\xff\xff\3\0\1\x78\x10\x0c\7\x18\x90\1\0\0"
#define FDE_DEBUG(page) "\x14\0\0\0\0\0\0\0\0" page "\0\0\0\0\0\0\x80\0\0\0\0\0\0\0"
static const uint8_t debug_frame[] = CIE_DEBUG FDE_DEBUG("\x10");

/* clang-format on */

static uint8_t text[CODE_LEN];

/* clang-format off */
static const ElfSymbol all_symbols[] = {
    { "main",  CODE,         0x40, true },
    { "work",  CODE + 0x40,  0x40, false },
};
static const ElfSymbol own_symbols[] = { { "exported", CODE + 0x80, 0x40, true } };
/* clang-format on */

typedef struct {
    char *folder;
    char *image;
    UprofNames *names;
    UprofSym *sym;
} Fixture;

static void
init_fixture(Fixture *fixture)
{
    g_autoptr(GError) error = NULL;

    fixture->folder = g_dir_make_tmp("uprof-test-XXXXXX", &error);
    g_assert_no_error(error);
    fixture->image = g_build_filename(fixture->folder, "app", NULL);
    fixture->names = uprof_names_new();
    fixture->sym = uprof_sym_new(uprof_arch_find("x86_64"), fixture->names);
    const char *const folders[] = { "/nonexistent", fixture->folder, NULL };
    const UprofSymConfig config = { .debug_folders = folders };
    uprof_sym_configure(fixture->sym, &config);
}

static void
remove_all(const char *folder)
{
    const char *const words[] = { "rm", "-rf", "--", folder, NULL };

    g_assert_true(g_spawn_sync(NULL, (char **)words, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL,
                               NULL, NULL, NULL));
}

static void
clear_fixture(Fixture *fixture)
{
    remove_all(fixture->folder);
    uprof_sym_free(fixture->sym);
    uprof_names_free(fixture->names);
    g_free(fixture->folder);
    g_free(fixture->image);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Fixture, clear_fixture)

/* The contents of one of the two files. */
typedef struct {
    const char *build_id; /* (nullable): a NOTE() */
    bool has_eh, has_debug_frame;
    bool is_other; /* with the code of another build */
    bool is_debug; /* without code */
    uint16_t machine;
} Part;

static GByteArray *
make_elf(const Part *part, const ElfSymbol *symbols, size_t n, const ElfExtra *more)
{
    static uint8_t other[CODE_LEN];
    ElfExtra extras[4];
    ElfPlan plan = { .text_gva = CODE,
                     .text = part->is_other ? other : text,
                     .text_len = CODE_LEN,
                     .entry = CODE,
                     .machine = part->machine,
                     .is_debug = part->is_debug,
                     .symbols = symbols,
                     .n_symbols = n,
                     .extras = extras };

    other[7] = 1;
    if (part->build_id)
        extras[plan.n_extras++] = (ElfExtra){ ".note.gnu.build-id", SHT_NOTE, SHF_ALLOC, 0x400,
                                              part->build_id,       NOTE_LEN };
    if (part->has_debug_frame)
        extras[plan.n_extras++] =
            (ElfExtra){ ".debug_frame", SHT_PROGBITS, 0, 0, debug_frame, sizeof(debug_frame) - 1 };
    if (more)
        extras[plan.n_extras++] = *more;
    if (part->has_eh) {
        plan.eh_frame = eh_frame;
        plan.eh_frame_len = sizeof(eh_frame) - 1;
        plan.eh_frame_gva = FRAMES;
    }
    return symbol_elf_new(&plan);
}

static void
put_file(const Fixture *fixture, const char *at, const GByteArray *file)
{
    g_autofree char *path = g_build_filename(fixture->folder, at, NULL);
    g_autofree char *folder = g_path_get_dirname(path);

    g_assert_cmpint(g_mkdir_with_parents(folder, 0700), ==, 0);
    g_assert_true(g_file_set_contents(path, (const char *)file->data, (gssize)file->len, NULL));
}

static void
put_image(const Fixture *fixture, const Part *part, const ElfExtra *more)
{
    g_autoptr(GByteArray) file = make_elf(part, NULL, 0, more);

    put_file(fixture, "app", file);
}

/* @at: path below the folder of the test */
static void
put_debug(const Fixture *fixture, const char *at, const Part *part)
{
    g_autoptr(GByteArray) file = make_elf(part, all_symbols, G_N_ELEMENTS(all_symbols), NULL);

    put_file(fixture, at, file);
}

static void
assert_name(const Fixture *fixture, uint64_t pc, const char *name)
{
    g_assert_cmpstr(uprof_name_text(uprof_sym_find(fixture->sym, pc, false).name), ==, name);
}

/* clang-format off */
static const struct {
    const char *name;
    const char *at; /* path below the folder; %s: the folder itself */
    Part image, debug;
    const char *hint; /* why it is not used; NULL: it is used */
} locations[] = {
    { "sibling",            "app.dbg", { 0 }, { 0 }, NULL },
    { "sibling-other",      "app.dbg", { 0 }, { .is_other = true }, "'*/app.dbg' is not its debug file: its code differs" },
    { "sibling-no-code",    "app.dbg", { 0 }, { .is_debug = true }, NULL },
    { "sibling-machine",    "app.dbg", { 0 }, { .machine = EM_AARCH64 }, "*: it is of another architecture" },
    { "sibling-same-id",    "app.dbg", { .build_id = NOTE("1") }, { .build_id = NOTE("1"), .is_other = true }, NULL },
    { "sibling-other-id",   "app.dbg", { .build_id = NOTE("1") }, { .build_id = NOTE("2") }, "*: its build-id differs" },
    { "sibling-without-id", "app.dbg", { .build_id = NOTE("1") }, { 0 }, NULL },
    { "by-id",              ".build-id/ab/cdef31.debug", { .build_id = NOTE("1") }, { .build_id = NOTE("1"), .is_debug = true }, NULL },
    { "by-id-other",        ".build-id/ab/cdef31.debug", { .build_id = NOTE("1") }, { .build_id = NOTE("3") }, "*cdef31.debug' is not *: its build-id differs" },
    { "nowhere",            "elsewhere.dbg", { .build_id = NOTE("1") }, { .build_id = NOTE("1") }, "" },
};
/* clang-format on */

static void
assert_used(const Fixture *fixture, const char *at, const char *hint)
{
    g_autoptr(GError) error = NULL;
    UprofSymSource source;

    g_assert_true(uprof_sym_add_file(fixture->sym, fixture->image, false, &error));
    g_assert_no_error(error);
    uprof_sym_source(fixture->sym, 0, &source);
    g_assert_true(g_str_has_suffix(source.path, "/app"));
    assert_name(fixture, CODE + 0x50, hint ? "[app+0x50]" : "work");
    if (hint) {
        g_assert_null(source.debug_path);
        g_assert_true(g_pattern_match_simple(hint, source.hint ? source.hint : ""));
        /* if symbols are required, the message has the complete hint */
        g_assert_false(uprof_sym_add_file(fixture->sym, fixture->image, true, &error));
        g_assert_true(strstr(error->message, source.hint ? source.hint : "app.dbg"));
        return;
    }
    g_assert_true(g_str_has_suffix(source.debug_path, at));
    g_assert_null(source.hint);
    g_assert_cmpuint(source.n_symbols, ==, G_N_ELEMENTS(all_symbols));
}

static void
test_location(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_auto(Fixture) fixture;

    init_fixture(&fixture);
    put_image(&fixture, &locations[i].image, NULL);
    put_debug(&fixture, locations[i].at, &locations[i].debug);
    assert_used(&fixture, locations[i].at, locations[i].hint);
}

/* clang-format off */
static const struct {
    const char *name;
    const char *link; /* 11 bytes */
    const char *at;   /* path below the folder; NULL: the image's folder below the debug folder */
    bool is_right;    /* the checksum is right */
    Part image, debug;
    const char *hint;
} links[] = {
    { "beside",      "other.debug", "other.debug",        true,  { 0 }, { .is_debug = true }, NULL },
    { "below",       "other.debug", ".debug/other.debug", true,  { 0 }, { .is_debug = true }, NULL },
    { "in-folder",   "other.debug", NULL,                 true,  { 0 }, { .is_debug = true }, NULL },
    { "crc",         "other.debug", "other.debug",        false, { 0 }, { 0 }, "*/other.debug' is not *: its checksum differs" },
    { "crc-same-id", "other.debug", "other.debug",        false, { .build_id = NOTE("1") }, { .build_id = NOTE("1") }, NULL },
    { "crc-is-enough", "other.debug", "other.debug",       true,  { 0 }, { .is_other = true }, NULL },
    { "outside-folder",   "../up.debug", "../up.debug",        true,  { 0 }, { 0 }, "" },
    { "the-image-itself",    "app\0\0\0\0\0\0\0\0",       "elsewhere",  true,  { 0 }, { 0 }, "" },
};
/* clang-format on */

static void
test_link(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_auto(Fixture) fixture;
    uint8_t link[LINK_LEN] = { 0 };
    const ElfExtra section = { ".gnu_debuglink", SHT_PROGBITS, 0, 0, link, sizeof(link) };

    init_fixture(&fixture);
    g_free(fixture.image);
    g_autofree char *old_folder = fixture.folder;
    /* one folder deeper, so that ".." is still in the folder of the test */
    fixture.folder = g_build_filename(old_folder, "sub", NULL);
    fixture.image = g_build_filename(fixture.folder, "app", NULL);
    g_autofree char *in_folder = g_strdup_printf("..%s/%s", fixture.folder, links[i].link);
    const char *at = links[i].at ? links[i].at : in_folder;
    g_autoptr(GByteArray) debug =
        make_elf(&links[i].debug, all_symbols, G_N_ELEMENTS(all_symbols), NULL);
    put_file(&fixture, at, debug);
    const uint32_t crc =
        uprof_elf_debug_link_crc((UprofSlice){ debug->data, debug->len }) ^ !links[i].is_right;
    const uint32_t raw = GUINT32_TO_LE(crc);
    memcpy(link, links[i].link, 11);
    memcpy(link + LINK_CRC_AT, &raw, sizeof(raw));
    put_image(&fixture, &links[i].image, &section);
    assert_used(&fixture, links[i].link, links[i].hint);
    remove_all(old_folder);
}

/* Opens only files of the folder "hidden", and follows no links. */
static int
open_hidden(const char *path, void *data, GError **error)
{
    const Fixture *fixture = data;
    g_autofree char *base = g_path_get_basename(path);
    g_autofree char *hidden = g_build_filename(fixture->folder, "hidden", base, NULL);
    const int fd = open(hidden, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

    if (fd < 0)
        g_set_error(error, UPROF_ERROR,
                    errno == ENOENT ? UPROF_ERROR_NO_FILE : UPROF_ERROR_BAD_DATA,
                    "symbols '%s': refused", path);
    return fd;
}

/* Files with paths from others are read through the opener, never by their paths. */
static void
test_opener(void)
{
    const Part image = { 0 }, debug = { .is_debug = true }, other = { .is_other = true };
    g_autoptr(GByteArray) file = make_elf(&image, NULL, 0, NULL);
    g_auto(Fixture) fixture;
    const UprofSymOpener opener = { open_hidden, &fixture };
    g_autoptr(GError) error = NULL;
    UprofSymSource source;

    init_fixture(&fixture);
    put_image(&fixture, &other, NULL);
    put_debug(&fixture, "app.dbg", &image);
    g_assert_false(uprof_sym_add_file_by(fixture.sym, fixture.image, &opener, false, &error));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_NO_FILE);
    g_assert_true(g_str_has_suffix(error->message, "/app': refused"));
    g_clear_error(&error);

    /* the debug file is not opened by its path either */
    put_file(&fixture, "hidden/app", file);
    g_assert_true(uprof_sym_add_file_by(fixture.sym, fixture.image, &opener, false, &error));
    g_assert_no_error(error);
    uprof_sym_source(fixture.sym, 0, &source);
    g_assert_cmpstr(source.path, ==, fixture.image);
    g_assert_null(source.debug_path);
    assert_name(&fixture, CODE + 0x50, "[app+0x50]");

    put_debug(&fixture, "hidden/app.dbg", &debug);
    g_autoptr(UprofSym) sym = uprof_sym_new(uprof_arch_find("x86_64"), fixture.names);
    g_assert_true(uprof_sym_add_file_by(sym, fixture.image, &opener, true, &error));
    g_assert_no_error(error);
    g_assert_cmpstr(uprof_name_text(uprof_sym_find(sym, CODE + 0x50, false).name), ==, "work");
}

/* There is no hint for a missing debug file, but one for a debug file that the opener refuses. */
static void
test_opener_without_debug(void)
{
    const Part image = { .build_id = NOTE("1") };
    g_autoptr(GByteArray) file = make_elf(&image, NULL, 0, NULL);
    g_auto(Fixture) fixture;
    const UprofSymOpener opener = { open_hidden, &fixture };
    g_autoptr(GError) error = NULL;
    UprofSymSource source;

    init_fixture(&fixture);
    put_file(&fixture, "hidden/app", file);
    g_assert_true(uprof_sym_add_file_by(fixture.sym, fixture.image, &opener, false, &error));
    uprof_sym_source(fixture.sym, 0, &source);
    g_assert_null(source.hint);
    g_assert_false(uprof_sym_add_file_by(fixture.sym, fixture.image, &opener, true, &error));
    g_assert_true(g_str_has_suffix(error->message, "/app.dbg'"));
    g_clear_error(&error);

    g_autofree char *link = g_build_filename(fixture.folder, "hidden", "app.dbg", NULL);
    g_assert_cmpint(symlink("app", link), ==, 0);
    g_assert_false(uprof_sym_add_file_by(fixture.sym, fixture.image, &opener, true, &error));
    g_assert_true(g_str_has_suffix(error->message, "/app.dbg': refused"));
}

/* Unwind rules of both files are used; where both have one, .eh_frame wins. */
static void
test_cfi(void)
{
    g_auto(Fixture) fixture;
    const Part image = { .has_eh = true }, debug = { .has_debug_frame = true };
    const UprofCfi *cfi;

    init_fixture(&fixture);
    put_image(&fixture, &image, NULL);
    put_debug(&fixture, "app.dbg", &debug);
    g_assert_true(uprof_sym_add_file(fixture.sym, fixture.image, true, NULL));
    const UprofCfiRule *rule = uprof_sym_rule(fixture.sym, CODE + 0x10, &cfi);
    g_assert_nonnull(rule);
    g_assert_cmpint(rule->cfa_value, ==, 8);
    rule = uprof_sym_rule(fixture.sym, CODE + 0x50, &cfi);
    g_assert_nonnull(rule);
    g_assert_cmpint(rule->cfa_value, ==, 24);
    g_assert_null(uprof_sym_rule(fixture.sym, CODE + 0x90, &cfi));

    const uint64_t base = UINT64_C(0xffffffff9a000000);
    g_assert_true(uprof_sym_add_file_at(fixture.sym, fixture.image, &base, true, NULL));
    rule = uprof_sym_rule(fixture.sym, base + 0x50, &cfi);
    g_assert_nonnull(rule);
    g_assert_cmpint(rule->cfa_value, ==, 24);
    g_assert_null(uprof_sym_rule(fixture.sym, base + 0x90, &cfi));
}

static GByteArray *
pack_xz(const void *data, size_t len)
{
    GByteArray *packed = g_byte_array_new();
    size_t n = 0;

    g_byte_array_set_size(packed, (guint)lzma_stream_buffer_bound(len));
    g_assert_cmpint(lzma_easy_buffer_encode(1, LZMA_CHECK_CRC32, NULL, data, len, packed->data, &n,
                                            packed->len),
                    ==, LZMA_OK);
    g_byte_array_set_size(packed, (guint)n);
    return packed;
}

static void
add_with_debug_data(const Fixture *fixture, const GByteArray *packed)
{
    const ElfExtra section = { ".gnu_debugdata", SHT_PROGBITS, 0, 0, packed->data, packed->len };
    const Part part = { 0 };
    g_autoptr(GByteArray) file = make_elf(&part, own_symbols, 1, &section);
    g_autoptr(GError) error = NULL;

    put_file(fixture, "app", file);
    g_assert_true(uprof_sym_add_file(fixture->sym, fixture->image, true, &error));
    g_assert_no_error(error);
    assert_name(fixture, CODE + 0x90, "exported");
}

static void
test_debug_data(void)
{
    const Part part = { .is_debug = true };
    g_autoptr(GByteArray) inner = make_elf(&part, all_symbols, G_N_ELEMENTS(all_symbols), NULL);
    g_autoptr(GByteArray) packed = pack_xz(inner->data, inner->len);
    g_auto(Fixture) fixture;

    init_fixture(&fixture);
    add_with_debug_data(&fixture, packed);
    assert_name(&fixture, CODE + 0x50, "work");
}

/* Debug data that is damaged, foreign, too large or empty changes nothing. */
static void
test_bad_debug_data(void)
{
    const Part part = { .is_debug = true, .machine = EM_AARCH64 };
    g_autoptr(GByteArray) arm = make_elf(&part, all_symbols, G_N_ELEMENTS(all_symbols), NULL);
    g_autofree uint8_t *zeros = g_malloc0(130 << 20);
    GByteArray *const packed[] = { pack_xz("no ELF file", 11), pack_xz(arm->data, arm->len),
                                   pack_xz(zeros, 130 << 20), g_byte_array_new() };

    for (size_t i = 0; i < G_N_ELEMENTS(packed); i++) {
        g_auto(Fixture) fixture;
        init_fixture(&fixture);
        add_with_debug_data(&fixture, packed[i]);
        assert_name(&fixture, CODE + 0x50, "[app+0x50]");
        g_byte_array_unref(packed[i]);
    }
}

/* A debug file cut at any byte is refused with a hint. */
static void
test_damage(void)
{
    const Part image = { 0 }, debug = { .has_debug_frame = true };
    g_autoptr(GByteArray) file = make_elf(&debug, all_symbols, G_N_ELEMENTS(all_symbols), NULL);
    g_auto(Fixture) fixture;

    init_fixture(&fixture);
    put_image(&fixture, &image, NULL);
    for (guint len = 0; len < file->len; len += 97) {
        g_autoptr(GByteArray) cut = g_byte_array_new();
        g_autoptr(GError) error = NULL;
        g_autoptr(UprofSym) sym = uprof_sym_new(uprof_arch_find("x86_64"), fixture.names);
        UprofSymSource source;
        g_byte_array_append(cut, file->data, len);
        put_file(&fixture, "app.dbg", cut);
        g_assert_true(uprof_sym_add_file(sym, fixture.image, false, &error));
        uprof_sym_source(sym, 0, &source);
        g_assert_nonnull(source.hint);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = (uint8_t)(i * 31 + (i >> 8));
    for (size_t i = 0; i < G_N_ELEMENTS(locations); i++) {
        g_autofree char *path = g_strdup_printf("/debug-file/location/%s", locations[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_location);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(links); i++) {
        g_autofree char *path = g_strdup_printf("/debug-file/link/%s", links[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_link);
    }
    g_test_add_func("/debug-file/opener", test_opener);
    g_test_add_func("/debug-file/opener-without-debug", test_opener_without_debug);
    g_test_add_func("/debug-file/cfi", test_cfi);
    g_test_add_func("/debug-file/debug-data", test_debug_data);
    g_test_add_func("/debug-file/bad-debug-data", test_bad_debug_data);
    g_test_add_func("/debug-file/damage", test_damage);
    return g_test_run();
}
