/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utime.h>

#include "../../../src/fetch/symbol-cache-priv.h"

#define ID "0123456789abcdef0123456789abcdef01234567"

typedef struct {
    char *folder;
} Fixture;

static void
init_fixture(Fixture *fixture)
{
    fixture->folder = g_dir_make_tmp("symbol-cache-XXXXXX", NULL);
    g_assert_nonnull(fixture->folder);
}

static void
clear_fixture(Fixture *fixture)
{
    const char *const words[] = { "rm", "-rf", fixture->folder, NULL };

    g_assert_true(g_spawn_sync(NULL, (char **)words, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL,
                               NULL, NULL, NULL));
    g_free(fixture->folder);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Fixture, clear_fixture)

static void
test_parse(void)
{
    static const struct {
        const char *path;
        const char *build_id; /* NULL: refused */
        bool is_debug;
    } rows[] = {
        { "/c/.build-id/01/23456789abcdef", "0123456789abcdef", false },
        { "/c/.build-id/01/23456789abcdef.debug", "0123456789abcdef", true },
        { "/c/.build-id/01/23456789abcde", NULL, false },  /* half a byte */
        { "/c/.build-id/01/23456789abcd", NULL, false },   /* too short */
        { "/c/.build-id/01/23456789ABCDEF", NULL, false }, /* not as the program writes it */
        { "/c/.build-id/01/../../etc/passwd", NULL, false },
        { "/c/.build-id/0/123456789abcdef0", NULL, false },
        { "/c/.build-id/01/23456789abcdef.debugx", NULL, false },
        { "/c/.build-id/01/23456789abcdef/x", NULL, false },
        { "/d/.build-id/01/23456789abcdef", NULL, false },
        { "/c/01/23456789abcdef", NULL, false },
        { "", NULL, false },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_auto(UprofCachedFile) file = { 0 };
        g_assert_cmpint(uprof_symbol_cache_parse("/c", rows[i].path, &file), ==,
                        rows[i].build_id != NULL);
        g_assert_cmpstr(file.build_id, ==, rows[i].build_id);
        g_assert_cmpint(file.is_debug, ==, rows[i].is_debug);
    }
}

static void
test_too_long(void)
{
    g_autofree char *digits = g_strnfill(1000, 'a');
    g_autofree char *path = g_strdup_printf("/c/.build-id/%.2s/%s", digits, digits);
    g_auto(UprofCachedFile) file = { 0 };

    g_assert_false(uprof_symbol_cache_parse("/c", path, &file));
}

/* Writes a file of the cache. */
static void
store(const Fixture *fixture, const UprofCachedFile *file, const char *content)
{
    g_autofree char *temporary = NULL;
    const int fd = uprof_symbol_cache_begin(fixture->folder, &temporary, NULL);

    g_assert_cmpint(fd, >=, 0);
    g_assert_cmpint(write(fd, content, strlen(content)), ==, (ssize_t)strlen(content));
    close(fd);
    g_assert_true(uprof_symbol_cache_commit(fixture->folder, temporary, file, NULL));
    g_assert_false(g_file_test(temporary, G_FILE_TEST_EXISTS));
}

static void
set_age(const Fixture *fixture, const char *name, time_t seconds)
{
    g_autofree char *path = g_build_filename(fixture->folder, name, NULL);
    const struct utimbuf times = { time(NULL) - seconds, time(NULL) - seconds };

    g_assert_cmpint(utime(path, &times), ==, 0);
}

static void
test_asked(void)
{
    static char id[] = ID;
    const UprofCachedFile program = { id, false }, debug = { id, true };
    g_auto(Fixture) fixture;

    init_fixture(&fixture);
    g_assert_false(uprof_symbol_cache_is_asked(fixture.folder, &program));
    store(&fixture, &program, "ELF");
    store(&fixture, &debug, "");
    g_assert_true(uprof_symbol_cache_is_asked(fixture.folder, &program));
    g_assert_true(uprof_symbol_cache_is_asked(fixture.folder, &debug));
    /* a file stays; that a server lacks one counts for a day */
    set_age(&fixture, ".build-id/01/23456789abcdef0123456789abcdef01234567", 3 * 24 * 3600);
    set_age(&fixture, ".build-id/01/23456789abcdef0123456789abcdef01234567.debug", 25 * 3600);
    g_assert_true(uprof_symbol_cache_is_asked(fixture.folder, &program));
    g_assert_false(uprof_symbol_cache_is_asked(fixture.folder, &debug));
}

