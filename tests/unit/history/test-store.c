/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../../src/history/store-priv.h"
#include "uprof/store.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utime.h>

#include "uprof/error.h"
#include "uprof/time-text.h"

#define UUID "4dea22b3-1d52-d8f3-2516-782e98ab3fa0"
#define DIGITS "4dea22b31d52d8f32516782e98ab3fa0"

enum { START_S = 1795166100, DAY_S = 1795132800 }; /* 2026-11-20T09:15:00Z, and its 00:00 */

static char *top; /* the folder of all stores of the test */

static UprofStore *
open_store(void)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *path = g_build_filename(top, "store", NULL);
    UprofStore *store = uprof_store_open(path, true, &error);

    g_assert_no_error(error);
    g_assert_nonnull(store);
    return store;
}

static char *
path_of(const char *rest)
{
    return g_build_filename(top, "store", rest, NULL);
}

static void
put(const char *rest, const char *text, int64_t age_s)
{
    g_autofree char *path = path_of(rest);
    g_autofree char *folder = g_path_get_dirname(path);
    const time_t then = time(NULL) - (time_t)age_s;

    g_assert_cmpint(g_mkdir_with_parents(folder, 0750), ==, 0);
    g_assert_true(g_file_set_contents(path, text, -1, NULL));
    g_assert_cmpint(utime(path, &(struct utimbuf){ then, then }), ==, 0);
}

static bool
exists(const char *rest)
{
    g_autofree char *path = path_of(rest);
    struct stat info;

    return lstat(path, &info) == 0;
}

static mode_t
mode_of(const char *rest)
{
    g_autofree char *path = path_of(rest);
    struct stat info;

    g_assert_cmpint(lstat(path, &info), ==, 0);
    return info.st_mode & 07777;
}

static void
remove_all(const char *path)
{
    struct stat info;

    if (lstat(path, &info) == 0 && S_ISDIR(info.st_mode)) {
        g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
        const char *name;
        while (dir && (name = g_dir_read_name(dir))) {
            g_autofree char *inner = g_build_filename(path, name, NULL);
            remove_all(inner);
        }
        rmdir(path);
    } else {
        unlink(path);
    }
}

static void
clear(void)
{
    g_autofree char *store = path_of("");
    g_autofree char *elsewhere = g_build_filename(top, "elsewhere", NULL);

    remove_all(store);
    remove_all(elsewhere);
}

/* clang-format off */
static const struct {
    const char *domain;
    const char *file;
} safe_names[] = {
    { "web-1",      "web-1" },
    { "a;b",        "a%3Bb" },
    { "..",         "%2E." },
    { "$(id)",      "%24%28id%29" },
    { "a%n%s",      "a%25n%25s" },
    { "-rf",        "%2Drf" },
    { "a\tb",       "a%09b" },
    { " x ",        "%20x%20" },
    { "a\xc2\x9b" "b", "a%C2%9Bb" },
    { "summary",    "summary" },
    { "a~b",        "a%7Eb" },
    { "",           "~4dea22b3" },
};
/* clang-format on */

static void
test_safe_names(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(safe_names); i++) {
        g_autofree char *safe = uprof_store_safe_name(safe_names[i].domain, UUID);
        g_assert_cmpstr(safe, ==, safe_names[i].file);
    }
    g_autofree char *many = g_strnfill(5000, ';');
    g_autofree char *cut = uprof_store_safe_name(many, UUID);
    g_assert_cmpuint(strlen(cut), ==, 99 + 1 + 8);
    g_assert_true(g_str_has_suffix(cut, "%3B~4dea22b3"));
}

/* Each domain has a folder of its own, whatever the name of the domain is. */
static void
test_hostile_folders(void)
{
    g_autoptr(UprofStore) store = open_store();

    for (size_t i = 0; i < G_N_ELEMENTS(safe_names); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *base =
            uprof_store_slice_base(store, safe_names[i].domain, UUID, START_S, NULL, &error);
        g_autofree char *wanted =
            g_strdup_printf("%s/data/%s/%s-20261120T091500Z", uprof_store_path(store),
                            safe_names[i].file, safe_names[i].file);
        g_assert_no_error(error);
        g_assert_cmpstr(base, ==, wanted);
    }
    g_autoptr(GPtrArray) names = uprof_store_folders(store);
    g_assert_cmpuint(names->len, ==, G_N_ELEMENTS(safe_names));
    clear();
}

