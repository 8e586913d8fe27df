/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "uprof/error.h"
#include "uprof/file.h"

static char *folder;

static char *
path_of(const char *name)
{
    return g_build_filename(folder, name, NULL);
}

static void
put(const char *path, const char *text)
{
    g_assert_true(g_file_set_contents(path, text, -1, NULL));
}

static void
assert_holds(const char *path, const char *text)
{
    g_autofree char *found = NULL;

    g_assert_true(g_file_get_contents(path, &found, NULL, NULL));
    g_assert_cmpstr(found, ==, text);
}

/* Removes all files of the folder. Returns: their number */
static unsigned
empty_folder(void)
{
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    const char *name;
    unsigned n = 0;

    while ((name = g_dir_read_name(dir))) {
        g_autofree char *path = path_of(name);
        if (unlink(path) < 0)
            g_assert_cmpint(rmdir(path), ==, 0);
        n++;
    }
    return n;
}

static UprofFile *
open_file(const char *path, bool is_secret)
{
    g_autoptr(GError) error = NULL;
    UprofFile *file = uprof_file_open(path, is_secret, &error);

    g_assert_no_error(error);
    g_assert_nonnull(file);
    g_assert_cmpstr(uprof_file_path(file), ==, path);
    g_assert_false(uprof_file_is_stdout(file));
    return file;
}

static void
assert_refused(const char *path, UprofErrorCode code, const char *pattern)
{
    g_autoptr(GError) error = NULL;

    g_assert_null(uprof_file_open(path, false, &error));
    g_assert_error(error, UPROF_ERROR, (gint)code);
    g_assert_true(g_pattern_match_simple(pattern, error->message));
}

static void
test_commit(void)
{
    g_autofree char *path = path_of("x.folded");
    g_autoptr(GError) error = NULL;
    struct stat info;

    /* The old file stays until the new one is complete. */
    put(path, "old");
    UprofFile *file = open_file(path, false);
    g_assert_true(uprof_file_write(file, "ne", 2, &error));
    g_assert_true(uprof_file_write(file, "w", 1, &error));
    g_assert_true(uprof_file_write(file, NULL, 0, &error));
    assert_holds(path, "old");
    g_assert_true(uprof_file_commit(file, &error));
    assert_holds(path, "new");
    g_assert_cmpint(stat(path, &info), ==, 0);
    const mode_t mask = umask(0);
    umask(mask);
    g_assert_cmpint(info.st_mode & 0777, ==, 0666 & ~mask);
    g_assert_cmpuint(empty_folder(), ==, 1);
}

static void
test_secret(void)
{
    g_autofree char *path = path_of("x.capture");
    struct stat info;

    put(path, "old");
    g_assert_cmpint(chmod(path, 0666), ==, 0);
    const mode_t mask = umask(0);
    UprofFile *file = open_file(path, true);
    umask(mask);
    g_assert_cmpint(fstat(uprof_file_fd(file), &info), ==, 0);
    g_assert_cmpint(info.st_mode & 0777, ==, 0600);
    g_assert_true(uprof_file_commit(file, NULL));
    g_assert_cmpint(stat(path, &info), ==, 0);
    g_assert_cmpint(info.st_mode & 0777, ==, 0600);
    g_assert_cmpuint(empty_folder(), ==, 1);
}

static void
test_abort(void)
{
    g_autofree char *path = path_of("x.folded");

    UprofFile *file = open_file(path, false);
    g_assert_true(uprof_file_write(file, "half", 4, NULL));
    uprof_file_abort(file);
    g_assert_cmpuint(empty_folder(), ==, 0);
    uprof_file_abort(NULL);
}

static void
test_refused(void)
{
    g_autofree char *missing = path_of("no/such/x");
    g_autofree char *in_file = path_of("file/x");
    g_autofree char *file = path_of("file");
    g_autofree char *to_folder = path_of("to-folder");
    g_autofree char *hostile = path_of("no\x1b[31m\n%s/x");

    put(file, "");
    g_assert_cmpint(symlink(folder, to_folder), ==, 0);
    assert_refused(missing, UPROF_ERROR_FAILED, "cannot open the folder of '*': *");
    assert_refused(in_file, UPROF_ERROR_FAILED, "cannot open the folder of '*': *");
    assert_refused(folder, UPROF_ERROR_FAILED, "cannot write '*': *");
    assert_refused(to_folder, UPROF_ERROR_FAILED, "cannot write '*': *");
    assert_refused(hostile, UPROF_ERROR_FAILED, "cannot open the folder of '*?[31m?%s/x': *");
    g_assert_cmpuint(empty_folder(), ==, 2);
}

