/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../../src/snapshot/capture-writer-priv.h"
#include "uprof/capture.h"
#include "uprof/error.h"

/* These tests compare bytes. The tests of the reader check what the bytes mean. */

static const char header[] = "UPROFCAP\1\0\0\0\0\0\0\0";
enum { HEADER_LEN = sizeof(header) - 1 };

static int
open_memory(void)
{
    const int fd = memfd_create("capture", MFD_CLOEXEC);

    g_assert_cmpint(fd, >=, 0);
    return fd;
}

static GBytes *
read_back(int fd)
{
    struct stat info;

    g_assert_cmpint(fstat(fd, &info), ==, 0);
    g_autofree char *bytes = g_malloc(info.st_size + 1);
    g_assert_cmpint(pread(fd, bytes, info.st_size, 0), ==, info.st_size);
    return g_bytes_new(bytes, info.st_size);
}

static void
assert_body(int fd, UprofCaptureType type, const void *body, size_t len)
{
    g_autoptr(GBytes) file = read_back(fd);
    size_t size;
    const uint8_t *bytes = g_bytes_get_data(file, &size);
    const uint32_t head[] = { GUINT32_TO_LE(type), GUINT32_TO_LE(len) };

    g_assert_cmpuint(size, ==, HEADER_LEN + sizeof(head) + len);
    g_assert_cmpmem(bytes, HEADER_LEN, header, HEADER_LEN);
    g_assert_cmpmem(bytes + HEADER_LEN, sizeof(head), head, sizeof(head));
    g_assert_cmpmem(bytes + HEADER_LEN + sizeof(head), len, body, len);
}

static void
test_nothing(void)
{
    const int fd = open_memory();
    g_autoptr(UprofWriter) writer = uprof_writer_new(fd);
    g_autoptr(GError) error = NULL;

    g_assert_true(uprof_writer_flush(writer, &error));
    g_assert_no_error(error);
    g_assert_cmpint(lseek(fd, 0, SEEK_END), ==, 0);
    close(fd);
}

static void
test_image(void)
{
    static const char body[] = "label=[app]\npath=a?b\ndigest=00ff\n";
    const int fd = open_memory();
    g_autoptr(UprofWriter) writer = uprof_writer_new(fd);
    g_autoptr(UprofRun) run = uprof_run_new();
    g_autoptr(GError) error = NULL;

    const UprofRunImage *image = uprof_run_add_image(run, "[app]", "a\nb", NULL, "00ff");
    g_assert_true(uprof_writer_image(writer, image, &error));
    g_assert_true(uprof_writer_flush(writer, &error));
    assert_body(fd, UPROF_CAPTURE_IMAGE, body, strlen(body));
    close(fd);
}

static void
test_end(void)
{
    static const char body[] =
        "access=monitor\nwhy=it did not stop\nstarted_utc_ns=9\n"
        "ended_by=gone\nduration_ns=18446744073709551615\ndivisor=0\nlate=1\nbusy=0\n"
        "skipped=0\nstuck=7\nheld_ns=8\ncpu_ns=0\n";
    const int fd = open_memory();
    g_autoptr(UprofWriter) writer = uprof_writer_new(fd);
    g_autoptr(UprofRun) run = uprof_run_new();
    g_autoptr(GError) error = NULL;

    run->domain = g_strdup("not at the end");
    run->access = g_strdup("monitor");
    run->why = g_strdup("it did not stop");
    run->started_utc_ns = 9;
    run->ended_by = g_strdup("gone");
    run->duration_ns = UINT64_MAX;
    run->late = 1;
    run->stuck = 7;
    run->held_ns = 8;
    g_assert_true(uprof_writer_end(writer, run, &error));
    g_assert_true(uprof_writer_flush(writer, &error));
    assert_body(fd, UPROF_CAPTURE_END, body, strlen(body));
    close(fd);
}

