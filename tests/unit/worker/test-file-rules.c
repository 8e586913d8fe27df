/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../../src/fetch/fetcher-priv.h"
#include "../../../src/worker/file-rules-priv.h"
#include "../../../src/worker/protocol-priv.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <utime.h>

/* Paths below a test folder. "app" is a symbol file, "in" an input, "root" a sysroot, and "own" a
 * folder of the configuration. The rules do not allow files that only a capture names. */
static const struct {
    UprofFileKind kind;
    const char *folder;
    const char *path;
    bool is_allowed;
} cases[] = {
    { UPROF_FILE_REGULAR, NULL, "bin/app", true },
    { UPROF_FILE_REGULAR, NULL, "bin/../bin/app", true },
    { UPROF_FILE_REGULAR, NULL, "bin/app.dbg", true },
    { UPROF_FILE_REGULAR, NULL, "bin/.debug/app.debug", true },
    { UPROF_FILE_REGULAR, NULL, "bin/notes.txt", false },
    { UPROF_FILE_REGULAR, NULL, "bin/device", false },
    { UPROF_FILE_REGULAR, NULL, "debug/memory", false },
    { UPROF_FILE_REGULAR, NULL, "bin/pipe", false },
    { UPROF_FILE_REGULAR, NULL, "bin/none", false },
    { UPROF_FILE_REGULAR, NULL, "secret", false },
    { UPROF_FILE_REGULAR, NULL, "bin/../secret", false },
    { UPROF_FILE_REGULAR, NULL, "bin/sub/file", false },
    { UPROF_FILE_REGULAR, NULL, "in", true },
    { UPROF_FILE_REGULAR, NULL, "debug/x", true },
    { UPROF_FILE_REGULAR, NULL, "debug/sub/x", true },
    { UPROF_FILE_REGULAR, NULL, "debug/../secret", false },
    { UPROF_FILE_REGULAR, NULL, "debugger", false },
    { UPROF_FILE_INPUT, NULL, "in", true },
    { UPROF_FILE_INPUT, NULL, "bin/app", false },
    { UPROF_FILE_INPUT, NULL, "secret", false },
    { UPROF_FILE_BELOW, "root", "lib/x", true },
    { UPROF_FILE_BELOW, "root", "../secret", false },
    { UPROF_FILE_BELOW, "root/lib", "x", false },
    { UPROF_FILE_BELOW, "own", "x", true },
    { UPROF_FILE_BELOW, "own", "link", false },
    { UPROF_FILE_BELOW, "own", "../secret", false },
    { UPROF_FILE_BELOW, "", "secret", false },
    { UPROF_FILE_BELOW, "/", "etc/passwd", false },
};

static char *folder;

static char *
name_path(const char *path)
{
    return path && path[0] != '/' ? g_build_filename(folder, path, NULL) : g_strdup(path);
}

static void
write_file(const char *path)
{
    g_autofree char *full = name_path(path);
    g_autofree char *above = g_path_get_dirname(full);

    g_assert_cmpint(g_mkdir_with_parents(above, 0700), ==, 0);
    /* a file beside a symbol file is handed over only if it looks like one */
    const bool has_magic = g_str_has_prefix(path, "bin/") && !g_str_has_suffix(path, ".txt");
    g_autofree char *text = g_strconcat(has_magic ? "\x7f"
                                                    "ELF"
                                                  : "",
                                        path, NULL);
    g_assert_true(g_file_set_contents(full, text, -1, NULL));
}

static void
link_file(const char *path, const char *target)
{
    g_autofree char *full = name_path(path);

    g_assert_cmpint(symlink(target, full), ==, 0);
}

static void
make_tree(void)
{
    static const char *const files[] = {
        "bin/app", "bin/app.dbg",   "bin/.debug/app.debug", "bin/sub/file", "secret",
        "in",      "debug/x",       "debug/sub/x",          "debugger",     "root/lib/x",
        "own/x",   "bin/notes.txt",
    };
    g_autofree char *pipe = NULL;

    folder = g_dir_make_tmp("uprof-rules-XXXXXX", NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(files); i++)
        write_file(files[i]);
    link_file("bin/device", "/dev/zero");
    link_file("debug/memory", "/proc/self/status");
    link_file("own/link", "x");
    pipe = name_path("bin/pipe");
    g_assert_cmpint(mkfifo(pipe, 0600), ==, 0);
}

static UprofFileRules *
make_rules(void)
{
    UprofFileRules *rules = uprof_file_rules_new();
    g_autofree char *app = name_path("bin/app"), *in = name_path("in"), *own = name_path("own");
    g_autofree char *debug = name_path("debug"), *root = name_path("root");
    const char *const debug_folders[] = { debug, NULL }, *const sysroots[] = { root, NULL };
    g_autoptr(GPtrArray) no_files = g_ptr_array_new();
    const UprofSymbolSettings settings = {
        .files = no_files,
        .config = { .debug_folders = debug_folders, .sysroots = sysroots },
    };

    uprof_file_rules_add_symbols(rules, app);
    uprof_file_rules_add_input(rules, in);
    uprof_file_rules_add_folder(rules, own);
    uprof_file_rules_add_settings(rules, &settings);
    return rules;
}

