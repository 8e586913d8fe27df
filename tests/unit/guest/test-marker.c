/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "private-run.h"
#include "../../../src/guest/marker-priv.h"
#include "uprof/clock.h"
#include "uprof/error.h"
#include "uprof/marker.h"
#include "uprof/process-stat.h"

#define UUID "4dea22b3-1d52-48f3-a516-782e98ab3fa0"
#define OTHER "4dea22b3-1d52-48f3-a516-782e98ab3fa1"
#define ABSENT "4dea22b3-1d52-48f3-a516-782e98ab3fa2"

static bool can_run;

static bool
skip_without_run(void)
{
    if (!can_run)
        g_test_skip("no mount namespace with a /run of its own");
    return !can_run;
}

static UprofMarker *
open_marker(const char *uuid)
{
    g_autoptr(GError) error = NULL;
    bool taken = true;
    UprofMarker *marker = uprof_marker_open(uuid, &taken, &error);

    g_assert_no_error(error);
    g_assert_nonnull(marker);
    g_assert_false(taken);
    return marker;
}

static void
assert_taken(const char *uuid)
{
    g_autoptr(GError) error = NULL;
    bool taken = false;

    g_assert_null(uprof_marker_open(uuid, &taken, &error));
    g_assert_no_error(error);
    g_assert_true(taken);
}

static char *
marker_path(const char *uuid)
{
    return g_build_filename(uprof_marker_folder(), uuid, NULL);
}

/* The process that has set the info, as long as it lives. */
static void
test_owner(void)
{
    UprofMarkerInfo info = { .pid = getpid(), .start = uprof_process_stat_start(getpid()) };

    if (skip_without_run())
        return;
    g_assert_cmpint(uprof_marker_owner(ABSENT), ==, 0);
    g_autoptr(UprofMarker) marker = open_marker(UUID);
    uprof_marker_set_info(marker, &info);
    g_assert_cmpint(uprof_marker_owner(UUID), ==, getpid());
    info.start++; /* an earlier process with the same number */
    uprof_marker_set_info(marker, &info);
    g_assert_cmpint(uprof_marker_owner(UUID), ==, 0);
}

/* A run that waits is seen by the run that has the lock, if that one says that it yields. */
static void
test_await(void)
{
    UprofMarkerInfo info = { .pid = getpid(), .start = uprof_process_stat_start(getpid()) };

    if (skip_without_run())
        return;
    g_assert_false(uprof_marker_is_awaited(UUID));
    g_assert_false(uprof_marker_owner_yields(UUID));
    g_autoptr(UprofMarker) marker = open_marker(UUID);
    uprof_marker_set_info(marker, &info);
    g_assert_false(uprof_marker_owner_yields(UUID));
    info.yields = true;
    uprof_marker_set_info(marker, &info);
    g_assert_true(uprof_marker_owner_yields(UUID));

    const int one = uprof_marker_await(UUID), other = uprof_marker_await(UUID);
    g_assert_cmpint(one, >=, 0);
    g_assert_cmpint(other, >=, 0);
    g_assert_true(uprof_marker_is_awaited(UUID));
    g_assert_false(uprof_marker_is_awaited(OTHER));
    close(one);
    g_assert_true(uprof_marker_is_awaited(UUID));
    close(other);
    g_assert_false(uprof_marker_is_awaited(UUID));
}