enum { NOBODY = 65534 };

static void
test_read_only_folder(void)
{
    g_autofree char *path = path_of("x");

    /* Root may write everywhere, so the test runs as another user here. */
    const bool as_other = geteuid() == 0;
    g_assert_cmpint(chmod(folder, 0555), ==, 0);
    g_assert_true(!as_other || seteuid(NOBODY) == 0);
    assert_refused(path, UPROF_ERROR_FAILED, "cannot write '*': *");
    g_assert_true(!as_other || seteuid(0) == 0);
    g_assert_cmpint(chmod(folder, 0700), ==, 0);
    g_assert_cmpuint(empty_folder(), ==, 0);
}

static void
test_folder_of_everybody(void)
{
    g_autofree char *path = path_of("x");

    g_assert_cmpint(chmod(folder, 0777), ==, 0);
    if (geteuid() == 0)
        assert_refused(path, UPROF_ERROR_FAILED,
                       "the folder of '*' may be written by everybody and is not sticky: *");
    else
        uprof_file_abort(open_file(path, false));
    g_assert_cmpint(chmod(folder, 01777), ==, 0);
    uprof_file_abort(open_file(path, false));
    g_assert_cmpint(chmod(folder, 0700), ==, 0);
    g_assert_cmpuint(empty_folder(), ==, 0);
}

static void
test_direct(void)
{
    g_autoptr(GError) error = NULL;
    struct stat info;

    UprofFile *file = open_file("/dev/null", false);
    g_assert_true(uprof_file_write(file, "x", 1, &error));
    g_assert_true(uprof_file_commit(file, &error));
    g_assert_cmpint(stat("/dev/null", &info), ==, 0);
    g_assert_true(S_ISCHR(info.st_mode));

    if (access("/dev/full", W_OK) != 0) {
        g_test_skip("no /dev/full");
        return;
    }
    file = open_file("/dev/full", false);
    g_assert_false(uprof_file_write(file, "x", 1, &error));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_FAILED);
    g_assert_true(g_pattern_match_simple("cannot write '/dev/full': *", error->message));
    uprof_file_abort(file);
    g_assert_cmpint(stat("/dev/full", &info), ==, 0);
}

/* A link is replaced and never followed, because somebody else may have made it. */
static void
test_link(void)
{
    g_autofree char *path = path_of("x");
    g_autofree char *pipe = path_of("pipe");
    g_autofree char *target = path_of("target");
    const char *const targets[] = { pipe, target, "/dev/null", "/dev/full", "/nonexistent/file" };
    struct stat info;

    g_assert_cmpint(mkfifo(pipe, 0600), ==, 0);
    put(target, "untouched");
    for (size_t i = 0; i < G_N_ELEMENTS(targets); i++) {
        g_assert_cmpint(symlink(targets[i], path), ==, 0);
        UprofFile *file = open_file(path, false);
        g_assert_true(uprof_file_write(file, "new", 3, NULL));
        g_assert_true(uprof_file_commit(file, NULL));
        g_assert_cmpint(lstat(path, &info), ==, 0);
        g_assert_true(S_ISREG(info.st_mode));
        assert_holds(path, "new");
        unlink(path);
    }
    assert_holds(target, "untouched");
    g_assert_cmpint(symlink(folder, path), ==, 0);
    assert_refused(path, UPROF_ERROR_FAILED, "cannot write '*/x': Is a directory");
    g_assert_cmpuint(empty_folder(), ==, 3);
}