static int
ask(const UprofFileRules *rules, UprofFileKind kind, const char *below, const char *path,
    int *reason)
{
    const UprofFileAsk head = { .kind = kind, .links = UPROF_FILE_NO_LINKS };
    g_autoptr(GByteArray) bytes = g_byte_array_new();

    g_byte_array_append(bytes, (const guint8 *)&head, sizeof(head));
    g_byte_array_append(bytes, (const guint8 *)below, (guint)strlen(below) + 1);
    g_byte_array_append(bytes, (const guint8 *)path, (guint)strlen(path) + 1);
    return uprof_file_rules_answer(rules, NULL, (UprofSlice){ bytes->data, bytes->len }, reason);
}

static void
test_rules(void)
{
    g_autoptr(UprofFileRules) rules = make_rules();

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        const bool is_below = cases[i].kind == UPROF_FILE_BELOW;
        g_autofree char *below = is_below ? name_path(cases[i].folder) : g_strdup("");
        g_autofree char *path = is_below ? g_strdup(cases[i].path) : name_path(cases[i].path);
        int reason = 0;
        const int fd = ask(rules, cases[i].kind, below, path, &reason);
        g_test_message("case %zu: %s: %d, %s", i, cases[i].path, fd, g_strerror(reason));
        g_assert_true((fd >= 0) == cases[i].is_allowed);
        g_assert_true((reason == 0) == cases[i].is_allowed);
        if (fd >= 0)
            close(fd);
    }
}

/* A capture may name any symbol file, but no other file. */
static void
test_recorded(void)
{
    g_autoptr(UprofFileRules) rules = uprof_file_rules_new();
    g_autofree char *secret = name_path("secret"), *list = name_path("list");
    int reason;

    uprof_file_rules_allow_recorded(rules);
    g_assert_true(g_file_set_contents(list, "ffffffff81000000 T _text\n", -1, NULL));
    const int own = ask(rules, UPROF_FILE_REGULAR, "", "/proc/self/exe", &reason);
    g_assert_cmpint(own, >=, 0);
    close(own);
    const int nm = ask(rules, UPROF_FILE_REGULAR, "", list, &reason);
    g_assert_cmpint(nm, >=, 0);
    close(nm);
    g_assert_cmpint(ask(rules, UPROF_FILE_REGULAR, "", secret, &reason), ==, -1);
    g_assert_cmpint(ask(rules, UPROF_FILE_REGULAR, "", "/dev/zero", &reason), ==, -1);
    g_assert_cmpint(reason, ==, EINVAL);
}

/* Programs and libraries of this host's distribution, and nothing else of this host. */
static void
test_system(void)
{
    static const char *const wrong[] = {
        "usr/../etc/passwd", "etc/passwd",         "usr",
        "usr/lib",           "usr/lib/os-release", "usr/bin/../bin/env"
    };
    g_autoptr(UprofFileRules) rules = uprof_file_rules_new();
    int reason;

    const int fd = ask(rules, UPROF_FILE_BELOW, "/", "usr/bin/env", &reason);
    g_assert_cmpint(fd, >=, 0);
    close(fd);
    for (size_t i = 0; i < G_N_ELEMENTS(wrong); i++)
        g_assert_cmpint(ask(rules, UPROF_FILE_BELOW, "/", wrong[i], &reason), ==, -1);
    g_assert_cmpint(ask(rules, UPROF_FILE_BELOW, "/usr", "bin/env", &reason), ==, -1);
    g_assert_cmpint(ask(rules, UPROF_FILE_REGULAR, "", "/usr/bin/env", &reason), ==, -1);
}

/* Asks for a file of the symbol cache. Returns: its first byte; 0 if it cannot be opened */
static char
read_cached(const UprofFileRules *rules, UprofFetcher *fetcher, const char *path)
{
    const UprofFileAsk head = { .kind = UPROF_FILE_REGULAR };
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    char first = 0;
    int reason;

    g_byte_array_append(bytes, (const guint8 *)&head, sizeof(head));
    g_byte_array_append(bytes, (const guint8 *)"", 1);
    g_byte_array_append(bytes, (const guint8 *)path, (guint)strlen(path) + 1);
    const int fd =
        uprof_file_rules_answer(rules, fetcher, (UprofSlice){ bytes->data, bytes->len }, &reason);
    if (fd < 0) {
        g_assert_cmpint(reason, ==, ENOENT);
        return 0;
    }
    g_assert_cmpint(read(fd, &first, 1), ==, 1);
    close(fd);
    return first;
}