static void
test_modes(void)
{
    const mode_t before = umask(0);
    g_autoptr(UprofStore) store = open_store();
    g_autofree char *base = uprof_store_slice_base(store, "web-1", UUID, START_S, NULL, NULL);

    g_assert_nonnull(base);
    g_assert_cmpuint(mode_of(""), ==, 0750);
    g_assert_cmpuint(mode_of("data"), ==, 0750);
    g_assert_cmpuint(mode_of("data/web-1"), ==, 0750);
    g_assert_true(uprof_store_note_failure(store, "web-1", UUID, START_S, "paused", NULL));
    g_assert_cmpuint(mode_of("data/web-1/web-1-20261120.failures"), ==, 0640);
    g_assert_cmpuint(umask(before), ==, 027);
    clear();
}

/* clang-format off */
static const struct {
    const char *file;
    int64_t start_s; /* -1: not the name of a stored file */
    bool is_day;
} stems[] = {
    { "web-1-20261120T091500Z.folded.gz",             START_S, false },
    { "web-1-20261120.folded.gz",                     DAY_S,   true },
    { "web-1-20261120.meta.json",                     DAY_S,   true },
    { "web-1-20261120.failures",                      DAY_S,   true },
    { "web-1-20261120.pending",                       DAY_S,   true },
    { "web-1-20261120~" DIGITS ".folded.gz",          DAY_S,   true },
    { "web-1-20240229.meta.json",                     1709164800, true },
    { "web-1-20230229.meta.json",                     -1,      true },
    { "web-1-20261320.meta.json",                     -1,      true },
    { "web-1-20261120T250000Z.meta.json",             -1,      true },
    { "web-1-20261120T091500.meta.json",              -1,      true },
    { "web-1-20261120T091500Z.meta.json.bak",         -1,      true },
    { "web-1-20261120~4dea22b3.meta.json",            -1,      true },
    { "web-1-20261120~" DIGITS "0.meta.json",         -1,      true },
    { "web-1-20261120~4DEA22B31D52D8F32516782E98AB3FA0.meta.json", -1, true },
    { "web-2-20261120T091500Z.folded.gz",             -1,      true },
    { "web-1-2-20261120T091500Z.folded.gz",           -1,      true },
    { "web-1-19691231.meta.json",                     -1,      true },
    { "web-1-+2026112.meta.json",                     -1,      true },
    { "web-1-.meta.json",                             -1,      true },
    { "web-1.meta.json",                              -1,      true },
    { ".meta.json",                                   -1,      true },
    { "notes.txt",                                    -1,      true },
};
/* clang-format on */

static void
test_stems(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(stems); i++) {
        g_autoptr(UprofStore) store = open_store();
        g_autofree char *rest = g_build_filename("data/web-1", stems[i].file, NULL);
        put(rest, "x", 0);
        g_autoptr(UprofStoreFolder) folder = uprof_store_folder_open(store, "web-1", NULL);
        g_assert_nonnull(folder);
        g_assert_cmpuint(folder->items->len, ==, stems[i].start_s >= 0);
        if (folder->items->len > 0) {
            const UprofStoreItem *item = uprof_store_item(folder, 0);
            g_autofree char *again =
                uprof_store_stem("web-1", item->start_s, item->is_day, item->uuid_digits);
            g_assert_cmpint(item->start_s, ==, stems[i].start_s);
            g_assert_true(item->is_day == stems[i].is_day);
            g_assert_cmpstr(again, ==, item->stem);
            g_assert_false(uprof_store_item_is_complete(item));
        }
        clear();
    }
}