static void
test_page(void)
{
    uint8_t body[8 + UPROF_CAPTURE_PAGE_BYTES] = { 0x00, 0x70, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01 };
    const int fd = open_memory();
    g_autoptr(UprofWriter) writer = uprof_writer_new(fd);
    g_autoptr(GError) error = NULL;

    memset(body + 8, 0xcc, UPROF_CAPTURE_PAGE_BYTES);
    g_assert_true(uprof_writer_page(writer, UINT64_C(0x0102030405067000), body + 8, &error));
    g_assert_true(uprof_writer_flush(writer, &error));
    assert_body(fd, UPROF_CAPTURE_PAGE, body, sizeof(body));
    close(fd);
}

static void
test_absent_page(void)
{
    static const uint8_t body[8] = { 0x00, 0x10 };
    const int fd = open_memory();
    g_autoptr(UprofWriter) writer = uprof_writer_new(fd);
    g_autoptr(GError) error = NULL;

    g_assert_true(uprof_writer_page(writer, 0x1000, NULL, &error));
    g_assert_true(uprof_writer_flush(writer, &error));
    assert_body(fd, UPROF_CAPTURE_PAGE, body, sizeof(body));
    close(fd);
}

/* A long list is in several records. */
static void
test_tasks(void)
{
    enum { FIRST = UPROF_CAPTURE_TASKS_PART_BYTES, LAST = 3, HEAD = 8 };
    g_autofree uint8_t *tasks = g_malloc(FIRST + LAST);
    const uint8_t heads[2][HEAD] = { { UPROF_CAPTURE_TASKS, 0, 0, 0, 0, 0, 1, 0 },
                                     { UPROF_CAPTURE_TASKS, 0, 0, 0, LAST, 0, 0, 0 } };
    const int fd = open_memory();
    g_autoptr(UprofWriter) writer = uprof_writer_new(fd);
    g_autoptr(GError) error = NULL;
    size_t size;

    for (size_t i = 0; i < FIRST + LAST; i++)
        tasks[i] = (uint8_t)(i * 7);
    g_assert_true(uprof_writer_tasks(writer, (UprofSlice){ tasks, FIRST + LAST }, &error));
    g_assert_true(uprof_writer_flush(writer, &error));
    g_autoptr(GBytes) file = read_back(fd);
    const uint8_t *bytes = g_bytes_get_data(file, &size);
    g_assert_cmpuint(size, ==, HEADER_LEN + 2 * HEAD + FIRST + LAST);
    bytes += HEADER_LEN;
    g_assert_cmpmem(bytes, HEAD, heads[0], HEAD);
    g_assert_cmpmem(bytes + HEAD, FIRST, tasks, FIRST);
    g_assert_cmpmem(bytes + HEAD + FIRST, HEAD, heads[1], HEAD);
    g_assert_cmpmem(bytes + 2 * HEAD + FIRST, LAST, tasks + FIRST, LAST);
    close(fd);
}

/* A vCPU that did not run has no registers and no hold: the writer ignores them. */
static void
test_rest(void)
{
    static const uint8_t body[] = {
        0x08,
        0x07,
        0x06,
        0x05,
        0x04,
        0x03,
        0x02,
        0x01, /* time_ns */
        0x44,
        0x33,
        0x22,
        0x11,
        0x02,
        0,
        0,
        0, /* vcpu, weight */
        0x78,
        0x56,
        0x34,
        0x12,
        0x09,
        0,
        0,
        0, /* count, reset */
        UPROF_GRAIN_VCPU,
        1,
        0,
        0, /* grain, idle */
    };
    const int fd = open_memory();
    g_autoptr(UprofWriter) writer = uprof_writer_new(fd);
    g_autofree UprofSnapshot *snapshot = g_new(UprofSnapshot, 1);
    g_autoptr(GError) error = NULL;

    memset(snapshot, 0xa5, sizeof(*snapshot));
    snapshot->time_ns = UINT64_C(0x0102030405060708);
    snapshot->vcpu = 0x11223344;
    snapshot->weight = 2;
    snapshot->count = 0x12345678;
    snapshot->reset = 9;
    snapshot->grain = UPROF_GRAIN_VCPU;
    snapshot->idle = snapshot->same = true;
    g_assert_true(uprof_writer_snapshot(writer, snapshot, &error));
    g_assert_true(uprof_writer_flush(writer, &error));
    assert_body(fd, UPROF_CAPTURE_REST, body, sizeof(body));
    close(fd);
}

