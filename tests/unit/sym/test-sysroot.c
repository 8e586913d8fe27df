/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Modules of a guest are found in a sysroot, a folder with the guest's files. The tests make
 * all files in a folder of their own: some in the sysroot "root", and some beside it, where
 * they must not be found.
 */
#include <dlfcn.h>
#include <elf.h>
#include <inttypes.h>
#include <gnu/libc-version.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbol-elf.h"
#include "uprof/build-id.h"
#include "uprof/elf-head.h"
#include "uprof/sym.h"

enum { FIRST = 0x1000, CODE = 0x1040, CODE_LEN = 0x200 };

/* A note "GNU" with 4 bytes of build-id; @last is the last one */
#define NOTE(last) "\4\0\0\0\4\0\0\0\3\0\0\0GNU\0\xab\xcd\xef" last
#define BUILD_ID "abcdef01"
enum { NOTE_LEN = 20 };

/* SAME: an image with BUILD_ID; OTHER: of another build; DEBUG: SAME without symbols */
typedef enum { NOTHING, SAME, OTHER, DEBUG, LINK, PIPE, FOLDER, GARBAGE } FileKind;

typedef struct {
    const char *at; /* path in the test's folder */
    FileKind kind;
    const char *to; /* target of a LINK */
} FileEntry;

/* clang-format off */
static const struct {
    const char *name;
    FileEntry files[4];
    const char *path; /* of the module, in the guest */
    const char *build_id;
    const char *found; /* name of the function; NULL: only an address is shown */
} cases[] = {
    { "by-path", { { "root/usr/bin/app", SAME, NULL } }, "/usr/bin/app", BUILD_ID, "work" },
    { "other-build", { { "root/usr/bin/app", OTHER, NULL } }, "/usr/bin/app", BUILD_ID, NULL },
    { "no-build-id", { { "root/usr/bin/app", SAME, NULL } }, "/usr/bin/app", NULL, NULL },
    { "another-path", { { "root/usr/bin/app", SAME, NULL } }, "/usr/sbin/app", BUILD_ID, NULL },
    { "no-path", { { "root/usr/bin/app", SAME, NULL } }, NULL, BUILD_ID, NULL },
    { "link-inside", { { "root/usr/lib/app", SAME, NULL }, { "root/lib", LINK, "usr/lib" } }, "/lib/app", BUILD_ID, "work" },
    { "link-from-root", { { "root/usr/lib/app", SAME, NULL }, { "root/lib", LINK, "/usr/lib" } }, "/lib/app", BUILD_ID, "work" },
    { "by-id", { { "root/usr/lib/.build-id/ab/cdef01", SAME, NULL } }, "/x", BUILD_ID, "work" },
    { "debug-by-id", { { "root/usr/lib/debug/.build-id/ab/cdef01.debug", SAME, NULL } }, NULL, BUILD_ID, "work" },
    { "with-debug", { { "root/app", DEBUG, NULL }, { "root/usr/lib/debug/.build-id/ab/cdef01.debug", SAME, NULL } },
      "/app", BUILD_ID, "work" },
    /* files that must not be found */
    { "link-out", { { "app", SAME, NULL }, { "root/app", LINK, "../app" } }, "/app", BUILD_ID, NULL },
    { "folder-out", { { "bin/app", SAME, NULL }, { "root/bin", LINK, "../bin" } }, "/bin/app", BUILD_ID, NULL },
    { "id-out", { { "app", SAME, NULL }, { "root/usr/lib/.build-id/ab/cdef01", LINK, "../../../../../app" } },
      "/x", BUILD_ID, NULL },
    { "debug-out", { { "app", SAME, NULL }, { "root/app", DEBUG, NULL },
      { "root/usr/lib/debug/.build-id/ab/cdef01.debug", LINK, "../../../../../../app" } }, "/app", BUILD_ID, NULL },
    { "dots", { { "app", SAME, NULL } }, "/../app", BUILD_ID, NULL },
    { "dots-in-path", { { "app", SAME, NULL }, { "root/usr", FOLDER, NULL } }, "/usr/../../app", BUILD_ID, NULL },
    { "root-is-a-prefix", { { "rooted/app", SAME, NULL } }, "ed/app", BUILD_ID, NULL },
    { "pipe", { { "root/app", PIPE, NULL } }, "/app", BUILD_ID, NULL },
    { "folder", { { "root/app", FOLDER, NULL } }, "/app", BUILD_ID, NULL },
    { "garbage", { { "root/app", GARBAGE, NULL } }, "/app", BUILD_ID, NULL },
    { "circle", { { "root/app", LINK, "app" } }, "/app", BUILD_ID, NULL },
    { "short-build-id", { { "root/app", SAME, NULL } }, "/app", "ab", NULL },
};
/* clang-format on */

