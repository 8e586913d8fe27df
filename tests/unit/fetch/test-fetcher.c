/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>

#include "../../../src/fetch/fetcher-priv.h"
#include "../../../src/fetch/symbol-cache-priv.h"

/* The first digits of a build-id tell the helper of this test what to do. */
#define THERE "aa"
#define MISSING "bb"
#define FAILS "cc"
#define HANGS "dd"
#define EMPTY "ee"
#define REST "00112233445566"

static const char helper_text[] = "#!/bin/sh\n"
                                  "echo \"$1 $2\" >>\"$(dirname \"$0\")/log\"\n"
                                  "case $2 in\n"
                                  "aa*) echo \"content of $1\" ;;\n"
                                  "bb*) exit 1 ;;\n"
                                  "c*) echo half; printf 'no \\033server\\n' >&2; exit 2 ;;\n"
                                  "dd*) cat; echo stopped >>\"$(dirname \"$0\")/log\" ;;\n"
                                  "ee*) exit 0 ;;\n"
                                  "esac\n";

typedef struct {
    char *folder; /* has the helper, its log, and the cache */
    char *helper, *cache;
    UprofFetcher *fetcher;
} Fixture;

static void
init_fixture(Fixture *fixture, UprofFetchKind kind)
{
    fixture->folder = g_dir_make_tmp("fetcher-XXXXXX", NULL);
    fixture->helper = g_build_filename(fixture->folder, "helper", NULL);
    fixture->cache = g_build_filename(fixture->folder, "cache", NULL);
    g_assert_true(g_file_set_contents(fixture->helper, helper_text, -1, NULL));
    g_assert_cmpint(chmod(fixture->helper, 0755), ==, 0);
    fixture->fetcher = uprof_fetcher_new_by(kind, fixture->helper, fixture->cache);
}

static void
clear_fixture(Fixture *fixture)
{
    const char *const words[] = { "rm", "-rf", fixture->folder, NULL };

    uprof_fetcher_free(fixture->fetcher);
    g_assert_true(g_spawn_sync(NULL, (char **)words, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL,
                               NULL, NULL, NULL));
    g_free(fixture->folder);
    g_free(fixture->helper);
    g_free(fixture->cache);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Fixture, clear_fixture)

static char *
path_of(const Fixture *fixture, const char *start, const char *suffix)
{
    return g_strdup_printf("%s/.build-id/%s/%s%s", fixture->cache, start, REST, suffix);
}

static bool
want(const Fixture *fixture, const char *start, const char *suffix)
{
    g_autofree char *path = path_of(fixture, start, suffix);

    return uprof_fetcher_want(fixture->fetcher, path);
}

/* Returns: (transfer full) (nullable) */
static char *
read_cached(const Fixture *fixture, const char *start, const char *suffix)
{
    g_autofree char *path = path_of(fixture, start, suffix);
    char *content = NULL;

    g_file_get_contents(path, &content, NULL, NULL);
    return content;
}

static char *
read_log(const Fixture *fixture)
{
    g_autofree char *path = g_build_filename(fixture->folder, "log", NULL);
    char *content = NULL;

    g_file_get_contents(path, &content, NULL, NULL);
    return content;
}

/* Waits until a helper runs. */
static void
await_log(const Fixture *fixture)
{
    g_autofree char *log = NULL;

    while (!log || !strchr(log, '\n')) {
        g_usleep(5000);
        g_free(log);
        log = read_log(fixture);
    }
}

static void
assert_counts(const Fixture *fixture, unsigned found, unsigned missing, unsigned failed)
{
    UprofFetchCounts counts;

    uprof_fetcher_counts(fixture->fetcher, &counts);
    g_assert_cmpuint(counts.n_found, ==, found);
    g_assert_cmpuint(counts.n_missing, ==, missing);
    g_assert_cmpuint(counts.n_failed, ==, failed);
    g_free(counts.why_failed);
}