/* The longest possible texts still fit into a record that readers accept. */
static void
test_longest_run(void)
{
    const int fd = open_memory();
    g_autoptr(UprofWriter) writer = uprof_writer_new(fd);
    g_autoptr(UprofRun) run = uprof_run_new();
    g_autoptr(GError) error = NULL;

    for (size_t i = 0; i < uprof_run_n_fields; i++) {
        void *member = G_STRUCT_MEMBER_P(run, uprof_run_fields[i].offset);

        if (uprof_run_fields[i].kind == UPROF_RUN_TEXT)
            *(char **)member = g_strnfill(100 * 1000, 'x');
        if (uprof_run_fields[i].kind == UPROF_RUN_UINT)
            *(uint64_t *)member = UINT64_MAX;
    }
    g_assert_true(uprof_writer_run(writer, run, &error));
    g_assert_true(uprof_writer_flush(writer, &error));

    g_autoptr(GBytes) file = read_back(fd);
    g_assert_cmpuint(g_bytes_get_size(file), <=, HEADER_LEN + 8 + UPROF_CAPTURE_TEXT_BYTES_MAX);
    close(fd);
}

/* More than one buffer of records: no byte is lost or moved. */
static void
test_many_snapshots(void)
{
    enum { N = 20 };
    const int fd = open_memory();
    g_autoptr(UprofWriter) writer = uprof_writer_new(fd);
    g_autofree UprofSnapshot *snapshot = g_new0(UprofSnapshot, 1);
    g_autoptr(GError) error = NULL;

    snapshot->n_windows = 1;
    snapshot->windows[0].len = UPROF_SNAPSHOT_BYTES_MAX;
    for (unsigned i = 0; i < N; i++) {
        memset(snapshot->bytes, i, sizeof(snapshot->bytes));
        g_assert_true(uprof_writer_snapshot(writer, snapshot, &error));
    }
    g_assert_true(uprof_writer_flush(writer, &error));

    g_autoptr(GBytes) file = read_back(fd);
    size_t size;
    const uint8_t *bytes = g_bytes_get_data(file, &size);
    g_assert_cmpuint((size - HEADER_LEN) % N, ==, 0);
    const size_t record = (size - HEADER_LEN) / N;
    for (unsigned i = 0; i < N; i++) {
        g_assert_cmpuint(bytes[HEADER_LEN + i * record], ==, UPROF_CAPTURE_SNAPSHOT);
        g_assert_cmpuint(bytes[HEADER_LEN + (i + 1) * record - 1], ==, i);
    }
    close(fd);
}

static void
test_full_disk(void)
{
    const int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    g_autoptr(UprofWriter) writer = uprof_writer_new(fd);

    if (fd < 0) {
        g_test_skip("no /dev/full");
        return;
    }
    g_assert_true(uprof_writer_page(writer, 0, NULL, NULL)); /* only buffered */
    for (unsigned i = 0; i < 3; i++) {
        g_autoptr(GError) error = NULL;

        g_assert_false(uprof_writer_flush(writer, &error));
        g_assert_error(error, UPROF_ERROR, UPROF_ERROR_FAILED);
        g_assert_true(g_pattern_match_simple("capture cannot be written: *", error->message));
    }
    g_autoptr(GError) error = NULL;
    g_assert_false(uprof_writer_page(writer, 0, NULL, &error));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_FAILED);
    close(fd);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    g_test_add_func("/capture-writer/nothing", test_nothing);
    g_test_add_func("/capture-writer/image", test_image);
    g_test_add_func("/capture-writer/end", test_end);
    g_test_add_func("/capture-writer/page", test_page);
    g_test_add_func("/capture-writer/absent-page", test_absent_page);
    g_test_add_func("/capture-writer/tasks", test_tasks);
    g_test_add_func("/capture-writer/rest", test_rest);
    g_test_add_func("/capture-writer/longest-run", test_longest_run);
    g_test_add_func("/capture-writer/many-snapshots", test_many_snapshots);
    g_test_add_func("/capture-writer/full-disk", test_full_disk);
    uprof_writer_free(NULL);
    return g_test_run();
}