static const ElfSymbol symbols[] = { { "work", CODE, 0x40, true } };

/* The first page has the program header by which a kernel maps the file. */
static GByteArray *
make_elf(const char *note, bool has_symbols)
{
    static const uint8_t code[CODE_LEN];
    const ElfExtra id = { ".note.gnu.build-id", SHT_NOTE, SHF_ALLOC, 0x400, note, NOTE_LEN };
    const ElfPlan plan = { .text_gva = CODE,
                           .text = code,
                           .text_len = CODE_LEN,
                           .entry = CODE,
                           .symbols = symbols,
                           .n_symbols = has_symbols ? G_N_ELEMENTS(symbols) : 0,
                           .extras = &id,
                           .n_extras = 1 };
    GByteArray *file = symbol_elf_new(&plan);

    symbol_elf_map(file, FIRST, note, NOTE_LEN);
    return file;
}

static void
put_file(const char *folder, const FileEntry *entry)
{
    g_autofree char *path = g_build_filename(folder, entry->at, NULL);
    g_autofree char *parent = g_path_get_dirname(path);

    g_assert_cmpint(g_mkdir_with_parents(parent, 0700), ==, 0);
    if (entry->kind == LINK) {
        g_assert_cmpint(symlink(entry->to, path), ==, 0);
    } else if (entry->kind == PIPE) {
        g_assert_cmpint(mkfifo(path, 0600), ==, 0);
    } else if (entry->kind == FOLDER) {
        g_assert_cmpint(mkdir(path, 0700), ==, 0);
    } else if (entry->kind == GARBAGE) {
        g_assert_true(g_file_set_contents(path,
                                          "\x7f"
                                          "ELF",
                                          4, NULL));
    } else {
        g_autoptr(GByteArray) file =
            make_elf(entry->kind == OTHER ? NOTE("\2") : NOTE("\1"), entry->kind != DEBUG);
        g_assert_true(g_file_set_contents(path, (const char *)file->data, (gssize)file->len, NULL));
    }
}

static void
remove_all(const char *folder)
{
    const char *const words[] = { "rm", "-rf", "--", folder, NULL };

    g_assert_true(g_spawn_sync(NULL, (char **)words, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL,
                               NULL, NULL, NULL));
}

static void
test_case(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_autofree char *folder = g_dir_make_tmp("uprof-test-XXXXXX", NULL);
    g_autofree char *root = g_build_filename(folder, "root", NULL);
    g_autoptr(UprofNames) names = uprof_names_new();
    g_autoptr(UprofSym) sym = uprof_sym_new(uprof_arch_find("x86_64"), names);
    const char *const none[] = { "/nonexistent", NULL };
    const char *const sysroots[] = { "/nonexistent", root, NULL };
    const UprofSymConfig config = { .debug_folders = none, .sysroots = sysroots };

    g_assert_cmpint(g_mkdir_with_parents(root, 0700), ==, 0);
    for (size_t n = 0; n < G_N_ELEMENTS(cases[i].files) && cases[i].files[n].kind; n++)
        put_file(folder, &cases[i].files[n]);
    uprof_sym_configure(sym, &config);
    const unsigned number = uprof_sym_add_module(sym, "app", cases[i].path, cases[i].build_id);
    g_assert_cmpuint(number, ==, 1);
    const uint64_t address = uprof_sym_module_address(number, CODE - FIRST + 4);
    g_assert_cmpstr(uprof_name_text(uprof_sym_find(sym, address, false).name), ==,
                    cases[i].found ? cases[i].found : "[app_+0x44]");
    remove_all(folder);
}