static void
test_waiting(void)
{
    g_auto(Fixture) fixture;

    init_fixture(&fixture, UPROF_FETCH_WAITING);
    g_assert_true(want(&fixture, THERE, ".debug"));
    g_assert_false(want(&fixture, MISSING, ""));
    g_assert_false(want(&fixture, FAILS, ""));
    g_assert_false(want(&fixture, EMPTY, ""));
    g_autofree char *there = read_cached(&fixture, THERE, ".debug");
    g_autofree char *missing = read_cached(&fixture, MISSING, "");
    g_autofree char *failed = read_cached(&fixture, FAILS, "");
    g_autofree char *empty = read_cached(&fixture, EMPTY, "");
    g_assert_cmpstr(there, ==, "content of debuginfo\n");
    g_assert_cmpstr(missing, ==, "");
    g_assert_null(failed);
    g_assert_null(empty);
    assert_counts(&fixture, 1, 1, 2);
}

static void
test_reason(void)
{
    g_auto(Fixture) fixture;
    UprofFetchCounts counts;

    init_fixture(&fixture, UPROF_FETCH_WAITING);
    want(&fixture, FAILS, "");
    uprof_fetcher_counts(fixture.fetcher, &counts);
    g_autofree char *why = counts.why_failed;
    g_assert_nonnull(strstr(why, "server"));
    g_assert_null(strchr(why, '\033'));
    g_assert_null(strchr(why, '\n'));
}

/* A file is asked for once, also if another run has asked. A path outside the cache is not. */
static void
test_once(void)
{
    g_auto(Fixture) fixture;

    init_fixture(&fixture, UPROF_FETCH_WAITING);
    g_assert_true(want(&fixture, THERE, ""));
    g_assert_false(want(&fixture, THERE, ""));
    want(&fixture, MISSING, "");
    want(&fixture, MISSING, "");
    want(&fixture, FAILS, "");
    want(&fixture, FAILS, "");
    g_assert_false(uprof_fetcher_want(fixture.fetcher, "/etc/passwd"));
    uprof_fetcher_free(fixture.fetcher);
    fixture.fetcher = uprof_fetcher_new_by(UPROF_FETCH_WAITING, fixture.helper, fixture.cache);
    want(&fixture, THERE, "");
    want(&fixture, MISSING, "");
    g_autofree char *log = read_log(&fixture);
    g_assert_cmpstr(log, ==,
                    "executable " THERE REST "\n"
                    "executable " MISSING REST "\n"
                    "executable " FAILS REST "\n");
}

/* If no server can be reached, three times in a row, no server is asked any more. */
static void
test_give_up(void)
{
    g_auto(Fixture) fixture;

    init_fixture(&fixture, UPROF_FETCH_WAITING);
    want(&fixture, EMPTY, ""); /* another failure */
    want(&fixture, FAILS, "");
    want(&fixture, FAILS, ".debug");
    want(&fixture, "cd", "");
    g_assert_false(want(&fixture, THERE, ""));
    assert_counts(&fixture, 0, 0, 5);
    g_autofree char *log = read_log(&fixture);
    g_assert_null(strstr(log, THERE));
}

static bool
never_gives_up(void *data)
{
    return false;
}

static void
test_background(void)
{
    g_auto(Fixture) fixture;

    init_fixture(&fixture, UPROF_FETCH_BACKGROUND);
    g_assert_false(want(&fixture, MISSING, ""));
    g_assert_false(want(&fixture, THERE, ".debug"));
    g_assert_false(want(&fixture, THERE, ""));
    g_assert_true(uprof_fetcher_wait(fixture.fetcher, never_gives_up, NULL));
    g_assert_false(uprof_fetcher_is_busy(fixture.fetcher));
    assert_counts(&fixture, 2, 1, 0);
    g_assert_cmpstr(uprof_fetcher_arrived(fixture.fetcher, 0), ==, THERE REST);
    g_assert_cmpstr(uprof_fetcher_arrived(fixture.fetcher, 1), ==, THERE REST);
    g_assert_null(uprof_fetcher_arrived(fixture.fetcher, 2));
}

static bool
gives_up_third(void *data)
{
    unsigned *n = data;

    return ++*n == 3;
}