static void
test_lock(void)
{
    if (skip_without_run())
        return;
    UprofMarker *marker = open_marker(UUID);
    g_autoptr(UprofMarker) other = open_marker(OTHER);
    g_autofree char *path = marker_path(UUID);
    struct stat info;

    g_assert_cmpint(stat(path, &info), ==, 0);
    g_assert_cmpint(info.st_mode & 0777, ==, 0600);
    g_assert_cmpint(stat(uprof_marker_folder(), &info), ==, 0);
    g_assert_cmpint(info.st_mode & 0777, ==, 0700);
    g_assert_nonnull(other); /* each domain has its own lock */
    assert_taken(UUID);
    assert_taken(OTHER);
    /* the guardian's descriptor keeps the lock after the profiler's is closed */
    UprofMarker *adopted = uprof_marker_adopt(dup(uprof_marker_fd(marker)), NULL);
    uprof_marker_close(marker);
    assert_taken(UUID);
    uprof_marker_close(adopted);
    uprof_marker_close(open_marker(UUID));
    g_assert_cmpint(access(path, F_OK), ==, 0); /* the file is never deleted */
}

static void
test_info(void)
{
    UprofMarkerInfo info = { .uuid = UUID,
                             .uri = "qemu:///system",
                             .name = "web-1",
                             .access = "monitor",
                             .id = 7,
                             .qemu_pid = 8,
                             .qemu_start = 9,
                             .pid = 10,
                             .start = 11 };
    UprofMarkerInfo back;

    if (skip_without_run())
        return;
    g_autoptr(UprofMarker) marker = open_marker(UUID);
    uprof_marker_set_held(marker, UPROF_HELD_ASKED);
    uprof_marker_set_info(marker, &info);
    g_assert_cmpint(uprof_marker_held(marker, NULL), ==, UPROF_HELD_NOT);
    memset(&back, 0xff, sizeof(back));
    g_assert_true(uprof_marker_get_info(marker, &back));
    g_assert_cmpmem(&back, sizeof(back), &info, sizeof(info));

    /* strings end, whatever bytes the file has */
    memset(&info, 'x', sizeof(info));
    uprof_marker_set_info(marker, &info);
    g_assert_true(uprof_marker_get_info(marker, &back));
    g_assert_cmpuint(strlen(back.uuid), ==, sizeof(back.uuid) - 1);
    g_assert_cmpuint(strlen(back.uri), ==, sizeof(back.uri) - 1);
    g_assert_cmpuint(strlen(back.name), ==, sizeof(back.name) - 1);
    g_assert_cmpuint(strlen(back.access), ==, sizeof(back.access) - 1);
}

/* The run time outlives the process that wrote it, but not the run. */
static void
test_ran(void)
{
    const UprofMarkerInfo info = { .uuid = UUID };
    uint64_t at_ns = 0;

    if (skip_without_run())
        return;
    UprofMarker *marker = open_marker(UUID);
    uprof_marker_set_ran(marker, 5, 6);
    uprof_marker_close(marker);
    marker = open_marker(UUID);
    g_assert_cmpuint(uprof_marker_ran(marker, &at_ns), ==, 5);
    g_assert_cmpuint(at_ns, ==, 6);
    uprof_marker_set_info(marker, &info);
    g_assert_cmpuint(uprof_marker_ran(marker, &at_ns), ==, 0);
    uprof_marker_close(marker);
    uprof_marker_set_ran(NULL, 5, 6);
}

static void
test_held(void)
{
    uint64_t asked_ns = 0, since_ns = 0;

    if (skip_without_run())
        return;
    const uint64_t before_ns = uprof_clock_now_ns();
    UprofMarker *marker = open_marker(UUID);
    uprof_marker_set_held(marker, UPROF_HELD_ASKED);
    g_assert_cmpint(uprof_marker_held(marker, &asked_ns), ==, UPROF_HELD_ASKED);
    g_assert_cmpuint(asked_ns, >=, before_ns);
    uprof_marker_set_held(marker, UPROF_HELD_YES);
    g_assert_cmpint(uprof_marker_held(marker, &since_ns), ==, UPROF_HELD_YES);
    g_assert_cmpuint(since_ns, ==, asked_ns); /* the time of the first state */
    uprof_marker_close(marker);
    /* the state outlives the process that set it */
    marker = open_marker(UUID);
    g_assert_cmpint(uprof_marker_held(marker, NULL), ==, UPROF_HELD_YES);
    uprof_marker_set_held(marker, UPROF_HELD_NOT);
    uprof_marker_close(marker);
    uprof_marker_set_held(NULL, UPROF_HELD_YES);
    uprof_marker_close(NULL);
}