/* Returns: (transfer full): the build-id of a file, in hex */
static char *
read_build_id(const char *path)
{
    g_autofree char *bytes = NULL;
    gsize len;
    UprofElfHead head;

    g_assert_true(g_file_get_contents(path, &bytes, &len, NULL));
    g_assert_true(uprof_elf_head_parse((UprofSlice){ bytes, MIN(len, (gsize)4096) }, &head));
    return uprof_build_id_hex((UprofSlice){ head.build_id, head.build_id_len });
}

/* Returns: the name of an address in a module; without debug folders, which may have the file, too
 */
static const char *
name_address(UprofNames *names, const char *path, const char *build_id, uint64_t at)
{
    g_autoptr(UprofSym) sym = uprof_sym_new(uprof_arch_find("x86_64"), names);
    const char *const none[] = { "/nonexistent", NULL };

    uprof_sym_configure(sym, &(UprofSymConfig){ .debug_folders = none });
    const unsigned number = uprof_sym_add_module(sym, "libc.so.6", path, build_id);
    return uprof_name_text(uprof_sym_find(sym, uprof_sym_module_address(number, at), false).name);
}

/* A guest that runs the host's distribution has files of this host; the test's own C library is
 * one. */
static void
test_host(void)
{
    g_autoptr(UprofNames) names = uprof_names_new();
    Dl_info info;

    g_assert_cmpint(dladdr((const void *)(uintptr_t)gnu_get_libc_version, &info), !=, 0);
    g_autofree char *id = read_build_id(info.dli_fname);
    g_autofree char *dots = g_strconcat("/usr/..", info.dli_fname, NULL);
    const uint64_t at = (uintptr_t)info.dli_saddr - (uintptr_t)info.dli_fbase;
    g_autofree char *unnamed = g_strdup_printf("[libc.so.6+0x%" PRIx64 "]", at);
    g_assert_cmpstr(name_address(names, info.dli_fname, id, at), ==, "gnu_get_libc_version");
    g_assert_cmpstr(name_address(names, dots, id, at), ==, unnamed);
    g_assert_cmpstr(name_address(names, "/nowhere/libc.so.6", id, at), ==, unnamed);
    g_assert_cmpstr(name_address(names, info.dli_fname, BUILD_ID, at), ==, unnamed);
}

/* A file that does not fit into the memory for symbols is left out, and does not use it up. */
static void
test_no_room(void)
{
    enum { TRIES = 40 };
    g_autofree char *folder = g_dir_make_tmp("uprof-test-XXXXXX", NULL);
    g_autofree char *root = g_build_filename(folder, "root", NULL);
    const char *const sysroots[] = { root, NULL };
    const FileEntry entry = { "root/app", SAME, NULL };
    g_autoptr(UprofNames) names = uprof_names_new();
    g_autoptr(UprofSym) sym = uprof_sym_new(uprof_arch_find("x86_64"), names);
    unsigned number = 0;

    g_assert_cmpint(g_mkdir_with_parents(root, 0700), ==, 0);
    put_file(folder, &entry);
    uprof_sym_configure(sym, &(UprofSymConfig){ .sysroots = sysroots, .bytes_max = 1 });
    for (unsigned i = 0; i < TRIES; i++)
        number = uprof_sym_add_module(sym, "app", "/app", BUILD_ID);
    uint64_t address = uprof_sym_module_address(number, CODE - FIRST);
    g_assert_cmpstr(uprof_name_text(uprof_sym_find(sym, address, false).name), ==, "[app_+0x40]");
    uprof_sym_configure(sym, &(UprofSymConfig){ .sysroots = sysroots, .bytes_max = 1 << 20 });
    number = uprof_sym_add_module(sym, "app", "/app", BUILD_ID);
    address = uprof_sym_module_address(number, CODE - FIRST);
    g_assert_cmpstr(uprof_name_text(uprof_sym_find(sym, address, false).name), ==, "work");
    remove_all(folder);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/sysroot/%s", cases[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_case);
    }
    g_test_add_func("/sysroot/host", test_host);
    g_test_add_func("/sysroot/no-room", test_no_room);
    return g_test_run();
}