static void
test_items(void)
{
    g_autoptr(UprofStore) store = open_store();

    put("data/web-1/web-1-20261120T091500Z.folded.gz", "123", 50);
    put("data/web-1/web-1-20261120T091500Z.meta.json", "1234", 10);
    put("data/web-1/web-1-20261120.folded.gz", "1", 0);
    put("data/web-1/web-1-20261119T235959Z.meta.json", "1", 0);
    g_autoptr(UprofStoreFolder) folder = uprof_store_folder_open(store, "web-1", NULL);
    g_assert_cmpuint(folder->items->len, ==, 3);
    g_assert_cmpstr(uprof_store_item(folder, 0)->stem, ==, "web-1-20261119T235959Z");
    g_assert_cmpstr(uprof_store_item(folder, 1)->stem, ==, "web-1-20261120");
    const UprofStoreItem *slice = uprof_store_item(folder, 2);
    g_assert_cmpstr(slice->stem, ==, "web-1-20261120T091500Z");
    g_assert_true(uprof_store_item_is_complete(slice));
    g_assert_cmpuint(slice->bytes, ==, 7);
    g_assert_cmpint(slice->changed_ns / 1000000000, >=, time(NULL) - 15);
    clear();
}

/* No slice replaces another, even if the clock is set back or two rounds begin in one second. */
static void
test_same_second(void)
{
    g_autoptr(UprofStore) store = open_store();

    put("data/web-1/web-1-20261120T091500Z.folded.gz", "x", 0);
    put("data/web-1/web-1-20261120T091501Z.meta.json", "x", 0);
    g_autofree char *base = uprof_store_slice_base(store, "web-1", UUID, START_S, NULL, NULL);
    g_assert_true(g_str_has_suffix(base, "/web-1-20261120T091502Z"));
    /* the seconds of deleted slices that a day has counted are not used again */
    const int64_t seconds[] = { START_S + 2, START_S + 3 };
    g_autoptr(GHashTable) counted = g_hash_table_new(g_int64_hash, g_int64_equal);
    for (size_t i = 0; i < G_N_ELEMENTS(seconds); i++)
        g_hash_table_add(counted, (gpointer)&seconds[i]);
    g_autofree char *next = uprof_store_slice_base(store, "web-1", UUID, START_S, counted, NULL);
    g_assert_true(g_str_has_suffix(next, "/web-1-20261120T091504Z"));
    clear();
}

static void
assert_others(bool was_refused, GError **error)
{
    g_assert_true(was_refused);
    g_assert_error(*error, UPROF_ERROR, UPROF_ERROR_DENIED);
    g_assert_true(g_pattern_match_simple("'*' belongs to somebody else or may be written by "
                                         "others: nothing of root's is safe there",
                                         (*error)->message));
    g_clear_error(error);
}

/* Folders that other users can write to are refused: these users could add links or move files. */
static void
test_writable_by_others(void)
{
    enum { NOBODY = 65534 };
    g_autofree char *data = path_of("data");
    g_autofree char *web = path_of("data/web-1");
    g_autofree char *store_path = path_of("");
    g_autoptr(GError) error = NULL;

    if (geteuid() != 0) {
        g_test_skip("only root can give folders to others");
        return;
    }
    g_autoptr(UprofStore) store = open_store();
    put("data/web-1/web-1-20261120T091500Z.folded.gz", "x", 0);
    for (unsigned i = 0; i < 2; i++) {
        g_assert_cmpint(chown(web, i == 0 ? NOBODY : 0, 0), ==, 0);
        g_assert_cmpint(chmod(web, i == 0 ? 0750 : 0770), ==, 0);
        assert_others(!uprof_store_slice_base(store, "web-1", UUID, START_S, NULL, &error), &error);
        assert_others(!uprof_store_note_failure(store, "web-1", UUID, START_S, "x", &error),
                      &error);
        assert_others(!uprof_store_folder_open(store, "web-1", &error), &error);
    }
    g_autofree char *base = uprof_store_slice_base(store, "db", UUID, START_S, NULL, &error);
    g_assert_no_error(error);
    g_assert_nonnull(base);
    g_assert_cmpint(chmod(web, 0750), ==, 0);
    g_autoptr(UprofStoreFolder) folder = uprof_store_folder_open(store, "web-1", &error);
    g_assert_no_error(error);
    g_assert_cmpuint(folder->items->len, ==, 1);

    g_assert_cmpint(chown(data, NOBODY, 0), ==, 0);
    assert_others(!uprof_store_open(store_path, true, &error), &error);
    assert_others(!uprof_store_open(store_path, false, &error), &error);
    g_assert_cmpint(chown(data, 0, 0), ==, 0);
    clear();
}

