/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The helper is this program itself, which $UPROF_TEST_HELPER tells what to do.
 */
#include "../../../src/fetch/disk-copy-priv.h"
#include "../../../src/fetch/disk-message-priv.h"

#include "uprof/channel.h"
#include "uprof/error.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define UUID "4dea22b3-1d52-d8f3-2516-782e98ab3fa0"
#define ID "00112233445566778899aabbccddeeff00112233"
#define OTHER_ID "ff112233445566778899aabbccddeeff00112233"

/* ---- The helper ---- */

static void
send_reply(uint32_t answer, const char *words)
{
    const UprofDiskReply head = { answer };
    const UprofSlice parts[] = { { &head, sizeof(head) }, { words, strlen(words) } };

    g_assert_true(uprof_channel_send(0, UPROF_DISK_REPLY, parts, G_N_ELEMENTS(parts), NULL, 0));
}

/* The path says how the copy ends. */
static void
copy_file(const char *path, int fd)
{
    if (strcmp(path, "/usr/bin/there") == 0 || g_str_has_suffix(path, ".debug")) {
        g_assert_cmpint(write(fd, path, strlen(path)), ==, (ssize_t)strlen(path));
        send_reply(UPROF_DISK_COPIED, "");
    } else if (strcmp(path, "/other") == 0) {
        send_reply(UPROF_DISK_CHANGED, "");
    } else if (strcmp(path, "/fails") == 0) {
        send_reply(UPROF_DISK_FAILED, "half \033 read");
    } else if (strcmp(path, "/lies") == 0) {
        send_reply(77, "");
    } else if (strcmp(path, "/dies") == 0) {
        _exit(1);
    } else {
        send_reply(UPROF_DISK_MISSING, "");
    }
}

static int
run_helper(const char *way)
{
    char texts[8192];
    UprofMessage message;

    g_assert_true(uprof_channel_receive(0, &message, texts, sizeof(texts)));
    g_assert_cmpuint(message.type, ==, UPROF_DISK_BEGIN);
    g_assert_cmpstr(texts + sizeof(UprofDiskBegin), ==, "raw");
    if (strcmp(way, "dies") == 0)
        return 1;
    send_reply(strcmp(way, "fails") == 0 ? UPROF_DISK_FAILED : UPROF_DISK_COPIED, "no \033 system");
    while (uprof_channel_receive(0, &message, texts, sizeof(texts))) {
        g_assert_cmpuint(message.n_fds, ==, 1);
        copy_file(texts + strlen(texts) + 1, message.fds[0]);
        uprof_message_close(&message);
    }
    return 0;
}

/* ---- Tests ---- */

static UprofDiskCopy *
start_copy(const char *folder, const char *way, GError **error)
{
    static const char *const formats[] = { "raw" };
    g_autofree char *own = g_file_read_link("/proc/self/exe", NULL);
    g_autofree char *disk = g_build_filename(folder, "disk", NULL);
    g_autofree char *cache = g_build_filename(folder, "cache", NULL);
    const char *const paths[] = { disk };
    g_autofree char *warning = NULL;

    g_assert_true(g_file_set_contents(disk, "x", 1, NULL));
    g_setenv("UPROF_TEST_HELPER", way, TRUE);
    UprofDiskCopy *copy =
        uprof_disk_copy_new_by(own, cache, UUID, formats, paths, 1, &warning, error);
    g_unsetenv("UPROF_TEST_HELPER");
    g_assert_cmpstr(warning, ==, copy ? "no ? system" : NULL);
    return copy;
}

static void
remove_folder(char *folder)
{
    const char *const words[] = { "rm", "-rf", folder, NULL };

    g_assert_true(g_spawn_sync(NULL, (char **)words, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL,
                               NULL, NULL, NULL));
    g_free(folder);
}