/* A pipe gets the bytes if somebody reads from it. Pipes of other users are not opened. */
static void
test_pipe(void)
{
    g_autofree char *path = path_of("pipe");
    g_autoptr(GError) error = NULL;
    char bytes[8] = "";

    g_assert_cmpint(mkfifo(path, 0600), ==, 0);
    assert_refused(path, UPROF_ERROR_FAILED,
                   "cannot write '*/pipe': nobody reads from this pipe; start its reader first");
    const int reader = open(path, O_RDONLY | O_NONBLOCK);
    UprofFile *file = open_file(path, false);
    g_assert_cmpint(fcntl(uprof_file_fd(file), F_GETFL) & O_NONBLOCK, ==, 0);
    g_assert_true(uprof_file_write(file, "new", 3, &error));
    g_assert_true(uprof_file_commit(file, &error));
    g_assert_cmpint(read(reader, bytes, sizeof(bytes)), ==, 3);
    g_assert_cmpstr(bytes, ==, "new");
    if (geteuid() == 0) {
        g_assert_cmpint(chown(path, 65534, 65534), ==, 0);
        assert_refused(path, UPROF_ERROR_FAILED,
                       "cannot write '*/pipe': it is the device or pipe of another user");
    }
    close(reader);
    g_assert_cmpuint(empty_folder(), ==, 1);
}

static void
test_stdout(void)
{
    UprofFile *file = uprof_file_open("-", false, NULL);

    g_assert_true(uprof_file_is_stdout(file));
    g_assert_cmpint(uprof_file_fd(file), ==, STDOUT_FILENO);
    g_assert_true(uprof_file_commit(file, NULL));
    uprof_file_abort(uprof_file_open("-", true, NULL));
    g_assert_cmpint(write(STDOUT_FILENO, "", 0), ==, 0); /* stdout is still open */
}

/* Opens a part, writes to it, and ends as a program does that is killed. */
static void
leave_part(const char *path, const char *text)
{
    const pid_t pid = fork();
    int status;

    if (pid == 0) {
        UprofFile *file = uprof_file_open_part(path, NULL);
        _exit(file && uprof_file_write(file, text, strlen(text), NULL) ? 0 : 1);
    }
    g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
    g_assert_cmpint(status, ==, 0);
}

/* A killed program leaves a part, which the next one replaces, but not while somebody writes it. */
static void
test_part(void)
{
    g_autofree char *path = path_of("x");
    g_autofree char *part = path_of("x.part");
    g_autoptr(GError) error = NULL;
    struct stat info;

    leave_part(path, "killed");
    assert_holds(part, "killed");
    g_assert_cmpint(stat(part, &info), ==, 0);
    g_assert_cmpint(info.st_mode & 0777, ==, 0600);
    g_assert_false(g_file_test(path, G_FILE_TEST_EXISTS));
    UprofFile *one = uprof_file_open_part(path, &error);
    g_assert_no_error(error);
    g_assert_true(uprof_file_write(one, "one", 3, &error));
    UprofFile *other = uprof_file_open_part(path, &error);
    g_assert_no_error(error);
    g_assert_true(uprof_file_write(other, "other", 5, &error));
    assert_holds(part, "one");
    g_assert_true(uprof_file_commit(other, &error));
    assert_holds(path, "other");
    g_assert_true(uprof_file_commit(one, &error));
    assert_holds(path, "one");
    uprof_file_abort(uprof_file_open_part(path, &error));
    g_assert_false(g_file_test(part, G_FILE_TEST_EXISTS));
    g_assert_cmpint(symlink("/dev/full", part), ==, 0); /* somebody else's link is not followed */
    one = uprof_file_open_part(path, &error);
    g_assert_true(uprof_file_write(one, "two", 3, &error));
    g_assert_true(uprof_file_commit(one, &error));
    assert_holds(path, "two");
    g_assert_cmpuint(empty_folder(), ==, 2);
}