/* A file that is new, short, random, or older than the boot of the host. */
static void
test_hostile_file(void)
{
    UprofMarkerInfo info = { .uuid = UUID }, back;
    g_autofree char *path = NULL;

    if (skip_without_run())
        return;
    path = marker_path(UUID);
    unlink(path);
    UprofMarker *marker = open_marker(UUID);
    g_assert_false(uprof_marker_get_info(marker, &back));
    uprof_marker_set_info(marker, &info);
    uprof_marker_close(marker);

    g_autofree char *bytes = NULL;
    gsize len;
    g_assert_true(g_file_get_contents(path, &bytes, &len, NULL));
    g_autofree char *boot_id = NULL;
    g_assert_true(g_file_get_contents("/proc/sys/kernel/random/boot_id", &boot_id, NULL, NULL));
    char *at = memmem(bytes, len, boot_id, 36);
    g_assert_nonnull(at);
    *at = *at == '0' ? '1' : '0';
    g_assert_true(g_file_set_contents(path, bytes, (gssize)len, NULL));
    marker = open_marker(UUID);
    g_assert_false(uprof_marker_get_info(marker, &back));
    uprof_marker_close(marker);

    for (unsigned round = 0; round < 200; round++) {
        const unsigned at_byte = (unsigned)g_test_rand_int_range(0, (gint)len);
        for (unsigned i = 0; i < 16 && at_byte + i < len; i++)
            bytes[at_byte + i] = (char)g_test_rand_int();
        g_assert_true(
            g_file_set_contents(path, bytes, g_test_rand_int_range(0, (gint)len + 1), NULL));
        marker = open_marker(UUID);
        if (uprof_marker_get_info(marker, &back))
            g_assert_cmpuint(strlen(back.name), <, sizeof(back.name));
        g_assert_cmpint(uprof_marker_held(marker, NULL), <=, UPROF_HELD_YES);
        uprof_marker_close(marker);
    }
    unlink(path);
}

static void
test_list(void)
{
    if (skip_without_run())
        return;
    g_autofree char *other_file = marker_path("collect.lock");
    g_autofree char *one = marker_path(UUID);
    g_autofree char *other = marker_path(OTHER);

    uprof_marker_close(open_marker(UUID));
    uprof_marker_close(open_marker(OTHER));
    g_assert_true(g_file_set_contents(other_file, "", 0, NULL));
    g_autoptr(GPtrArray) uuids = uprof_marker_list();
    g_assert_cmpuint(uuids->len, ==, 2);
    for (guint i = 0; i < 2; i++)
        g_assert_true(g_uuid_string_is_valid(g_ptr_array_index(uuids, i)));
    unlink(other_file);
    unlink(one);
    unlink(other);
}

static void
test_bad_uuid(void)
{
    static const char *const bad[] = { "", "..", "web-1", "../../etc/passwd", UUID "0" };

    if (skip_without_run())
        return;
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) error = NULL;
        bool taken;
        g_assert_null(uprof_marker_open(bad[i], &taken, &error));
        g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
    }
}

static void
assert_refused(const char *pattern)
{
    g_autoptr(GError) error = NULL;
    bool taken;

    g_assert_null(uprof_marker_open(UUID, &taken, &error));
    g_assert_false(taken);
    g_assert_nonnull(error);
    g_assert_true(g_pattern_match_simple(pattern, error->message));
}

