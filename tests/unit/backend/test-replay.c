/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "../../../src/snapshot/capture-writer-priv.h"
#include "memory-guest.h"
#include "uprof/backend.h"

enum { PAGE = UPROF_CAPTURE_PAGE_BYTES, RAM_LEN = 8 * PAGE, SNAPSHOTS = 3 };

static char *
new_path(void)
{
    g_autoptr(GError) error = NULL;
    char *path = NULL;

    close(g_file_open_tmp("uprof-test-XXXXXX", &path, &error));
    g_assert_no_error(error);
    return path;
}

static UprofRun *
make_run(const char *arch)
{
    UprofRun *run = uprof_run_new();

    run->program = g_strdup("virt-uprof 0");
    run->domain = g_strdup("web-1");
    run->arch = g_strdup(arch);
    run->vcpus = 2;
    return run;
}

/* Writes three snapshots. With each, the recorder reads a page of RAM and a page without memory. */
static void
write_capture(const char *path, const UprofRun *run, bool is_complete)
{
    const MemoryPlan plan = { .n_vcpus = 2, .grain = UPROF_GRAIN_GUEST, .ram_len = RAM_LEN };
    g_autoptr(MemoryGuest) guest = memory_guest_open(&plan);
    const int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    g_autoptr(UprofWriter) writer = uprof_writer_new(fd);
    g_autoptr(UprofGuest) recorder = uprof_recorder_new(&guest->base, writer);
    g_autofree UprofSnapshot *snapshot = g_new0(UprofSnapshot, 1);
    g_autofree uint8_t *bytes = g_malloc(2 * PAGE);
    g_autoptr(GError) error = NULL;

    g_assert_true(uprof_writer_run(writer, run, &error));
    for (unsigned i = 0; i < SNAPSHOTS; i++) {
        UprofSpan spans[] = { { .gpa = i * PAGE, .into = bytes, .len = PAGE },
                              { .gpa = (100 + i) * PAGE, .into = bytes + PAGE, .len = PAGE } };
        memset(guest->ram + i * PAGE, (int)i + 1, PAGE);
        snapshot->time_ns = snapshot->hold = i;
        snapshot->weight = 1;
        snapshot->vcpu = i % 2;
        snapshot->regs.word_bytes = 8;
        snapshot->regs.pc = 0x1000 + i;
        snapshot->n_windows = 1;
        snapshot->windows[0] = (UprofWindow){ .gva = 0x8000, .len = 16 };
        g_assert_true(uprof_writer_snapshot(writer, snapshot, &error));
        uprof_guest_read(recorder, UPROF_LANE_WORKER, spans, 2);
        g_assert_false(spans[0].missing);
        g_assert_true(spans[1].missing);
    }
    if (is_complete)
        g_assert_true(uprof_writer_end(writer, run, &error));
    g_assert_true(uprof_writer_flush(writer, &error));
    g_assert_null(uprof_recorder_error(recorder));
    close(fd);
}

static UprofGuest *
open_replay(const char *path, GError **error)
{
    const UprofTarget target = { .path = path };

    return uprof_guest_open(&uprof_replay_ops, &target, error);
}

static bool
read_byte(UprofGuest *guest, uint64_t gpa, uint8_t *byte)
{
    UprofSpan span = { .gpa = gpa, .into = byte, .len = 1 };

    uprof_guest_read(guest, UPROF_LANE_WORKER, &span, 1);
    return !span.missing;
}