/* If the disk is full, the old file stays, and no temporary file remains. */
static void
test_no_space(void)
{
    g_autofree char *path = path_of("x");
    g_autoptr(GError) error = NULL;
    char block[4096] = "";
    bool ok = true;

    if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0 ||
        mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("tmpfs", folder, "tmpfs", 0, "size=16k,mode=0700") < 0) {
        g_test_skip("a small file system cannot be mounted here");
        return;
    }
    put(path, "old");
    UprofFile *file = open_file(path, false);
    for (unsigned i = 0; i < 8 && ok; i++)
        ok = uprof_file_write(file, block, sizeof(block), &error);
    g_assert_false(ok);
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_FAILED);
    g_assert_true(g_pattern_match_simple("cannot write '*/x': *", error->message));
    uprof_file_abort(file);
    assert_holds(path, "old");
    g_assert_cmpuint(empty_folder(), ==, 1);
    g_assert_cmpint(umount(folder), ==, 0);
}

/* If the target cannot be replaced, commit fails and leaves no temporary file. */
static void
test_commit_fails(void)
{
    g_autofree char *path = path_of("x");
    g_autoptr(GError) error = NULL;

    UprofFile *file = open_file(path, false);
    g_assert_cmpint(mkdir(path, 0700), ==, 0); /* a folder cannot be replaced by a file */
    g_assert_false(uprof_file_commit(file, &error));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_FAILED);
    g_assert_cmpuint(empty_folder(), ==, 1);
}

static UprofFile *
open_own(int parent, const char *path)
{
    g_autoptr(GError) error = NULL;
    UprofFile *file = uprof_file_open_own(parent, path, &error);

    g_assert_no_error(error);
    g_assert_nonnull(file);
    g_assert_true(uprof_file_write(file, "new", 3, &error));
    return file;
}

/* Returns: a descriptor of the folder that has @path */
static int
open_parent(const char *path)
{
    g_autofree char *above = g_path_get_dirname(path);
    const int fd = open(above, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    g_assert_cmpint(fd, >=, 0);
    return fd;
}

/* A target of any type is replaced and not opened: opening a pipe would block. */
static void
test_own(void)
{
    const int parent = open_parent(folder);
    g_autofree char *path = path_of("x.folded.gz");
    g_autofree char *pipe = path_of("pipe");
    g_autofree char *target = path_of("target");
    const char *const targets[] = { pipe, target, "/dev/null", "/nonexistent/file" };
    struct stat info;

    g_assert_cmpint(mkfifo(pipe, 0600), ==, 0);
    put(target, "untouched");
    for (size_t i = 0; i < G_N_ELEMENTS(targets); i++) {
        g_assert_cmpint(symlink(targets[i], path), ==, 0);
        g_assert_true(uprof_file_commit(open_own(parent, path), NULL));
        g_assert_cmpint(lstat(path, &info), ==, 0);
        g_assert_true(S_ISREG(info.st_mode));
        assert_holds(path, "new");
        unlink(path);
    }
    assert_holds(target, "untouched");
    g_assert_cmpint(mkfifo(path, 0600), ==, 0);
    g_assert_true(uprof_file_commit(open_own(parent, path), NULL));
    assert_holds(path, "new");
    g_assert_cmpuint(empty_folder(), ==, 3);
    close(parent);
}

/* A folder that was just removed is created again. A link in its place is refused. */
static void
test_own_folder(void)
{
    const int parent = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    g_autofree char *inner = path_of("web-1");
    g_autofree char *path = g_build_filename(inner, "x.folded.gz", NULL);
    g_autofree char *elsewhere = path_of("elsewhere");
    g_autoptr(GError) error = NULL;
    const mode_t mask = umask(027);
    struct stat info;

    UprofFile *file = open_own(parent, path);
    g_assert_cmpint(stat(inner, &info), ==, 0);
    g_assert_cmpint(info.st_mode & 0777, ==, 0750);
    if (rmdir(inner) != 0)
        g_test_message("this file system knows no files without names");
    g_assert_true(uprof_file_commit(file, &error));
    g_assert_no_error(error);
    assert_holds(path, "new");
    g_assert_cmpint(stat(inner, &info), ==, 0);
    g_assert_cmpint(info.st_mode & 0777, ==, 0750);
    unlink(path);
    g_assert_cmpint(rmdir(inner), ==, 0);
    umask(mask);

    g_assert_cmpint(mkdir(elsewhere, 0700), ==, 0);
    g_assert_cmpint(symlink("elsewhere", inner), ==, 0);
    g_assert_null(uprof_file_open_own(parent, path, &error));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_FAILED);
    g_assert_true(g_pattern_match_simple("cannot open the folder of '*': *", error->message));
    g_assert_cmpuint(empty_folder(), ==, 2);
    close(parent);
}

