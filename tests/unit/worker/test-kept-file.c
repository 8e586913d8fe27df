/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../../src/worker/kept-file-priv.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utime.h>

#include "uprof/rule-list.h"

static const char uuid[] = "6F9619FF-8B86-D011-B42D-00CF4FC964FF";
static const char other_uuid[] = "6f9619ff-8b86-d011-b42d-00cf4fc964aa";

/* The cache, which all tests of this process share, and the domain's folder in it */
static char *cache, *folder;

static char *
path_of(const char *name)
{
    return g_build_filename(folder, name, NULL);
}

/* As a run that leaves this list */
static void
run_and_leave(const char *text)
{
    g_autoptr(GByteArray) list = g_byte_array_new();
    const int fd = uprof_kept_file_open(uuid);

    g_assert_cmpint(fd, >=, 0);
    g_byte_array_append(list, (const guint8 *)text, (guint)strlen(text));
    uprof_kept_file_write(fd, list);
    uprof_kept_file_save(fd, uuid);
    close(fd);
}

/* Checks what the next run of the domain gets. @text: (nullable): %NULL: nothing */
static void
check_next(const char *id, const char *text)
{
    const int fd = uprof_kept_file_open(id);
    g_autoptr(GByteArray) list = uprof_kept_file_read(fd);

    g_assert_true((list != NULL) == (text != NULL));
    if (text)
        g_assert_cmpmem(list->data, list->len, text, strlen(text));
    close(fd);
}

static void
remove_files(void)
{
    g_autofree char *rules = path_of("rules"), *new = path_of(".rules-new");

    g_unlink(rules);
    g_unlink(new);
}

static void
test_next_run(void)
{
    g_autofree char *rules = path_of("rules");
    struct stat info;

    check_next(uuid, NULL);
    run_and_leave("first");
    check_next(uuid, "first");
    run_and_leave("2nd");
    check_next(uuid, "2nd");
    check_next(other_uuid, NULL);
    g_assert_cmpint(stat(rules, &info), ==, 0);
    g_assert_cmpuint(info.st_mode & 07777, ==, 0600);
    g_assert_cmpint(stat(folder, &info), ==, 0);
    g_assert_cmpuint(info.st_mode & 07777, ==, 0700);
    remove_files();
}

static void
test_no_domain(void)
{
    g_assert_cmpint(uprof_kept_file_open(NULL), <, 0);
    g_assert_cmpint(uprof_kept_file_open("../../etc"), <, 0);
}

/* A worker that writes nothing, or any length, changes nothing. */
static void
test_hostile_worker(void)
{
    static const uint64_t lengths[] = { 0, UPROF_RULE_LIST_BYTES_MAX + 1, UINT64_MAX };

    run_and_leave("kept");
    for (size_t i = 0; i < G_N_ELEMENTS(lengths); i++) {
        const int fd = uprof_kept_file_open(uuid);
        g_assert_cmpint(pwrite(fd, &lengths[i], sizeof(lengths[i]), 0), ==, sizeof(lengths[i]));
        g_assert_cmpint(ftruncate(fd, UINT32_MAX), ==, -1);
        g_assert_cmpint(ftruncate(fd, 0), ==, -1);
        uprof_kept_file_save(fd, uuid);
        close(fd);
        check_next(uuid, "kept");
    }
    remove_files();
}

static void
test_foreign_files(void)
{
    g_autofree char *rules = path_of("rules");
    g_autofree char *large = g_strnfill(UPROF_RULE_LIST_BYTES_MAX + 1, 'x');

    g_assert_true(g_file_set_contents(rules, large, -1, NULL));
    check_next(uuid, NULL);
    g_unlink(rules);
    g_assert_cmpint(symlink("/etc/passwd", rules), ==, 0);
    check_next(uuid, NULL);
    run_and_leave("instead of the link");
    check_next(uuid, "instead of the link");
    remove_files();
    g_assert_cmpint(mkfifo(rules, 0600), ==, 0);
    check_next(uuid, NULL);
    remove_files();
}