static void
test_write_and_read(void)
{
    g_autofree char *path = new_path();
    g_autoptr(UprofRun) run = make_run("x86_64");
    g_autofree UprofSnapshot *snapshot = g_new0(UprofSnapshot, 1);
    g_autoptr(GError) error = NULL;
    uint8_t byte;

    run->ended_by = g_strdup("duration");
    run->duration_ns = 42;
    write_capture(path, run, true);
    g_autoptr(UprofGuest) guest = open_replay(path, &error);
    g_assert_no_error(error);
    unlink(path);
    g_assert_cmpuint(guest->n_vcpus, ==, 2);
    g_assert_cmpint(guest->grain, ==, UPROF_GRAIN_NONE);
    g_assert_cmpstr(guest->arch->name, ==, "x86_64");
    g_assert_cmpstr(uprof_replay_run(guest)->domain, ==, "web-1");
    g_assert_cmpstr(uprof_replay_run(guest)->ended_by, ==, "duration");
    g_assert_cmpuint(uprof_replay_run(guest)->duration_ns, ==, 42);
    g_assert_false(read_byte(guest, 0, &byte)); /* no page is known before the first snapshot */
    for (unsigned i = 0; i < SNAPSHOTS; i++) {
        g_assert_cmpint(uprof_guest_next(guest, snapshot, &error), ==, UPROF_OK);
        g_assert_cmpuint(snapshot->time_ns, ==, i);
        g_assert_cmphex(snapshot->regs.pc, ==, 0x1000 + i);
        g_assert_true(read_byte(guest, i * PAGE + 17, &byte));
        g_assert_cmpuint(byte, ==, i + 1);
        g_assert_false(
            read_byte(guest, (i + 1) * PAGE, &byte)); /* this page comes with the next snapshot */
        g_assert_false(read_byte(guest, (100 + i) * PAGE, &byte));
    }
    for (unsigned i = 0; i < 2; i++)
        g_assert_cmpint(uprof_guest_next(guest, snapshot, &error), ==, UPROF_GONE);

    /* the second page of this span was not recorded */
    uint8_t two[2];
    UprofSpan span = { .gpa = SNAPSHOTS * PAGE - 1, .into = two, .len = 2 };
    uprof_guest_read(guest, UPROF_LANE_WORKER, &span, 1);
    g_assert_true(span.missing);
}

/* Rests keep their order among the snapshots, and take no values from them. */
static void
test_rests(void)
{
    static const char records[] = "RsRRsR"; /* R: a rest, s: a snapshot */
    g_autofree char *path = new_path();
    g_autoptr(UprofRun) run = make_run("x86_64");
    const int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    g_autoptr(UprofWriter) writer = uprof_writer_new(fd);
    g_autofree UprofSnapshot *snapshot = g_new0(UprofSnapshot, 1);
    const uint8_t page[PAGE] = { 42 };
    g_autoptr(GError) error = NULL;
    uint8_t byte;

    g_assert_true(uprof_writer_run(writer, run, &error));
    for (unsigned i = 0; records[i]; i++) {
        uprof_snapshot_clear(snapshot);
        snapshot->time_ns = i;
        snapshot->weight = 1;
        snapshot->same = records[i] == 'R';
        snapshot->count = snapshot->same ? i + 2 : 1;
        snapshot->idle = snapshot->same;
        snapshot->regs.pc = 0x1000;
        g_assert_true(uprof_writer_snapshot(writer, snapshot, &error));
        if (records[i] == 's')
            g_assert_true(uprof_writer_page(writer, i * PAGE, page, &error));
    }
    g_assert_true(uprof_writer_end(writer, run, &error));
    g_assert_true(uprof_writer_flush(writer, &error));
    close(fd);

    g_autoptr(UprofGuest) guest = open_replay(path, &error);
    g_assert_no_error(error);
    unlink(path);
    for (unsigned i = 0; records[i]; i++) {
        const bool is_rest = records[i] == 'R';
        g_assert_cmpint(uprof_guest_next(guest, snapshot, &error), ==, UPROF_OK);
        g_assert_cmpuint(snapshot->time_ns, ==, i);
        g_assert_cmpint(snapshot->same, ==, is_rest);
        g_assert_cmpuint(snapshot->count, ==, is_rest ? i + 2 : 1);
        g_assert_cmpint(snapshot->idle, ==, is_rest);
        g_assert_cmphex(snapshot->regs.pc, ==, is_rest ? 0 : 0x1000);
        g_assert_cmpint(read_byte(guest, PAGE, &byte), ==, i >= 1);
        g_assert_cmpint(read_byte(guest, 4 * PAGE, &byte), ==, i >= 4);
    }
    g_assert_cmpint(uprof_guest_next(guest, snapshot, &error), ==, UPROF_GONE);
}

