/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/kernel-files.h"

#include "symbol-elf.h"
#include "uprof/error.h"

#include <glib/gstdio.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MANY = 1000 * 1000 }; /* symbols: so many that reading them takes a while */

static char *folder;

static char *
path_of(const char *name)
{
    return g_build_filename(folder, name, NULL);
}

static void
write_kernel(const char *name, size_t n_symbols)
{
    static const uint8_t code[64] = { 0xc3 };
    g_autofree ElfSymbol *symbols = g_new0(ElfSymbol, n_symbols);
    g_autoptr(GStringChunk) names = g_string_chunk_new(1 << 20);
    g_autofree char *path = path_of(name);

    for (size_t i = 0; i < n_symbols; i++) {
        g_autofree char *text = g_strdup_printf("function_%zu", i);
        symbols[i].name = g_string_chunk_insert(names, text);
        symbols[i].start = 0x100000 + i % sizeof(code);
        symbols[i].size = 1;
    }
    const ElfPlan plan = {
        .entry = 0x100000,
        .text_gva = 0x100000,
        .text = code,
        .text_len = sizeof(code),
        .symbols = symbols,
        .n_symbols = n_symbols,
    };
    symbol_elf_write(&plan, path);
}

static void
write_files(void)
{
    g_autofree char *text = path_of("text");
    g_autofree char *device = path_of("device");
    g_autofree char *end = path_of("end\x1b[2J");

    write_kernel("kernel", 3);
    write_kernel("many", MANY);
    g_assert_true(g_file_set_contents(text, "no kernel", -1, NULL));
    g_assert_true(g_file_set_contents(end, "no kernel", -1, NULL));
    g_assert_cmpint(symlink("/dev/zero", device), ==, 0);
}

/* clang-format off */
static const struct {
    const char *name;
    const char *error; /* pattern; NULL: it has symbols */
} cases[] = {
    { "kernel",      NULL },
    { "many",        NULL },
    { "text",        "*/text'*" },
    { "end\x1b[2J",  "*/end?[2J'*" },
    { "device",      "*/device'*not a regular file*" },
    { "none",        "*/none'*No such file*" },
};
/* clang-format on */

static void
test_find(void)
{
    g_autoptr(UprofKernelFiles) files = uprof_kernel_files_new(NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = path_of(cases[i].name);
        g_autoptr(GError) error = NULL;
        g_autofree char *found =
            uprof_kernel_files_find(files, uprof_arch_find("x86_64"), path, &error);
        if (!cases[i].error) {
            g_assert_no_error(error);
            g_assert_cmpstr(found, ==, path);
            continue;
        }
        g_assert_null(found);
        if (!error || !g_pattern_match_simple(cases[i].error, error->message))
            g_error("%s: %s", cases[i].name, error ? error->message : "no error");
    }
}

static bool
has_name(int pid, const char *name)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/comm", pid);
    g_autofree char *text = NULL;

    return g_file_get_contents(path, &text, NULL, NULL) && strcmp(g_strchomp(text), name) == 0;
}

/* Returns: 0: none now */
static int
find_child(int parent, const char *name)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/task/%d/children", parent, parent);
    g_autofree char *text = NULL;

    if (!g_file_get_contents(path, &text, NULL, NULL))
        return 0;
    g_auto(GStrv) pids = g_strsplit(text, " ", -1);
    for (guint i = 0; pids[i]; i++)
        if (*pids[i] && has_name(atoi(pids[i]), name))
            return atoi(pids[i]);
    return 0;
}

static gpointer
kill_worker(gpointer data)
{
    int worker = 0;

    while (worker == 0)
        worker = find_child(find_child(getpid(), "uprof-spawner"), "uprof-worker");
    kill(worker, SIGKILL);
    return NULL;
}

/* Another process reads the file. If this process dies, the program reports it, and reads on. */
static void
test_death(void)
{
    g_autoptr(UprofKernelFiles) files = uprof_kernel_files_new(NULL);
    const UprofArch *arch = uprof_arch_find("x86_64");
    g_autofree char *many = path_of("many");
    g_autofree char *kernel = path_of("kernel");
    g_autoptr(GError) error = NULL;

    GThread *killer = g_thread_new("killer", kill_worker, NULL);
    g_assert_null(uprof_kernel_files_find(files, arch, many, &error));
    g_thread_join(killer);
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_FAILED);
    g_assert_true(g_pattern_match_simple(
        "*/many': the process that reads the files has failed: it died of signal 9 (Killed)*",
        error->message));
    g_autofree char *found = uprof_kernel_files_find(files, arch, kernel, NULL);
    g_assert_cmpstr(found, ==, kernel);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    folder = g_dir_make_tmp("uprof-kernel-XXXXXX", NULL);
    write_files();
    g_test_add_func("/kernel-files/find", test_find);
    g_test_add_func("/kernel-files/death", test_death);
    const int status = g_test_run();
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = path_of(cases[i].name);
        unlink(path);
    }
    rmdir(folder);
    g_free(folder);
    return status;
}