static bool
exists(const Fixture *fixture, const char *name)
{
    g_autofree char *path = g_build_filename(fixture->folder, name, NULL);

    return g_file_test(path, G_FILE_TEST_EXISTS);
}

static void
test_shrink(void)
{
    static char old[] = "aa00000000000000", young[] = "bb00000000000000";
    g_autofree char *content = g_strnfill(64 * 1024, 'x');
    g_autofree char *temporary = NULL, *abandoned = NULL;
    g_auto(Fixture) fixture;

    init_fixture(&fixture);
    store(&fixture, &(UprofCachedFile){ old, false }, content);
    store(&fixture, &(UprofCachedFile){ young, true }, content);
    set_age(&fixture, ".build-id/aa/00000000000000", 1000);
    close(uprof_symbol_cache_begin(fixture.folder, &temporary, NULL));
    close(uprof_symbol_cache_begin(fixture.folder, &abandoned, NULL));
    set_age(&fixture, strrchr(abandoned, '/') + 1, 2 * 3600);

    uprof_symbol_cache_shrink(fixture.folder, 1024 * 1024);
    g_assert_true(exists(&fixture, ".build-id/aa/00000000000000"));
    g_assert_true(g_file_test(temporary, G_FILE_TEST_EXISTS));
    g_assert_false(g_file_test(abandoned, G_FILE_TEST_EXISTS));

    /* that a server lacks a file counts for a day */
    static char missing[] = "cc00000000000000", expired[] = "dd00000000000000";
    store(&fixture, &(UprofCachedFile){ missing, false }, "");
    store(&fixture, &(UprofCachedFile){ expired, false }, "");
    set_age(&fixture, ".build-id/dd/00000000000000", 25 * 3600);
    uprof_symbol_cache_shrink(fixture.folder, 1024 * 1024);
    g_assert_true(exists(&fixture, ".build-id/cc/00000000000000"));
    g_assert_false(exists(&fixture, ".build-id/dd/00000000000000"));
    g_assert_true(exists(&fixture, ".build-id/aa/00000000000000"));

    uprof_symbol_cache_shrink(fixture.folder, 100 * 1024);
    g_assert_false(exists(&fixture, ".build-id/aa/00000000000000"));
    g_assert_true(exists(&fixture, ".build-id/bb/00000000000000.debug"));
}

static void
test_make(void)
{
    g_auto(Fixture) fixture;
    g_autoptr(GError) error = NULL;

    init_fixture(&fixture);
    g_autofree char *inner = g_build_filename(fixture.folder, "a", "b", NULL);
    g_assert_true(uprof_symbol_cache_make(inner, &error));
    g_assert_no_error(error);
    g_assert_cmpint(chmod(inner, 0777), ==, 0);
    g_assert_false(uprof_symbol_cache_make(inner, &error));
    g_assert_nonnull(strstr(error->message, "other users may write to it"));
}

static void
test_folder(void)
{
    g_assert_true(g_setenv("VIRT_UPROF_CACHE", "/x/../y", true));
    g_autofree char *given = uprof_symbol_cache_folder();
    g_assert_cmpstr(given, ==, "/y");
    g_unsetenv("VIRT_UPROF_CACHE");
    g_autofree char *usual = uprof_symbol_cache_folder();
    g_assert_true(g_str_has_suffix(usual, "/virt-uprof"));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/symbol-cache/parse", test_parse);
    g_test_add_func("/symbol-cache/too-long", test_too_long);
    g_test_add_func("/symbol-cache/asked", test_asked);
    g_test_add_func("/symbol-cache/shrink", test_shrink);
    g_test_add_func("/symbol-cache/make", test_make);
    g_test_add_func("/symbol-cache/folder", test_folder);
    return g_test_run();
}