static void
test_last_turn(void)
{
    g_autoptr(UprofStore) store = open_store();

    g_assert_cmpint(uprof_store_last_attempt(store, "web-1", UUID, START_S), ==, 0);
    put("data/web-1/web-1-20261120T091500Z.folded.gz", "x", 0);
    g_assert_cmpint(uprof_store_last_attempt(store, "web-1", UUID, START_S), ==, 0);
    put("data/web-1/web-1-20261120T091500Z.meta.json", "x", 0);
    put("data/web-1/web-1-20261121.folded.gz", "x", 0);
    put("data/web-1/web-1-20261121.meta.json", "x", 0);
    put("data/web-1/web-1-20261122T000000Z.folded.gz", "x", 0);
    g_assert_cmpint(uprof_store_last_attempt(store, "web-1", UUID, START_S), ==, START_S);
    /* slices from a time when the clock was ahead do not count */
    put("data/web-1/web-1-20271120T091500Z.folded.gz", "x", 0);
    put("data/web-1/web-1-20271120T091500Z.meta.json", "x", 0);
    g_assert_cmpint(uprof_store_last_attempt(store, "web-1", UUID, START_S), ==, START_S);
    g_assert_cmpint(uprof_store_last_attempt(store, "web-1", UUID, START_S - 1), ==, 0);
    /* a failed attempt counts as a turn, too */
    const int64_t now_s = time(NULL);
    put("data/web-1/web-1-20261120.failures", "x", now_s - START_S - 60);
    g_assert_cmpint(uprof_store_last_attempt(store, "web-1", UUID, START_S + 120), >=,
                    START_S + 60);
    g_assert_cmpint(uprof_store_last_attempt(store, "web-1", UUID, START_S), ==, START_S);
    clear();
}

static void
test_links(void)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *path = path_of("");
    g_autofree char *elsewhere = g_build_filename(top, "elsewhere", NULL);
    g_autofree char *link_path = g_build_filename(top, "link", NULL);

    g_autoptr(UprofStore) store = open_store();
    g_assert_cmpint(symlink(path, link_path), ==, 0);
    g_assert_null(uprof_store_open(link_path, false, &error));
    g_assert_nonnull(error);
    g_clear_error(&error);
    unlink(link_path);

    /* a link in place of a domain's folder is not used */
    g_autofree char *folder_link = path_of("data/web-1");
    g_assert_cmpint(g_mkdir_with_parents(elsewhere, 0700), ==, 0);
    g_assert_cmpint(symlink(elsewhere, folder_link), ==, 0);
    g_assert_null(uprof_store_slice_base(store, "web-1", UUID, START_S, NULL, &error));
    g_assert_nonnull(error);
    g_clear_error(&error);
    g_assert_false(uprof_store_note_failure(store, "web-1", UUID, START_S, "x", &error));
    g_clear_error(&error);
    g_assert_null(uprof_store_folder_open(store, "web-1", &error));
    g_clear_error(&error);
    g_autoptr(GPtrArray) names = uprof_store_folders(store);
    g_assert_cmpuint(names->len, ==, 0);
    g_assert_cmpint(rmdir(elsewhere), ==, 0); /* the folder is still empty */

    /* links and pipes in place of files are not used */
    g_autofree char *slice_link = path_of("data/db/db-20261120T091500Z.folded.gz");
    g_autofree char *fifo = path_of("data/db/db-20261120T091501Z.folded.gz");
    put("data/db/secret", "secret", 0);
    g_assert_cmpint(symlink("secret", slice_link), ==, 0);
    g_assert_cmpint(mkfifo(fifo, 0600), ==, 0);
    g_autoptr(UprofStoreFolder) folder = uprof_store_folder_open(store, "db", NULL);
    g_assert_cmpuint(folder->items->len, ==, 0);
    g_assert_null(uprof_store_read(folder, "db-20261120T091500Z", UPROF_STORE_PROFILE, 9, &error));
    g_clear_error(&error);
    g_assert_null(uprof_store_read(folder, "db-20261120T091501Z", UPROF_STORE_PROFILE, 9, &error));
    g_assert_nonnull(error);
    clear();
}

