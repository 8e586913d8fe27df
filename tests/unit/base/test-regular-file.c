/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/regular-file.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* Paths below the folder "in" of a test tree. Each file has its own path as its text. */
static const struct {
    const char *path;
    int reasons[2]; /* errno by UprofFileLinks; 0: the file is opened */
    const char *found;
} cases[] = {
    { "file", { 0, 0 }, "in/file" },
    { "/file", { 0, 0 }, "in/file" },
    { "sub/file", { 0, 0 }, "in/sub/file" },
    { "sub//./file", { 0, 0 }, "in/sub/file" },
    { "sub/../file", { 0, 0 }, "in/file" },
    { "none", { ENOENT, ENOENT }, NULL },
    { "file/none", { ENOTDIR, ENOTDIR }, NULL },
    { "file/", { 0, 0 }, "in/file" },
    { "", { EINVAL, EINVAL }, NULL },
    { "sub", { EINVAL, EINVAL }, NULL },
    { "pipe", { EINVAL, EINVAL }, NULL },
    { "../secret", { EXDEV, ENOENT }, NULL },
    { "sub/../../secret", { EXDEV, ENOENT }, NULL },
    { "../file", { EXDEV, 0 }, "in/file" },
    { "inner", { ELOOP, 0 }, "in/sub/file" },
    { "rooted", { ELOOP, 0 }, "in/sub/file" },
    { "outer", { ELOOP, ENOENT }, NULL },
    { "folder/file", { ELOOP, 0 }, "in/sub/file" },
    { "upper/file", { ELOOP, 0 }, "in/file" },
    { "upper/secret", { ELOOP, ENOENT }, NULL },
    { "circle", { ELOOP, ELOOP }, NULL },
    { "device", { ELOOP, ENOENT }, NULL },
};

static char *tree;

static char *
in_tree(const char *path)
{
    return g_build_filename(tree, path, NULL);
}

static void
make_tree(void)
{
    static const char *const folders[] = { "in", "in/sub" };
    static const char *const files[] = { "in/file", "in/sub/file", "secret" };
    static const char *const links[][2] = {
        { "sub/file", "in/inner" }, { "/sub/file", "in/rooted" }, { "../secret", "in/outer" },
        { "sub", "in/folder" },     { "../../..", "in/upper" },   { "circle", "in/circle" },
        { "in", "alias" },          { "/dev/null", "in/device" },
    };

    tree = g_dir_make_tmp("uprof-regular-XXXXXX", NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(folders); i++) {
        g_autofree char *path = in_tree(folders[i]);
        g_assert_cmpint(g_mkdir(path, 0700), ==, 0);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(files); i++) {
        g_autofree char *path = in_tree(files[i]);
        g_assert_true(g_file_set_contents(path, files[i], -1, NULL));
    }
    for (size_t i = 0; i < G_N_ELEMENTS(links); i++) {
        g_autofree char *path = in_tree(links[i][1]);
        g_assert_cmpint(symlink(links[i][0], path), ==, 0);
    }
    g_autofree char *pipe = in_tree("in/pipe");
    g_assert_cmpint(mkfifo(pipe, 0600), ==, 0);
}

static void
remove_tree(void)
{
    const char *const command[] = { "rm", "-r", tree, NULL };

    g_assert_true(g_spawn_sync(NULL, (char **)command, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL,
                               NULL, NULL, NULL));
    g_free(tree);
}

static void
assert_text(int fd, const char *text)
{
    char bytes[64] = "";

    g_assert_cmpint(fd, >=, 0);
    g_assert_cmpint(read(fd, bytes, sizeof(bytes) - 1), ==, strlen(text));
    g_assert_cmpstr(bytes, ==, text);
    close(fd);
}

static void
check_case(size_t i, const char *folder, UprofFileLinks links)
{
    const int fd = uprof_regular_file_open_below(folder, cases[i].path, links);
    const int reason = fd < 0 ? errno : 0;

    g_test_message("'%s', links %d: %s", cases[i].path, (int)links, g_strerror(reason));
    g_assert_cmpint(reason, ==, cases[i].reasons[links]);
    if (reason == 0)
        assert_text(fd, cases[i].found);
}

/* The folder itself may be reached by a link. */
static void
test_below(void)
{
    g_autofree char *folder = in_tree("in");
    g_autofree char *alias = in_tree("alias");

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        check_case(i, folder, UPROF_FILE_NO_LINKS);
        check_case(i, folder, UPROF_FILE_AS_IN_ROOT);
        check_case(i, alias, UPROF_FILE_NO_LINKS);
    }
    g_assert_cmpint(uprof_regular_file_open_below(tree, "in/file/x", UPROF_FILE_NO_LINKS), ==, -1);
    g_assert_cmpint(uprof_regular_file_open_below("/none", "x", UPROF_FILE_NO_LINKS), ==, -1);
    g_assert_cmpint(errno, ==, ENOENT);
}

static void
test_by_path(void)
{
    g_autofree char *file = in_tree("in/file");
    g_autofree char *link = in_tree("in/inner");
    g_autofree char *pipe = in_tree("in/pipe");

    assert_text(uprof_regular_file_open(file), "in/file");
    assert_text(uprof_regular_file_open(link), "in/sub/file");
    g_assert_cmpint(uprof_regular_file_open(pipe), ==, -1);
    g_assert_cmpint(errno, ==, EINVAL);
    g_assert_cmpint(uprof_regular_file_open("/dev/null"), ==, -1);
    g_assert_cmpint(errno, ==, EINVAL);
}