static void
test_bad_folder(void)
{
    if (skip_without_run())
        return;
    const char *folder = uprof_marker_folder();
    g_autofree char *away = g_strconcat(folder, ".away", NULL);
    g_autofree char *one = marker_path(UUID);

    uprof_marker_close(open_marker(UUID));
    g_assert_cmpint(chmod(folder, 0777), ==, 0);
    assert_refused("*may be written by others; remove it");
    g_assert_cmpint(chmod(folder, 0700), ==, 0);
    if (geteuid() == 0) {
        g_assert_cmpint(chown(folder, 65534, 0), ==, 0);
        assert_refused("*belongs to somebody else*");
        g_assert_cmpint(chown(folder, 0, 0), ==, 0);
    }
    g_assert_cmpint(rename(folder, away), ==, 0);
    g_assert_cmpint(symlink(away, folder), ==, 0);
    assert_refused("cannot open '*': *");
    g_assert_cmpint(unlink(folder), ==, 0);
    g_assert_true(g_file_set_contents(folder, "", 0, NULL));
    assert_refused("cannot open '*': *");
    g_assert_cmpint(unlink(folder), ==, 0);
    g_assert_cmpint(rename(away, folder), ==, 0);

    /* a marker that is a link or a folder */
    unlink(one);
    g_assert_cmpint(symlink("/etc/passwd", one), ==, 0);
    assert_refused("cannot open marker '*': *");
    unlink(one);
    g_assert_cmpint(mkdir(one, 0700), ==, 0);
    assert_refused("cannot open marker '*': *");
    rmdir(one);
}

static void
test_adopt_fails(void)
{
    g_autoptr(GError) error = NULL;
    const int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

    g_assert_null(uprof_marker_adopt(fd, &error));
    g_assert_nonnull(error);
    g_assert_cmpint(fcntl(fd, F_GETFD), ==, -1); /* uprof_marker_adopt() has closed it */
}

/* Only one round runs at a time, whether or not domains are locked. A symbolic link is refused. */
static void
test_round_lock(void)
{
    if (skip_without_run())
        return;
    g_autoptr(UprofMarker) marker = open_marker(UUID);
    g_autoptr(GError) error = NULL;
    g_autofree char *path = marker_path("collect.lock");
    bool taken = true;

    g_assert_nonnull(marker); /* the lock of a domain is a different one */
    const int round = uprof_marker_lock_round(&taken, &error);
    g_assert_no_error(error);
    g_assert_cmpint(round, >=, 0);
    g_assert_false(taken);
    g_assert_cmpint(uprof_marker_lock_round(&taken, &error), ==, -1);
    g_assert_no_error(error);
    g_assert_true(taken);
    /* a child of the round keeps the lock, too */
    const int step = dup(round);
    close(round);
    g_assert_cmpint(uprof_marker_lock_round(&taken, NULL), ==, -1);
    g_assert_true(taken);
    close(step);
    const int next = uprof_marker_lock_round(&taken, &error);
    g_assert_cmpint(next, >=, 0);
    close(next);

    g_assert_cmpint(unlink(path), ==, 0);
    g_assert_cmpint(symlink("/dev/null", path), ==, 0);
    g_assert_cmpint(uprof_marker_lock_round(&taken, &error), ==, -1);
    g_assert_nonnull(error);
    g_assert_false(taken);
    g_assert_cmpint(unlink(path), ==, 0);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    can_run = private_run_enter();

    g_test_add_func("/marker/lock", test_lock);
    g_test_add_func("/marker/owner", test_owner);
    g_test_add_func("/marker/await", test_await);
    g_test_add_func("/marker/info", test_info);
    g_test_add_func("/marker/ran", test_ran);
    g_test_add_func("/marker/held", test_held);
    g_test_add_func("/marker/hostile-file", test_hostile_file);
    g_test_add_func("/marker/list", test_list);
    g_test_add_func("/marker/bad-uuid", test_bad_uuid);
    g_test_add_func("/marker/bad-folder", test_bad_folder);
    g_test_add_func("/marker/adopt-fails", test_adopt_fails);
    g_test_add_func("/marker/round-lock", test_round_lock);
    const int code = g_test_run();
    private_run_leave();
    return code;
}