/* A malformed record ends the replay with an error. */
static void
test_bad_rest(void)
{
    static const uint8_t rest[8 + 28] = { UPROF_CAPTURE_REST, 0, 0, 0, 28 }; /* of weight 0 */
    g_autofree char *path = new_path();
    g_autoptr(UprofRun) run = make_run("x86_64");
    g_autofree UprofSnapshot *snapshot = g_new0(UprofSnapshot, 1);
    g_autoptr(GError) error = NULL;

    write_capture(path, run, false);
    const int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    g_assert_cmpint(write(fd, rest, sizeof(rest)), ==, sizeof(rest));
    close(fd);
    g_autoptr(UprofGuest) guest = open_replay(path, &error);
    unlink(path);
    g_assert_no_error(error);
    for (unsigned i = 0; i < SNAPSHOTS; i++)
        g_assert_cmpint(uprof_guest_next(guest, snapshot, &error), ==, UPROF_OK);
    g_assert_cmpint(uprof_guest_next(guest, snapshot, &error), ==, UPROF_FAILED);
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
}

static void
test_killed_run(void)
{
    g_autofree char *path = new_path();
    g_autoptr(UprofRun) run = make_run("x86_64");
    g_autoptr(GError) error = NULL;

    write_capture(path, run, false);
    g_autoptr(UprofGuest) guest = open_replay(path, &error);
    unlink(path);
    g_assert_no_error(error);
    g_assert_cmpstr(uprof_replay_run(guest)->ended_by, ==, "error");
}

/* A file cut at any byte either gives its complete snapshots or is refused. */
static void
test_cut(void)
{
    g_autofree char *path = new_path();
    g_autoptr(UprofRun) run = make_run("x86_64");
    g_autofree UprofSnapshot *snapshot = g_new0(UprofSnapshot, 1);
    g_autofree char *bytes = NULL;
    unsigned last = 0;
    gsize len;

    write_capture(path, run, true);
    g_assert_true(g_file_get_contents(path, &bytes, &len, NULL));
    for (gsize cut = 0; cut <= len; cut += cut < 1000 ? 1 : 97) {
        g_autoptr(GError) error = NULL;
        unsigned n = 0;
        g_assert_true(g_file_set_contents(path, bytes, (gssize)cut, NULL));
        g_autoptr(UprofGuest) guest = open_replay(path, &error);
        g_assert_cmpint(guest != NULL, ==, error == NULL);
        while (guest && uprof_guest_next(guest, snapshot, NULL) == UPROF_OK)
            n++;
        g_assert_cmpuint(n, >=, last);
        last = n;
    }
    g_assert_cmpuint(last, ==, SNAPSHOTS);
    unlink(path);
}

/* Somebody truncates the file while it is replayed: its pages are missing, and the replay ends. */
static void
test_truncated(void)
{
    g_autofree char *path = new_path();
    g_autoptr(UprofRun) run = make_run("x86_64");
    g_autofree UprofSnapshot *snapshot = g_new0(UprofSnapshot, 1);
    g_autoptr(GError) error = NULL;
    uint8_t byte;

    write_capture(path, run, true);
    g_autoptr(UprofGuest) guest = open_replay(path, &error);
    g_assert_no_error(error);
    g_assert_cmpint(uprof_guest_next(guest, snapshot, &error), ==, UPROF_OK);
    g_assert_true(read_byte(guest, 17, &byte));
    g_assert_cmpint(truncate(path, 0), ==, 0);
    g_assert_false(read_byte(guest, 17, &byte));
    while (uprof_guest_next(guest, snapshot, &error) == UPROF_OK)
        g_assert_false(read_byte(guest, 17, &byte));
    g_assert_no_error(error);
    unlink(path);
}

/* Appends the head of a record, and @len bytes of zeros. */
static void
append_record(const char *path, uint32_t type, uint32_t record_len, off_t len)
{
    const uint32_t head[] = { type, record_len };
    const int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);

    g_assert_cmpint(write(fd, head, sizeof(head)), ==, sizeof(head));
    g_assert_cmpint(ftruncate(fd, lseek(fd, 0, SEEK_END) + len), ==, 0);
    close(fd);
}