static void
test_read(void)
{
    g_autoptr(UprofStore) store = open_store();
    g_autoptr(GError) error = NULL;

    put("data/db/db-20261120.folded.gz", "12345", 0);
    g_autoptr(UprofStoreFolder) folder = uprof_store_folder_open(store, "db", NULL);
    g_autoptr(GByteArray) bytes =
        uprof_store_read(folder, "db-20261120", UPROF_STORE_PROFILE, 5, &error);
    g_assert_no_error(error);
    g_assert_cmpmem(bytes->data, bytes->len, "12345", 5);
    g_assert_null(uprof_store_read(folder, "db-20261120", UPROF_STORE_PROFILE, 4, &error));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
    clear();
}

static void
count(const char *path, void *data)
{
    (*(unsigned *)data)++;
}

static void
test_sweep(void)
{
    enum { OLD = 2 * UPROF_DAY_S };
    g_autoptr(UprofStore) store = open_store();
    unsigned n = 0;

    put("data/web-1/.virt-uprof-0123abcd.tmp", "x", OLD);
    put("data/web-1/.virt-uprof-0123abce.tmp", "x", 60);
    put("data/web-1/.virt-uprof-0123abcd.tmp2", "x", OLD);
    put("data/web-1/web-1-20261120T091500Z.folded.gz", "x", OLD);
    put("data/web-1/web-1-20261120T091500Z.functions.gz", "x", OLD);
    put("data/web-1/web-1-20261120T091501Z.folded.gz", "x", 60);
    put("data/web-1/web-1-20261120T091501Z.functions.gz", "x", 60);
    put("data/web-1/web-1-20261120T091502Z.folded.gz", "x", OLD);
    put("data/web-1/web-1-20261120T091502Z.functions.gz", "x", OLD);
    put("data/web-1/web-1-20261120T091502Z.meta.json", "x", OLD);
    put("data/web-1/web-1-20261120T091503Z.functions.gz", "x", OLD);
    put("data/web-1/notes.txt", "x", OLD);
    put("summary/.virt-uprof-0123abcd.tmp", "x", OLD);
    put("summary/notes.txt", "x", OLD);
    put(".virt-uprof-0123abcd.tmp", "x", OLD);
    uprof_store_remove_leftovers(store, time(NULL), true, count, &n);
    g_assert_cmpuint(n, ==, 5);
    g_assert_true(exists("summary/.virt-uprof-0123abcd.tmp"));
    uprof_store_remove_leftovers(store, time(NULL), false, count, &n);
    g_assert_cmpuint(n, ==, 10);
    g_assert_false(exists("data/web-1/.virt-uprof-0123abcd.tmp"));
    g_assert_true(exists("data/web-1/.virt-uprof-0123abce.tmp"));
    g_assert_true(exists("data/web-1/.virt-uprof-0123abcd.tmp2"));
    g_assert_false(exists("data/web-1/web-1-20261120T091500Z.folded.gz"));
    g_assert_false(exists("data/web-1/web-1-20261120T091500Z.functions.gz"));
    g_assert_true(exists("data/web-1/web-1-20261120T091501Z.folded.gz"));
    g_assert_true(exists("data/web-1/web-1-20261120T091501Z.functions.gz"));
    g_assert_true(exists("data/web-1/web-1-20261120T091502Z.functions.gz"));
    g_assert_false(exists("data/web-1/web-1-20261120T091503Z.functions.gz"));
    g_assert_true(exists("data/web-1/web-1-20261120T091502Z.folded.gz"));
    g_assert_true(exists("data/web-1/notes.txt"));
    g_assert_false(exists("summary/.virt-uprof-0123abcd.tmp"));
    g_assert_true(exists("summary/notes.txt"));
    g_assert_true(exists(".virt-uprof-0123abcd.tmp"));
    clear();
}