/* The wait ends, and the helper hears that it must end. */
static void
test_hang(void)
{
    g_auto(Fixture) fixture;
    unsigned n = 0;

    init_fixture(&fixture, UPROF_FETCH_BACKGROUND);
    want(&fixture, HANGS, "");
    want(&fixture, THERE, ".debug");
    await_log(&fixture);
    g_assert_false(uprof_fetcher_wait(fixture.fetcher, gives_up_third, &n));
    g_assert_cmpuint(n, ==, 3);
    assert_counts(&fixture, 0, 0, 0);
    g_clear_pointer(&fixture.fetcher, uprof_fetcher_free);
    g_autofree char *log = read_log(&fixture);
    g_assert_cmpstr(log, ==, "executable " HANGS REST "\nstopped\n");
    g_autofree char *file = read_cached(&fixture, HANGS, "");
    g_assert_null(file);
}

/* @why: why no file can be fetched by @helper. No other file is asked for then. */
static void
check_unusable(const Fixture *fixture, const char *helper, const char *why)
{
    g_autoptr(UprofFetcher) fetcher =
        uprof_fetcher_new_by(UPROF_FETCH_BACKGROUND, helper, fixture->cache);
    g_autofree char *path = path_of(fixture, THERE, ""), *other = path_of(fixture, THERE, ".debug");
    UprofFetchCounts counts;

    g_assert_false(uprof_fetcher_want(fetcher, path));
    g_assert_false(uprof_fetcher_want(fetcher, other));
    g_assert_false(uprof_fetcher_is_busy(fetcher));
    uprof_fetcher_counts(fetcher, &counts);
    g_assert_cmpuint(counts.n_asked, ==, 0);
    g_assert_cmpuint(counts.n_failed, ==, 1);
    g_assert_nonnull(strstr(counts.why_failed, why));
    g_free(counts.why_failed);
}

static void
test_unusable(void)
{
    g_auto(Fixture) fixture;

    init_fixture(&fixture, UPROF_FETCH_WAITING);
    g_assert_cmpint(chmod(fixture.helper, 0777), ==, 0);
    check_unusable(&fixture, fixture.helper, "can be changed by other users");
    check_unusable(&fixture, "/nowhere", "is missing");
    g_assert_false(g_file_test(fixture.cache, G_FILE_TEST_EXISTS));
    g_assert_cmpint(chmod(fixture.helper, 0755), ==, 0);
    g_assert_cmpint(g_mkdir(fixture.cache, 0777), ==, 0);
    g_assert_cmpint(chmod(fixture.cache, 0777), ==, 0);
    check_unusable(&fixture, fixture.helper, "other users may write to it");
}

/* A run does not ask for any number of files. */
static void
test_limit(void)
{
    g_auto(Fixture) fixture;
    UprofFetchCounts counts;

    init_fixture(&fixture, UPROF_FETCH_BACKGROUND);
    for (unsigned i = 0; i < UPROF_FETCH_FILES_MAX + 10; i++) {
        g_autofree char *path = g_strdup_printf("%s/.build-id/bb/%014x", fixture.cache, i);
        uprof_fetcher_want(fixture.fetcher, path);
    }
    uprof_fetcher_counts(fixture.fetcher, &counts);
    g_assert_cmpuint(counts.n_asked, ==, UPROF_FETCH_FILES_MAX);
    g_free(counts.why_failed);
}

static void
test_unwanted(void)
{
    g_assert_true(g_setenv("DEBUGINFOD_URLS", " ", true));
    g_assert_false(uprof_symbol_cache_has_servers());
    g_unsetenv("DEBUGINFOD_URLS");
    g_assert_null(uprof_fetcher_new(UPROF_FETCH_WAITING));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/fetcher/unwanted", test_unwanted);
    g_test_add_func("/fetcher/waiting", test_waiting);
    g_test_add_func("/fetcher/reason", test_reason);
    g_test_add_func("/fetcher/once", test_once);
    g_test_add_func("/fetcher/give-up", test_give_up);
    g_test_add_func("/fetcher/background", test_background);
    g_test_add_func("/fetcher/hang", test_hang);
    g_test_add_func("/fetcher/unusable", test_unusable);
    g_test_add_func("/fetcher/limit", test_limit);
    return g_test_run();
}