/* Records of unknown types, a record that is longer than any valid one, and a truncated record. */
static void
test_foreign_records(void)
{
    enum { LONG = 3 << 20 };
    static const struct {
        uint32_t type, record_len;
        off_t len;
        UprofAnswer end;
    } cases[] = {
        { 99, 1000, 1000, UPROF_GONE },
        { UPROF_CAPTURE_PAGE, LONG, LONG, UPROF_FAILED },
        { UPROF_CAPTURE_PAGE, LONG, LONG - 1, UPROF_GONE },
        { UPROF_CAPTURE_PAGE, UINT32_MAX, 1000, UPROF_GONE },
    };
    g_autofree char *path = new_path();
    g_autoptr(UprofRun) run = make_run("x86_64");
    g_autofree UprofSnapshot *snapshot = g_new0(UprofSnapshot, 1);

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        write_capture(path, run, true);
        append_record(path, cases[i].type, cases[i].record_len, cases[i].len);
        g_autoptr(UprofGuest) guest = open_replay(path, &error);
        g_assert_no_error(error);
        for (unsigned j = 0; j < SNAPSHOTS; j++)
            g_assert_cmpint(uprof_guest_next(guest, snapshot, &error), ==, UPROF_OK);
        g_assert_cmpint(uprof_guest_next(guest, snapshot, &error), ==, cases[i].end);
        g_assert_true((cases[i].end == UPROF_FAILED) == (error != NULL));
        if (error)
            g_assert_nonnull(strstr(error->message, ": a record of more than 1048576 bytes"));
    }
    unlink(path);
}

/* The parts of the list of tasks come in their order. A list that is too long is an error. */
static void
test_tasks(void)
{
    enum { FIRST = UPROF_CAPTURE_TASKS_PART_BYTES, LEN = FIRST + 3, HEAD = 8 };
    g_autofree char *path = new_path();
    g_autoptr(UprofRun) run = make_run("x86_64");
    g_autofree UprofSnapshot *snapshot = g_new0(UprofSnapshot, 1);
    g_autofree uint8_t *tasks = g_malloc(LEN);
    g_autoptr(GError) error = NULL;

    for (size_t i = 0; i < LEN; i++)
        tasks[i] = (uint8_t)(i * 7);
    write_capture(path, run, false);
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    const off_t end = lseek(fd, 0, SEEK_END);
    g_autoptr(UprofWriter) writer = uprof_writer_new(fd);
    g_assert_true(uprof_writer_tasks(writer, (UprofSlice){ tasks, LEN }, &error));
    g_assert_true(uprof_writer_flush(writer, &error));
    g_autoptr(UprofGuest) empty = open_replay(path, &error);
    g_assert_cmpuint(uprof_replay_tasks(empty).len, ==, 0);
    /* the writer has begun with a header of a file, which is a record of an unknown type then */
    g_assert_cmpint(pwrite(fd, "\x63\0\0\0\x08\0\0\0", HEAD, end), ==, HEAD);
    close(fd);
    g_autoptr(UprofGuest) guest = open_replay(path, &error);
    g_assert_no_error(error);
    while (uprof_guest_next(guest, snapshot, &error) == UPROF_OK)
        continue;
    g_assert_no_error(error);
    const UprofSlice read = uprof_replay_tasks(guest);
    g_assert_cmpmem(read.data, read.len, tasks, LEN);
    for (unsigned i = 0; i <= UPROF_CAPTURE_TASKS_BYTES_MAX / FIRST; i++)
        append_record(path, UPROF_CAPTURE_TASKS, FIRST, FIRST);
    g_autoptr(UprofGuest) large = open_replay(path, &error);
    while (uprof_guest_next(large, snapshot, &error) == UPROF_OK)
        continue;
    g_assert_nonnull(error);
    g_assert_nonnull(strstr(error->message, ": the list of tasks is too long"));
    unlink(path);
}

