/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The search for the debug file of an image, and for the file of a module. A hostile ELF file
 * controls the search by .gnu_debuglink, .gnu_debugaltlink and build-ids. Bit N modulo 8 of the
 * first byte says whether the Nth requested file exists; bit 0 also gives all files the content of
 * the image. The next two bytes are the length of the image, which follows. The bytes after it are
 * the content of all other files, and the name and path of a module.
 */
#include "fuzz.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "memory-file.h"
#include "uprof/regular-file.h"
#include "uprof/sym.h"

enum {
    HEADER = 3,
    N_BITS = 8,
    ASKS_MAX = 256, /* for one image and two modules */
    NAME_BYTES_MAX = 512,
    ADDRESSES = 16,
    STEP = 0x101,
};

/* Memory: two images, their debug files, copies of their parts, and the caches of UprofSym. */
FuzzBounds
fuzz_bounds(void)
{
    return (FuzzBounds){
        .base_ms = 200,
        .us_per_kib = 50 * 1000,
        .base_kib = 8 * 1024,
        .bytes_per_byte = 4096,
        .n_mutations = 150,
    };
}

/* The files of open_stub(), which replaces the file system. */
static struct {
    UprofSlice image, other;
    uint8_t exists;
    unsigned n_asked;
} files;

/* ".." is allowed as the last part of a path, because such a path is a folder and is not opened. */
static void
check_request(const UprofFileRequest *request)
{
    static const char *const folders[] = { "/in/", "/debug/", "/usr/lib/.build-id/" };
    bool is_known = strcmp(request->path, "/in/app") == 0;

    g_assert(request->kind != UPROF_FILE_INPUT && request->path[0] != '\0');
    if (request->kind == UPROF_FILE_BELOW) {
        g_assert(strcmp(request->folder, "/root") == 0);
        g_assert(request->links == UPROF_FILE_AS_IN_ROOT);
        return;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(folders); i++)
        is_known = is_known || g_str_has_prefix(request->path, folders[i]);
    if (!is_known || strstr(request->path, "/../"))
        g_error("a file '%s' was asked for", request->path);
}

static int
open_stub(const UprofFileRequest *request, void *data)
{
    check_request(request);
    g_assert(files.n_asked++ < ASKS_MAX);
    if (request->kind == UPROF_FILE_REGULAR && strcmp(request->path, "/in/app") == 0)
        return memory_file_open(files.image);
    if (files.exists >> files.n_asked % N_BITS & 1)
        return memory_file_open(files.exists & 1 ? files.image : files.other);
    errno = ENOENT;
    return -1;
}

static void
check_source(UprofSym *sym)
{
    UprofSymSource source;

    uprof_sym_source(sym, 0, &source);
    g_assert(source.path && g_utf8_validate(source.label, -1, NULL));
    g_assert(!source.hint || g_utf8_validate(source.hint, -1, NULL));
    for (unsigned i = 0; i < ADDRESSES; i++)
        g_assert(uprof_sym_find(sym, source.base + (uint64_t)i * STEP, false).name);
}

/* @build_id: (nullable): in hex */
static void
check_module(UprofSym *sym, const char *name, const char *path, const char *build_id)
{
    const unsigned number = uprof_sym_add_module(sym, name, path, build_id);
    UprofSymModule module;

    g_assert(number > 0);
    for (unsigned i = 0; i < ADDRESSES; i++)
        g_assert(
            uprof_sym_find(sym, uprof_sym_module_address(number, (uint64_t)i * STEP), false).name);
    g_assert(uprof_sym_module(sym, number, &module));
    g_assert(module.label[0] == '[' && g_str_has_suffix(module.label, "]"));
    g_assert(g_utf8_validate(module.label, -1, NULL));
}

void
fuzz_input(const uint8_t *data, size_t size)
{
    static const char *const folders[] = { "/debug", NULL }, *const sysroots[] = { "/root", NULL };
    const UprofSymConfig config = { .debug_folders = folders, .sysroots = sysroots };
    g_autoptr(GError) error = NULL;
    UprofSymSource source = { 0 };

    if (size < HEADER)
        return;
    const size_t image_len = MIN((size_t)(data[1] | data[2] << 8), size - HEADER);
    files.image = (UprofSlice){ data + HEADER, image_len };
    files.other = (UprofSlice){ data + HEADER + image_len, size - HEADER - image_len };
    files.exists = data[0];
    files.n_asked = 0;
    uprof_regular_file_delegate(open_stub, NULL);
    g_autoptr(UprofNames) names = uprof_names_new();
    g_autoptr(UprofSym) sym = uprof_sym_new(uprof_arch_find("x86_64"), names);
    uprof_sym_configure(sym, &config);
    const bool ok = uprof_sym_add_file(sym, "/in/app", false, &error);
    check_answer(ok, error);
    if (ok) {
        check_source(sym);
        uprof_sym_source(sym, 0, &source);
    }
    const size_t name_len = MIN(files.other.len, (size_t)NAME_BYTES_MAX);
    g_autofree char *name = g_strndup(files.other.data, name_len);
    g_autofree char *path = g_strconcat("/", name, NULL);
    g_autofree char *build_id = g_strdup(source.build_id);
    check_module(sym, name, path, build_id);
    check_module(sym, "libc.so.6", NULL, "0123456789abcdef");
}