static void
test_remove(void)
{
    g_autoptr(UprofStore) store = open_store();

    put("data/web-1/web-1-20261120.folded.gz", "x", 0);
    put("data/web-1/web-1-20261120.meta.json", "x", 0);
    put("data/web-1/web-1-20261120.failures", "x", 0);
    put("data/web-1/web-1-20261120T091500Z.meta.json", "x", 0);
    put("data/web-1/web-1-20261120T091500Z.functions.gz", "x", 0);
    g_autoptr(UprofStoreFolder) folder = uprof_store_folder_open(store, "web-1", NULL);
    g_assert_true(uprof_store_remove(folder, "web-1-20261120", NULL));
    g_assert_true(uprof_store_remove(folder, "web-1-20261120", NULL));
    uprof_store_remove_if_empty(store, folder);
    g_assert_true(exists("data/web-1/web-1-20261120T091500Z.meta.json"));
    g_assert_true(uprof_store_remove(folder, "web-1-20261120T091500Z", NULL));
    uprof_store_remove_if_empty(store, folder);
    g_assert_false(exists("data/web-1"));
    g_assert_true(exists("data"));
    clear();
}

static void
test_rename(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofStore) store = open_store();

    put("data/web-1/web-1-20261120.pending", "new", 0);
    put("data/web-1/web-1-20261120.meta.json", "old", 0);
    g_autoptr(UprofStoreFolder) folder = uprof_store_folder_open(store, "web-1", NULL);
    g_assert_true(uprof_store_rename(folder, "web-1-20261120", UPROF_STORE_PENDING,
                                     UPROF_STORE_SIDECAR, &error));
    g_assert_false(exists("data/web-1/web-1-20261120.pending"));
    g_autoptr(GByteArray) bytes =
        uprof_store_read(folder, "web-1-20261120", UPROF_STORE_SIDECAR, 9, NULL);
    g_assert_cmpmem(bytes->data, bytes->len, "new", 3);
    g_assert_false(uprof_store_rename(folder, "web-1-20261120", UPROF_STORE_PENDING,
                                      UPROF_STORE_SIDECAR, &error));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_NO_FILE);
    g_assert_true(uprof_store_remove_one(folder, "web-1-20261120", UPROF_STORE_SIDECAR, NULL));
    g_assert_true(uprof_store_remove_one(folder, "web-1-20261120", UPROF_STORE_SIDECAR, NULL));
    g_assert_false(exists("data/web-1/web-1-20261120.meta.json"));
    clear();
}

static void
test_lock(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofStore) one = open_store();
    g_autoptr(UprofStore) other = open_store();
    bool taken = true;

    g_assert_true(uprof_store_lock(one, &taken, &error));
    g_assert_false(taken);
    g_assert_false(uprof_store_lock(other, &taken, &error));
    g_assert_true(taken);
    g_assert_no_error(error);
    g_clear_pointer(&one, uprof_store_close);
    g_assert_true(uprof_store_lock(other, &taken, &error));
    clear();
}

static void
test_room(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofStore) store = open_store();

    g_assert_true(uprof_store_has_room(store, 0, &error));
    g_assert_no_error(error);
    g_assert_false(uprof_store_has_room(store, UINT64_MAX, &error));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_FAILED);
    g_assert_nonnull(strstr(error->message, "virt-uprof prune"));
    clear();
}

static void
test_owner(void)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *path = path_of("");

    if (geteuid() != 0) {
        g_test_skip("only root's stores are looked at this closely");
        return;
    }
    uprof_store_close(open_store());
    g_assert_cmpint(chmod(path, 0770), ==, 0);
    g_assert_null(uprof_store_open(path, false, &error));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_DENIED);
    g_clear_error(&error);
    g_assert_cmpint(chmod(path, 0750), ==, 0);
    g_assert_cmpint(chown(path, 1, 1), ==, 0);
    g_assert_null(uprof_store_open(path, true, &error));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_DENIED);
    clear();
}