/* Copies out of the disks of a domain belong to that domain alone. */
static void
test_domains(void)
{
    static const char own[] = "cache/domains/4dea22b3-1d52-d8f3-2516-782e98ab3fa0/.build-id/aa/x";
    static const char other[] = "cache/domains/00000000-1d52-d8f3-2516-782e98ab3fa0/.build-id/aa/x";
    g_autofree char *cache = name_path("cache"), *own_path = name_path(own);
    g_autofree char *other_path = name_path(other),
                    *shared_path = name_path("cache/.build-id/bb/x");

    write_file(own);
    write_file(other);
    write_file("cache/.build-id/bb/x");
    g_assert_true(g_setenv("VIRT_UPROF_CACHE", cache, true));
    g_autoptr(UprofFileRules) rules = uprof_file_rules_new();
    g_assert_cmpint(read_cached(rules, NULL, own_path), ==, 'c');
    g_assert_cmpint(read_cached(rules, NULL, other_path), ==, 'c');
    uprof_file_rules_set_domain(rules, "4DEA22B3-1d52-d8f3-2516-782e98ab3fa0");
    g_assert_cmpint(read_cached(rules, NULL, own_path), ==, 'c');
    g_assert_cmpint(read_cached(rules, NULL, other_path), ==, 0);
    g_assert_cmpint(read_cached(rules, NULL, shared_path), ==, 'c');
    uprof_file_rules_set_domain(rules, "../x");
    g_assert_cmpint(read_cached(rules, NULL, own_path), ==, 0);
    g_assert_cmpint(read_cached(rules, NULL, shared_path), ==, 'c');
    g_unsetenv("VIRT_UPROF_CACHE");
}

/* An empty file says that no server has the file; after a day, the servers are asked again. */
static void
test_cache(void)
{
    g_autofree char *cache = name_path("cache"), *helper = name_path("helper");
    g_autofree char *parent = g_build_filename(cache, ".build-id", "aa", NULL);
    g_autofree char *path = g_build_filename(parent, "00112233445566", NULL);
    const time_t old = time(NULL) - 25 * 3600;

    g_assert_true(g_setenv("VIRT_UPROF_CACHE", cache, true));
    g_autoptr(UprofFileRules) rules = make_rules();
    g_assert_true(g_file_set_contents(helper, "#!/bin/sh\necho new\n", -1, NULL));
    g_assert_cmpint(chmod(helper, 0755), ==, 0);
    g_assert_cmpint(g_mkdir_with_parents(parent, 0755), ==, 0);
    g_autoptr(UprofFetcher) fetcher = uprof_fetcher_new_by(UPROF_FETCH_WAITING, helper, cache);

    g_assert_true(g_file_set_contents(path, "old", -1, NULL));
    g_assert_cmpint(read_cached(rules, fetcher, path), ==, 'o');
    g_assert_true(g_file_set_contents(path, "", -1, NULL));
    g_assert_cmpint(read_cached(rules, fetcher, path), ==, 0);
    g_assert_cmpint(utime(path, &(struct utimbuf){ old, old }), ==, 0);
    g_assert_cmpint(read_cached(rules, NULL, path), ==, 0);
    g_assert_cmpint(read_cached(rules, fetcher, path), ==, 'n');
    g_unsetenv("VIRT_UPROF_CACHE");
}

/* A worker may send any bytes. */
static void
test_malformed(void)
{
    g_autoptr(UprofFileRules) rules = make_rules();
    const UprofFileAsk head = { .kind = (UprofFileKind)77 };
    uint8_t bytes[sizeof(head) + 8];
    int reason;

    memset(bytes, 'x', sizeof(bytes));
    for (size_t len = 0; len <= sizeof(bytes); len++) {
        g_assert_cmpint(uprof_file_rules_answer(rules, NULL, (UprofSlice){ bytes, len }, &reason),
                        ==, -1);
        g_assert_cmpint(reason, ==, EINVAL);
    }
    memcpy(bytes, &head, sizeof(head));
    memset(bytes + sizeof(head), 0, 8);
    g_assert_cmpint(
        uprof_file_rules_answer(rules, NULL, (UprofSlice){ bytes, sizeof(bytes) }, &reason), ==,
        -1);
    g_assert_cmpint(reason, ==, ENOENT);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    make_tree();
    g_test_add_func("/file-rules/rules", test_rules);
    g_test_add_func("/file-rules/recorded", test_recorded);
    g_test_add_func("/file-rules/system", test_system);
    g_test_add_func("/file-rules/domains", test_domains);
    g_test_add_func("/file-rules/cache", test_cache);
    g_test_add_func("/file-rules/malformed", test_malformed);
    const int code = g_test_run();
    g_autofree char *command = g_strdup_printf("rm -rf '%s'", folder);
    g_assert_cmpint(system(command), ==, 0);
    g_free(folder);
    return code;
}