/* A run has died while it wrote its file. */
static void
test_left_behind(void)
{
    g_autofree char *new = path_of(".rules-new");

    run_and_leave("first");
    g_assert_true(g_file_set_contents(new, "half", -1, NULL));
    check_next(uuid, "first");
    run_and_leave("2nd");
    check_next(uuid, "2nd");
    g_assert_false(g_file_test(new, G_FILE_TEST_EXISTS));
    remove_files();
}

static void
test_shared_folder(void)
{
    run_and_leave("first");
    g_assert_cmpint(chmod(folder, 0777), ==, 0);
    check_next(uuid, NULL);
    run_and_leave("2nd");
    g_assert_cmpint(chmod(folder, 0700), ==, 0);
    check_next(uuid, "first");
    remove_files();
}

static void
test_forget(void)
{
    run_and_leave("first");
    uprof_kept_file_forget(other_uuid);
    check_next(uuid, "first");
    uprof_kept_file_forget(uuid);
    check_next(uuid, NULL);
    uprof_kept_file_forget(uuid);
}

/* A worker that reads the list and writes none leaves the file as it is. */
static void
test_clear(void)
{
    run_and_leave("first");
    const int fd = uprof_kept_file_open(uuid);
    uprof_kept_file_clear(fd);
    uprof_kept_file_save(fd, uuid);
    close(fd);
    check_next(uuid, "first");
    remove_files();
}

/* The first run of a new domain deletes files that no run has written for a month. */
static void
test_old(void)
{
    g_autofree char *old = g_build_filename(cache, "old", NULL);
    g_autofree char *recent = g_build_filename(cache, "recent", NULL);
    g_autofree char *copied = g_build_filename(cache, "copied", NULL);
    const char *const folders[] = { old, recent, copied };
    g_autofree char *copy = g_build_filename(copied, ".build-id", NULL);
    const struct utimbuf long_ago = { 0 };

    for (size_t i = 0; i < G_N_ELEMENTS(folders); i++) {
        g_autofree char *rules = g_build_filename(folders[i], "rules", NULL);
        g_assert_cmpint(g_mkdir_with_parents(folders[i], 0700), ==, 0);
        g_assert_true(g_file_set_contents(rules, "x", -1, NULL));
        if (folders[i] != recent)
            g_assert_cmpint(utime(rules, &long_ago), ==, 0);
    }
    g_assert_true(g_file_set_contents(copy, "x", -1, NULL));
    g_rmdir(folder);
    run_and_leave("first");
    g_assert_false(g_file_test(old, G_FILE_TEST_EXISTS));
    g_assert_true(g_file_test(recent, G_FILE_TEST_EXISTS));
    g_assert_true(g_file_test(copy, G_FILE_TEST_EXISTS));
    check_next(uuid, "first");
    g_autofree char *left = g_build_filename(recent, "rules", NULL);
    g_unlink(left);
    g_rmdir(recent);
    g_unlink(copy);
    g_rmdir(copied);
    remove_files();
}

int
main(int argc, char **argv)
{
    g_autofree char *work = g_dir_make_tmp("kept-file-XXXXXX", NULL);
    g_autofree char *lower = g_ascii_strdown(uuid, -1);

    g_test_init(&argc, &argv, NULL);
    g_setenv("VIRT_UPROF_CACHE", work, TRUE);
    cache = g_build_filename(work, "domains", NULL);
    folder = g_build_filename(cache, lower, NULL);
    g_test_add_func("/kept-file/next-run", test_next_run);
    g_test_add_func("/kept-file/no-domain", test_no_domain);
    g_test_add_func("/kept-file/hostile-worker", test_hostile_worker);
    g_test_add_func("/kept-file/foreign-files", test_foreign_files);
    g_test_add_func("/kept-file/left-behind", test_left_behind);
    g_test_add_func("/kept-file/shared-folder", test_shared_folder);
    g_test_add_func("/kept-file/forget", test_forget);
    g_test_add_func("/kept-file/clear", test_clear);
    g_test_add_func("/kept-file/old", test_old);
    const int status = g_test_run();
    g_rmdir(folder);
    g_rmdir(cache);
    g_rmdir(work);
    g_free(cache);
    g_free(folder);
    return status;
}