/* More records than fit into the memory of the reader. */
static void
test_many(void)
{
    enum { PAGES = 600 };
    g_autofree char *path = new_path();
    g_autoptr(UprofRun) run = make_run("x86_64");
    const int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    g_autoptr(UprofWriter) writer = uprof_writer_new(fd);
    g_autofree UprofSnapshot *snapshot = g_new0(UprofSnapshot, 1);
    g_autoptr(GError) error = NULL;
    uint8_t page[PAGE], byte;

    g_assert_true(uprof_writer_run(writer, run, &error));
    uprof_snapshot_clear(snapshot);
    snapshot->weight = snapshot->count = 1;
    snapshot->regs.word_bytes = 8;
    for (unsigned i = 0; i < PAGES; i++) {
        memset(page, (int)(i % 251), sizeof(page));
        snapshot->time_ns = i;
        g_assert_true(uprof_writer_snapshot(writer, snapshot, &error));
        g_assert_true(uprof_writer_page(writer, (uint64_t)i * PAGE, page, &error));
    }
    g_assert_true(uprof_writer_end(writer, run, &error));
    g_assert_true(uprof_writer_flush(writer, &error));
    close(fd);

    g_autoptr(UprofGuest) guest = open_replay(path, &error);
    g_assert_no_error(error);
    for (unsigned i = 0; i < PAGES; i++) {
        g_assert_cmpint(uprof_guest_next(guest, snapshot, &error), ==, UPROF_OK);
        g_assert_cmpuint(snapshot->time_ns, ==, i);
    }
    g_assert_cmpint(uprof_guest_next(guest, snapshot, &error), ==, UPROF_GONE);
    for (unsigned i = 0; i < PAGES; i++) {
        g_assert_true(read_byte(guest, (uint64_t)i * PAGE + 4095, &byte));
        g_assert_cmpuint(byte, ==, i % 251);
    }
    unlink(path);
}

/* clang-format off */
static const struct {
    const char *name;
    const char *arch;
    uint64_t vcpus;
    const char *error;
    UprofErrorCode code;
} refusals[] = {
    { "unknown-arch", "pdp11\x1b", 1,    "'*' is of architecture 'pdp11?', which this program does not know", UPROF_ERROR_UNSUPPORTED },
    { "no-arch",      NULL,        1,    "'*' is of architecture '', which this program does not know", UPROF_ERROR_UNSUPPORTED },
    { "no-vcpus",     "x86_64",    0,    "*a guest of 0 vCPUs", UPROF_ERROR_BAD_DATA },
    { "many-vcpus",   "x86_64",    4097, "*a guest of 4097 vCPUs", UPROF_ERROR_BAD_DATA },
};
/* clang-format on */

static void
test_refusal(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_autofree char *path = new_path();
    g_autoptr(UprofRun) run = make_run(refusals[i].arch);
    g_autoptr(GError) error = NULL;

    run->vcpus = refusals[i].vcpus;
    write_capture(path, run, true);
    g_assert_null(open_replay(path, &error));
    unlink(path);
    g_assert_error(error, UPROF_ERROR, (gint)refusals[i].code);
    g_assert_true(g_pattern_match_simple(refusals[i].error, error->message));
}

static void
test_no_file(void)
{
    static const char *const paths[] = { "/nonexistent/x.capture", "/", "/dev/null" };

    for (size_t i = 0; i < G_N_ELEMENTS(paths); i++) {
        g_autoptr(GError) error = NULL;
        g_assert_null(open_replay(paths[i], &error));
        g_assert_nonnull(error);
        g_assert_true(error->domain == UPROF_ERROR);
    }
}

/* A failure to write the capture is reported, and reads of memory still succeed. */
static void
test_record_fails(void)
{
    const MemoryPlan plan = { .n_vcpus = 1, .grain = UPROF_GRAIN_GUEST, .ram_len = RAM_LEN };
    g_autoptr(MemoryGuest) guest = memory_guest_open(&plan);
    const int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    g_autofree uint8_t *bytes = g_malloc(PAGE);

    if (fd < 0) {
        g_test_skip("no /dev/full");
        return;
    }
    g_autoptr(UprofWriter) writer = uprof_writer_new(fd);
    g_autoptr(UprofGuest) recorder = uprof_recorder_new(&guest->base, writer);
    for (unsigned i = 0; i < 1000; i++) {
        UprofSpan span = { .gpa = i % 8 * PAGE, .into = bytes, .len = PAGE };
        memset(guest->ram + i % 8 * PAGE, (int)(i / 8), PAGE); /* each read needs a record */
        uprof_guest_read(recorder, UPROF_LANE_WORKER, &span, 1);
        g_assert_false(span.missing);
    }
    g_assert_nonnull(uprof_recorder_error(recorder));
    close(fd);
}

static void
read_part(UprofGuest *recorder, uint64_t gpa, uint32_t len, uint8_t *into, bool is_there)
{
    UprofSpan spans[] = { { .gpa = gpa, .into = into, .len = len },
                          { .gpa = gpa, .into = into, .len = len } };

    uprof_guest_read(recorder, UPROF_LANE_WORKER, spans, G_N_ELEMENTS(spans));
    for (unsigned i = 0; i < G_N_ELEMENTS(spans); i++)
        g_assert_cmpint(spans[i].missing, ==, !is_there);
}