/* Other kinds of files are not even opened. */
static void
test_not_opened(void)
{
    g_autofree char *folder = in_tree("in");
    g_autofree char *pipe = in_tree("in/pipe");
    g_autofree char *file = in_tree("in/file");
    char event[4096];
    const int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

    g_assert_cmpint(inotify_add_watch(watch, pipe, IN_OPEN), >=, 0);
    uprof_regular_file_open(pipe);
    uprof_regular_file_open_below(folder, "pipe", UPROF_FILE_NO_LINKS);
    uprof_regular_file_open_below(folder, "pipe", UPROF_FILE_AS_IN_ROOT);
    g_assert_cmpint(read(watch, event, sizeof(event)), ==, -1);
    g_assert_cmpint(errno, ==, EAGAIN);
    /* the watch reports a file that is opened */
    g_assert_cmpint(inotify_add_watch(watch, file, IN_OPEN), >=, 0);
    close(uprof_regular_file_open(file));
    g_assert_cmpint(read(watch, event, sizeof(event)), >, 0);
    close(watch);
}

/* Paths that are too long, and a link that leads to itself with ever longer paths, are errors. */
static void
test_hostile(void)
{
    g_autofree char *folder = in_tree("in");
    g_autofree char *one = in_tree("in/one");
    g_autoptr(GString) path = g_string_new(NULL);

    while (path->len < 4000)
        g_string_append(path, "sub/../");
    g_string_append(path, "file");
    assert_text(uprof_regular_file_open_below(folder, path->str, UPROF_FILE_NO_LINKS), "in/file");
    while (path->len < 5000)
        g_string_prepend(path, "sub/../");
    g_assert_cmpint(uprof_regular_file_open_below(folder, path->str, UPROF_FILE_NO_LINKS), ==, -1);
    g_assert_cmpint(errno, ==, ENAMETOOLONG);
    g_assert_cmpint(symlink("one/one", one), ==, 0);
    g_assert_cmpint(uprof_regular_file_open_below(folder, "one", UPROF_FILE_AS_IN_ROOT), ==, -1);
    g_assert_cmpint(errno, ==, ELOOP);
}

static void
test_reason(void)
{
    g_assert_true(uprof_regular_file_is_missing(ENOTDIR));
    g_assert_false(uprof_regular_file_is_missing(ELOOP));
    g_assert_cmpstr(uprof_regular_file_reason(ENOENT), ==, "there is no such file");
    g_assert_cmpstr(uprof_regular_file_reason(ELOOP), ==, "there is a link in its path");
    g_assert_cmpstr(uprof_regular_file_reason(EXDEV), ==, "it leads out of its folder");
    g_assert_cmpstr(uprof_regular_file_reason(EINVAL), ==, "it is not a regular file");
    g_assert_cmpstr(uprof_regular_file_reason(EACCES), ==, g_strerror(EACCES));
}

/* Makes a file of @kind (mknod(2)). Returns: the errno of opening this file as input; 0: opened */
static int
open_special(mode_t kind, dev_t device, uid_t owner)
{
    g_autofree char *path = in_tree("special");

    if (mknod(path, kind | 0666, device) != 0 || chown(path, owner, owner) != 0) {
        g_assert_cmpint(geteuid(), !=, 0); /* only root may make devices */
        unlink(path);
        return EINVAL;
    }
    const int fd = uprof_regular_file_open_input(path);
    const int reason = fd < 0 ? errno : 0;
    if (fd >= 0)
        close(fd);
    g_assert_cmpint(unlink(path), ==, 0);
    return reason;
}

static gpointer
write_later(gpointer path)
{
    g_usleep(100 * 1000);
    const int fd = open(path, O_WRONLY);
    g_assert_cmpint(write(fd, "x", 1), ==, 1);
    close(fd);
    return NULL;
}

/* Input may be a pipe, which may be opened for writing only later. */
static void
test_input(void)
{
    enum { OTHER = 12345 };
    g_autofree char *folder = in_tree("in"), *pipe_path = in_tree("in/pipe");
    char text[2];
    int ends[2];

    g_assert_cmpint(uprof_regular_file_open_input(folder), ==, -1);
    g_assert_cmpint(errno, ==, EISDIR);
    g_assert_cmpint(open_special(S_IFSOCK, 0, geteuid()), ==, EINVAL);
    g_assert_cmpint(open_special(S_IFCHR, makedev(1, 7), geteuid()), ==, EINVAL);
    g_assert_cmpint(open_special(S_IFIFO, 0, OTHER), ==, EINVAL);
    g_assert_cmpint(open_special(S_IFIFO, 0, geteuid()), ==, ETIMEDOUT);

    GThread *writer = g_thread_new("writer", write_later, pipe_path);
    const int named = uprof_regular_file_open_input(pipe_path);
    g_assert_cmpint(named, >=, 0);
    g_assert_cmpint(read(named, text, sizeof(text)), ==, 1);
    g_assert_cmpint(read(named, text, sizeof(text)), ==, 0);
    g_thread_join(writer);
    close(named);

    g_assert_cmpint(pipe(ends), ==, 0);
    g_assert_cmpint(write(ends[1], "yz", 2), ==, 2);
    g_autofree char *path = g_strdup_printf("/dev/fd/%d", ends[0]);
    const int unnamed = uprof_regular_file_open_input(path);
    g_assert_cmpint(unnamed, >=, 0);
    g_assert_cmpint(read(unnamed, text, sizeof(text)), ==, 2);
    close(unnamed);
    close(ends[0]);
    close(ends[1]);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    make_tree();
    g_test_add_func("/regular-file/below", test_below);
    g_test_add_func("/regular-file/by-path", test_by_path);
    g_test_add_func("/regular-file/not-opened", test_not_opened);
    g_test_add_func("/regular-file/hostile", test_hostile);
    g_test_add_func("/regular-file/input", test_input);
    g_test_add_func("/regular-file/reason", test_reason);
    const int status = g_test_run();
    remove_tree();
    return status;
}