/* Copies a file, and compares the answer. Returns: (transfer full) (nullable): the reason */
static char *
copy_one(UprofDiskCopy *copy, const char *path, const char *build_id, UprofDiskAnswer expected)
{
    uint64_t bytes = 0;
    char *why;

    g_assert_cmpint(uprof_disk_copy_file(copy, path, build_id, &bytes, &why), ==, expected);
    g_assert_true((expected == UPROF_DISK_COPIED) == (bytes > 0));
    return why;
}

static void
test_answers(void)
{
    char *folder = g_dir_make_tmp("disk-copy-XXXXXX", NULL);
    g_autofree char *program =
        g_build_filename(folder, "cache/domains/" UUID "/.build-id/00", &ID[2], NULL);
    g_autofree char *debug = g_strconcat(program, ".debug", NULL);
    g_autofree char *other =
        g_build_filename(folder, "cache/domains/" UUID "/.build-id/ff", &OTHER_ID[2], NULL);
    g_autofree char *domains = g_build_filename(folder, "cache/domains", NULL);
    g_autofree char *content = NULL;
    g_autoptr(GError) error = NULL;
    struct stat info;
    UprofDiskCopy *copy = start_copy(folder, "works", &error);

    g_assert_no_error(error);
    g_assert_null(copy_one(copy, "/usr/bin/there", ID, UPROF_DISK_COPIED));
    g_assert_true(g_file_get_contents(program, &content, NULL, NULL));
    g_assert_cmpstr(content, ==, "/usr/bin/there");
    g_assert_true(g_file_test(debug, G_FILE_TEST_IS_REGULAR));
    g_assert_cmpint(stat(domains, &info), ==, 0);
    g_assert_cmpuint(info.st_mode & 0777, ==, 0700);
    g_assert_null(copy_one(copy, "/missing", OTHER_ID, UPROF_DISK_MISSING));
    g_assert_null(copy_one(copy, "/other", OTHER_ID, UPROF_DISK_CHANGED));
    g_autofree char *why = copy_one(copy, "/fails", OTHER_ID, UPROF_DISK_FAILED);
    g_assert_cmpstr(why, ==, "half ? read");
    g_autofree char *lie = copy_one(copy, "/lies", OTHER_ID, UPROF_DISK_LOST);
    g_assert_nonnull(lie);
    uprof_disk_copy_free(copy);
    g_assert_false(g_file_test(other, G_FILE_TEST_EXISTS));
    remove_folder(folder);
}

static void
test_dead_helper(void)
{
    char *folder = g_dir_make_tmp("disk-copy-XXXXXX", NULL);
    g_autoptr(GError) error = NULL;
    UprofDiskCopy *copy = start_copy(folder, "works", &error);

    g_autofree char *first = copy_one(copy, "/dies", ID, UPROF_DISK_LOST);
    g_autofree char *second = copy_one(copy, "/usr/bin/there", ID, UPROF_DISK_LOST);
    g_assert_nonnull(first);
    g_assert_nonnull(second);
    uprof_disk_copy_free(copy);
    remove_folder(folder);
}

static void
test_no_helper(void)
{
    static const char *const ways[][2] = {
        { "dies", "cannot read its disks: the program that reads disks has died*" },
        { "fails", "cannot read its disks: no ? system" },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(ways); i++) {
        char *folder = g_dir_make_tmp("disk-copy-XXXXXX", NULL);
        g_autoptr(GError) error = NULL;
        g_assert_null(start_copy(folder, ways[i][0], &error));
        g_assert_error(error, UPROF_ERROR, UPROF_ERROR_FAILED);
        g_assert_true(g_pattern_match_simple(ways[i][1], error->message));
        remove_folder(folder);
    }
}

int
main(int argc, char **argv)
{
    const char *way = g_getenv("UPROF_TEST_HELPER");

    if (way)
        return run_helper(way);
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/disk-copy/answers", test_answers);
    g_test_add_func("/disk-copy/dead-helper", test_dead_helper);
    g_test_add_func("/disk-copy/no-helper", test_no_helper);
    return g_test_run();
}