/* Parts of pages are recorded as whole pages, and each page only if it has changed. */
static void
test_record_parts(void)
{
    const MemoryPlan plan = { .n_vcpus = 2, .grain = UPROF_GRAIN_GUEST, .ram_len = RAM_LEN };
    g_autoptr(MemoryGuest) guest = memory_guest_open(&plan);
    g_autofree char *path = new_path();
    g_autoptr(UprofRun) run = make_run("x86_64");
    g_autofree UprofSnapshot *snapshot = g_new0(UprofSnapshot, 1);
    const int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    g_autoptr(UprofWriter) writer = uprof_writer_new(fd);
    g_autoptr(UprofGuest) recorder = uprof_recorder_new(&guest->base, writer);
    g_autoptr(GError) error = NULL;
    uint8_t bytes[16], byte;

    for (unsigned i = 0; i < 4; i++)
        memset(guest->ram + i * PAGE, (int)i + 1, PAGE);
    snapshot->weight = 1;
    snapshot->regs.word_bytes = 8;
    g_assert_true(uprof_writer_run(writer, run, &error));
    g_assert_true(uprof_writer_snapshot(writer, snapshot, &error));
    read_part(recorder, PAGE - 8, sizeof(bytes), bytes, true);
    g_assert_cmpuint(bytes[7], ==, 1);
    g_assert_cmpuint(bytes[8], ==, 2);
    read_part(recorder, RAM_LEN - 8, sizeof(bytes), bytes, false);
    g_assert_true(uprof_writer_flush(writer, &error));
    const off_t len = lseek(fd, 0, SEEK_END);
    for (unsigned i = 0; i < 10; i++)
        read_part(recorder, PAGE + i, 1, bytes, true);
    g_assert_true(uprof_writer_flush(writer, &error));
    g_assert_cmpint(lseek(fd, 0, SEEK_END), ==, len);
    guest->ram[PAGE + 100] = 42;
    read_part(recorder, PAGE + 1, 1, bytes, true);
    g_assert_true(uprof_writer_end(writer, run, &error));
    g_assert_true(uprof_writer_flush(writer, &error));
    close(fd);

    g_autoptr(UprofGuest) replay = open_replay(path, &error);
    g_assert_no_error(error);
    unlink(path);
    g_assert_cmpint(uprof_guest_next(replay, snapshot, &error), ==, UPROF_OK);
    g_assert_true(read_byte(replay, 0, &byte));
    g_assert_cmpuint(byte, ==, 1);
    g_assert_true(read_byte(replay, PAGE + 100, &byte));
    g_assert_cmpuint(byte, ==, 42);
    g_assert_false(read_byte(replay, 2 * PAGE, &byte));
    /* across two pages: both are there, and only one */
    read_part(replay, PAGE - 8, sizeof(bytes), bytes, true);
    g_assert_cmpuint(bytes[7], ==, 1);
    g_assert_cmpuint(bytes[8], ==, 2);
    read_part(replay, 2 * PAGE - 8, sizeof(bytes), bytes, false);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    g_test_add_func("/replay/write-and-read", test_write_and_read);
    g_test_add_func("/replay/rests", test_rests);
    g_test_add_func("/replay/bad-rest", test_bad_rest);
    g_test_add_func("/replay/killed-run", test_killed_run);
    g_test_add_func("/replay/cut", test_cut);
    g_test_add_func("/replay/truncated", test_truncated);
    g_test_add_func("/replay/foreign-records", test_foreign_records);
    g_test_add_func("/replay/many", test_many);
    g_test_add_func("/replay/tasks", test_tasks);
    for (size_t i = 0; i < G_N_ELEMENTS(refusals); i++) {
        g_autofree char *path = g_strdup_printf("/replay/refusal/%s", refusals[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_refusal);
    }
    g_test_add_func("/replay/no-file", test_no_file);
    g_test_add_func("/replay/record-fails", test_record_fails);
    g_test_add_func("/replay/record-parts", test_record_parts);
    return g_test_run();
}
