/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An image and its debug file: the check that both are of one build, and their names, tables
 * and functions. The first two bytes are the length of the image, which follows. The target writes
 * any further bytes beside the image as "app.dbg" and as "app.debug", which a debug link may name.
 */
#include "fuzz.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <unistd.h>

#include "uprof/sym.h"

enum { ADDRESSES = 64, STEP = 0x101 };

/* Each input is written to files, and makes its own UprofSym. */
FuzzBounds
fuzz_bounds(void)
{
    return (FuzzBounds){
        .base_ms = 100,
        .us_per_kib = 5 * 1000,
        .base_kib = 4 * 1024,
        .bytes_per_byte = 256,
        .n_mutations = 100,
    };
}

/* Returns: a folder, in memory if possible, because the target writes thousands of files */
static char *
make_folder(void)
{
    char *folder = g_strdup("/dev/shm/fuzz-image-XXXXXX");

    if (g_mkdtemp(folder))
        return folder;
    g_free(folder);
    return g_dir_make_tmp("fuzz-image-XXXXXX", NULL);
}

static void
write_file(const char *folder, const char *name, const uint8_t *data, size_t len)
{
    g_autofree char *path = g_build_filename(folder, name, NULL);
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    g_assert_cmpint(fd, >=, 0);
    g_assert_cmpint(write(fd, data, len), ==, (ssize_t)len);
    close(fd);
}

static void
check_address(UprofSym *sym, uint64_t pc)
{
    const UprofSymAnswer answer = uprof_sym_find(sym, pc, false);
    const UprofCfi *cfi = NULL;
    uint64_t start, len;
    bool is_entry;

    g_assert(answer.name);
    if (answer.kind == UPROF_SYM_NAMED)
        g_assert(pc - answer.start < answer.size);
    if (answer.kind != UPROF_SYM_OUTSIDE)
        g_assert(uprof_sym_is_code(sym, pc));
    if (uprof_sym_function(sym, pc, &start, &len, &is_entry))
        g_assert(pc - start < len);
    g_assert(!uprof_sym_rule(sym, pc, &cfi) || cfi);
}

void
fuzz_input(const uint8_t *data, size_t size)
{
    static const char *const files[] = { "app", "app.dbg", "app.debug" };
    g_autoptr(GError) error = NULL;

    if (size < 2)
        return;
    g_autofree char *folder = make_folder();
    const size_t image_len = MIN((size_t)(data[0] | data[1] << 8), size - 2);
    const size_t debug_len = size - 2 - image_len;
    write_file(folder, files[0], data + 2, image_len);
    for (unsigned i = 1; debug_len > 0 && i < G_N_ELEMENTS(files); i++)
        write_file(folder, files[i], data + 2 + image_len, debug_len);

    const char *const folders[] = { folder, NULL };
    g_autofree char *path = g_build_filename(folder, files[0], NULL);
    g_autoptr(UprofNames) names = uprof_names_new();
    g_autoptr(UprofSym) sym = uprof_sym_new(uprof_arch_find("x86_64"), names);
    uprof_sym_configure(sym, &(UprofSymConfig){ .debug_folders = folders });
    const bool ok = uprof_sym_add_file(sym, path, size % 2, &error);
    check_answer(ok, error);
    if (ok) {
        UprofSymSource source;

        uprof_sym_source(sym, 0, &source);
        for (unsigned i = 0; i < ADDRESSES; i++)
            check_address(sym, source.base + (uint64_t)i * STEP);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(files); i++) {
        g_autofree char *used = g_build_filename(folder, files[i], NULL);
        g_unlink(used);
    }
    g_rmdir(folder);
}
