/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Sites of a program in Go: its own tables name them, if the program is a file, and if guest memory
 * has it.
 */
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "build-go.h"
#include "uprof/arch.h"
#include "uprof/sym.h"

enum { INLINED_AT = BUILT_GO_TEXT_AT + 26 }; /* in main.inl2 */

static const char *const plain[] = { "main.outer", "main.inl1_[i]", "main.inl2_[i]" };
static const char *const lined[] = { "main.outer (a.go:100)", "main.inl1 (a.go:7)_[i]",
                                     "main.inl2 (b.go:20)_[i]" };

static void
check_site(UprofSym *sym, const UprofName *site, const char *const *wanted)
{
    const UprofName *const *frames;

    uprof_sym_resolve(sym, UPROF_SYM_RESOLVE_MS);
    g_assert_cmpuint(uprof_sym_expand(sym, site, &frames), ==, 3);
    for (unsigned i = 0; i < 3; i++)
        g_assert_cmpstr(uprof_name_text(frames[i]), ==, wanted[i]);
}

static void
test_file(void)
{
    g_autoptr(GByteArray) file = build_go_file(&built_go_usual);
    g_autofree char *path = NULL;
    const int fd = g_file_open_tmp("go-sites-XXXXXX", &path, NULL);

    g_assert_cmpint(write(fd, file->data, file->len), ==, file->len);
    close(fd);
    for (unsigned with_lines = 0; with_lines < 2; with_lines++) {
        g_autoptr(UprofNames) names = uprof_names_new();
        g_autoptr(UprofSym) sym = uprof_sym_new(uprof_arch_find("x86_64"), names);
        const UprofSymConfig config = { .lines = with_lines };
        g_autoptr(GError) error = NULL;

        uprof_sym_configure(sym, &config);
        uprof_sym_add_file(sym, path, true, &error);
        g_assert_no_error(error);
        const UprofSymAnswer answer = uprof_sym_find(sym, BUILT_GO_BASE + INLINED_AT, false);
        g_assert_cmpstr(uprof_name_text(answer.name), ==, "main.outer");
        g_assert_nonnull(answer.site);
        check_site(sym, answer.site, with_lines ? lined : plain);
    }
    g_unlink(path);
}

static void
test_annotated_lines(void)
{
    g_autoptr(GByteArray) file = build_go_file(&built_go_usual);
    g_autoptr(UprofNames) names = uprof_names_new();
    g_autoptr(UprofSym) sym = uprof_sym_new(uprof_arch_find("x86_64"), names);
    g_autofree char *path = NULL;
    const int fd = g_file_open_tmp("go-sites-XXXXXX", &path, NULL);
    const uint64_t text = BUILT_GO_BASE + BUILT_GO_TEXT_AT;
    const uint64_t addresses[] = { text, text + 16, text + 26 };
    const UprofName *lines[G_N_ELEMENTS(addresses)] = { 0 };

    g_assert_cmpint(write(fd, file->data, file->len), ==, file->len);
    close(fd);
    g_assert_true(uprof_sym_add_file(sym, path, true, NULL));
    uprof_sym_lines(sym, addresses, G_N_ELEMENTS(addresses), 1000, lines);
    g_assert_cmpstr(uprof_name_text(lines[0]), ==, "a.go:100");
    g_assert_cmpstr(uprof_name_text(lines[1]), ==, "a.go:7");
    g_assert_cmpstr(uprof_name_text(lines[2]), ==, "b.go:20");
    g_unlink(path);
}

/* ---- Guest memory ---- */

static void
read_memory(void *data, uint64_t first, unsigned n, uint8_t *bytes, bool *is_here)
{
    enum { PAGE = 4096 };
    const GByteArray *file = data;

    for (unsigned i = 0; i < n; i++) {
        const uint64_t at = (first + i) * PAGE;
        is_here[i] = at + PAGE <= file->len;
        memset(bytes + (size_t)i * PAGE, 0, PAGE);
        if (is_here[i])
            memcpy(bytes + (size_t)i * PAGE, file->data + at, PAGE);
    }
}

static void
fill_module(UprofSym *sym, unsigned module, GByteArray *file)
{
    const UprofMappedReader reader = { read_memory, file };
    g_auto(UprofMappedElf) mapped = { 0 };

    g_assert_true(uprof_mapped_elf_read(&reader, &mapped));
    g_assert_true(uprof_sym_fill_module(sym, module, &mapped));
}

/* More pages have come since: the site is then one of the new image. */
static void
test_memory(void)
{
    g_autoptr(GByteArray) file = build_go_file(&built_go_usual);
    g_autoptr(UprofNames) names = uprof_names_new();
    g_autoptr(UprofSym) sym = uprof_sym_new(uprof_arch_find("x86_64"), names);
    const unsigned module = uprof_sym_add_module(sym, "program", NULL, NULL);
    const uint64_t address = uprof_sym_module_address(module, INLINED_AT);

    fill_module(sym, module, file);
    const UprofSymAnswer answer = uprof_sym_find(sym, address, false);
    g_assert_cmpstr(uprof_name_text(answer.name), ==, "main.outer");
    g_assert_nonnull(answer.site);
    fill_module(sym, module, file);
    g_assert_true(uprof_sym_find(sym, address, false).site == answer.site);
    check_site(sym, answer.site, plain);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/go-sites/file", test_file);
    g_test_add_func("/go-sites/annotated-lines", test_annotated_lines);
    g_test_add_func("/go-sites/memory", test_memory);
    return g_test_run();
}