/* The parent folder is known by its descriptor, because its path may lead elsewhere later. */
static void
test_own_parent(void)
{
    g_autofree char *data = path_of("data");
    g_autofree char *moved = path_of("moved");
    g_autofree char *other = path_of("other");
    g_autofree char *path = g_build_filename(data, "web-1", "x", NULL);
    g_autofree char *written = g_build_filename(moved, "web-1", "x", NULL);
    g_autofree char *inner = g_path_get_dirname(written);

    g_assert_cmpint(mkdir(data, 0700), ==, 0);
    const int parent = open(data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    g_assert_cmpint(rename(data, moved), ==, 0);
    g_assert_cmpint(mkdir(other, 0700), ==, 0);
    g_assert_cmpint(symlink("other", data), ==, 0);
    g_assert_true(uprof_file_commit(open_own(parent, path), NULL));
    assert_holds(written, "new");
    g_assert_cmpint(rmdir(other), ==, 0); /* the folder is empty */
    unlink(written);
    rmdir(inner);
    g_assert_cmpuint(empty_folder(), ==, 2);
    close(parent);
}

/* Root does not write files into a folder that somebody else may change. */
static void
test_own_owner(void)
{
    const int parent = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    g_autofree char *inner = path_of("web-1");
    g_autofree char *path = g_build_filename(inner, "x", NULL);
    g_autoptr(GError) error = NULL;

    if (geteuid() != 0) {
        g_test_skip("needs root");
        close(parent);
        return;
    }
    g_assert_cmpint(mkdir(inner, 0755), ==, 0);
    g_assert_cmpint(chown(inner, 65534, 65534), ==, 0);
    g_assert_null(uprof_file_open_own(parent, path, &error));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_DENIED);
    g_assert_true(g_pattern_match_simple("*belongs to somebody else*", error->message));
    g_assert_cmpuint(empty_folder(), ==, 1);
    close(parent);
}

static void
test_unused_path(void)
{
    g_autofree char *stem = path_of("vm-2026");
    g_autofree char *first = uprof_file_unused_path(stem, ".svg");
    g_autofree char *expected = g_strconcat(stem, ".svg", NULL);

    g_assert_cmpstr(first, ==, expected);
    put(first, "");
    g_autofree char *second = uprof_file_unused_path(stem, ".svg");
    g_assert_true(g_str_has_suffix(second, "/vm-2026-2.svg"));
    /* The name of a dangling link is in use, too. */
    g_assert_cmpint(symlink("/nonexistent/file", second), ==, 0);
    g_autofree char *third = uprof_file_unused_path(stem, ".svg");
    g_assert_true(g_str_has_suffix(third, "/vm-2026-3.svg"));
    empty_folder();
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    folder = g_dir_make_tmp("uprof-test-XXXXXX", NULL);

    g_test_add_func("/file/commit", test_commit);
    g_test_add_func("/file/secret", test_secret);
    g_test_add_func("/file/abort", test_abort);
    g_test_add_func("/file/link", test_link);
    g_test_add_func("/file/refused", test_refused);
    g_test_add_func("/file/read-only-folder", test_read_only_folder);
    g_test_add_func("/file/folder-of-everybody", test_folder_of_everybody);
    g_test_add_func("/file/direct", test_direct);
    g_test_add_func("/file/pipe", test_pipe);
    g_test_add_func("/file/stdout", test_stdout);
    g_test_add_func("/file/part", test_part);
    g_test_add_func("/file/no-space", test_no_space);
    g_test_add_func("/file/commit-fails", test_commit_fails);
    g_test_add_func("/file/own", test_own);
    g_test_add_func("/file/own-folder", test_own_folder);
    g_test_add_func("/file/own-parent", test_own_parent);
    g_test_add_func("/file/own-owner", test_own_owner);
    g_test_add_func("/file/unused-path", test_unused_path);
    const int code = g_test_run();
    rmdir(folder);
    g_free(folder);
    return code;
}