static void
test_missing(void)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *path = path_of("");

    g_assert_false(uprof_store_exists(path));
    g_assert_null(uprof_store_open(path, false, &error));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_NO_FILE);
    g_assert_cmpint(g_mkdir_with_parents(path, 0750), ==, 0);
    g_clear_error(&error);
    g_autoptr(UprofStore) store = uprof_store_open(path, false, &error);
    g_assert_no_error(error);
    g_autoptr(GPtrArray) names = uprof_store_folders(store);
    g_assert_cmpuint(names->len, ==, 0);
    g_assert_false(exists("data"));
    clear();
}

static void
test_failures(void)
{
    g_autoptr(UprofStore) store = open_store();
    g_autofree char *path = path_of("data/web-1/web-1-20261120.failures");
    g_autofree char *text = NULL;

    g_assert_true(uprof_store_note_failure(store, "web-1", UUID, START_S, "a\nb", NULL));
    g_assert_true(uprof_store_note_failure(store, "web-1", "x", START_S + 1, "c", NULL));
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    g_assert_cmpstr(text, ==,
                    "2026-11-20T09:15:00Z " UUID " a?b\n"
                    "2026-11-20T09:15:01Z - c\n");
    clear();
}

static int is_noted; /* atomic */

static gpointer
remove_again_and_again(gpointer data)
{
    UprofStore *store = data;

    while (!g_atomic_int_get(&is_noted)) {
        g_autoptr(UprofStoreFolder) folder = uprof_store_folder_open(store, "web-1", NULL);
        if (!folder)
            continue;
        g_assert_true(uprof_store_remove(folder, "web-1-20261120", NULL));
        uprof_store_remove_if_empty(store, folder);
    }
    return NULL;
}

/* Failures are noted even if `prune` removes the empty folder at the same time. */
static void
test_failures_removed(void)
{
    g_autoptr(UprofStore) store = open_store();
    g_autoptr(UprofStore) other = open_store();
    GThread *thread = g_thread_new("prune", remove_again_and_again, other);

    for (unsigned i = 0; i < 20000; i++) {
        g_autoptr(GError) error = NULL;
        g_assert_true(uprof_store_note_failure(store, "web-1", UUID, START_S, "busy", &error));
        g_assert_no_error(error);
    }
    g_atomic_int_set(&is_noted, 1);
    g_thread_join(thread);
    clear();
}

static void
test_uuids(void)
{
    char mark[UPROF_STORE_UUID_BYTES];

    g_assert_true(uprof_store_uuid_digits(UUID, mark));
    g_assert_cmpstr(mark, ==, DIGITS);
    g_assert_false(uprof_store_uuid_digits("../../etc", mark));
    g_assert_false(uprof_store_uuid_digits(NULL, mark));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    top = g_dir_make_tmp("virt-uprof-store-XXXXXX", NULL);
    g_assert_nonnull(top);
    g_test_add_func("/store/safe-names", test_safe_names);
    g_test_add_func("/store/hostile-folders", test_hostile_folders);
    g_test_add_func("/store/modes", test_modes);
    g_test_add_func("/store/stems", test_stems);
    g_test_add_func("/store/items", test_items);
    g_test_add_func("/store/same-second", test_same_second);
    g_test_add_func("/store/writable-by-others", test_writable_by_others);
    g_test_add_func("/store/last-turn", test_last_turn);
    g_test_add_func("/store/links", test_links);
    g_test_add_func("/store/read", test_read);
    g_test_add_func("/store/sweep", test_sweep);
    g_test_add_func("/store/remove", test_remove);
    g_test_add_func("/store/rename", test_rename);
    g_test_add_func("/store/lock", test_lock);
    g_test_add_func("/store/room", test_room);
    g_test_add_func("/store/owner", test_owner);
    g_test_add_func("/store/missing", test_missing);
    g_test_add_func("/store/failures", test_failures);
    g_test_add_func("/store/failures-removed", test_failures_removed);
    g_test_add_func("/store/uuids", test_uuids);
    const int code = g_test_run();
    remove_all(top);
    g_free(top);
    return code;
}
