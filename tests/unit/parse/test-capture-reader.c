/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "uprof/capture-reader.h"
#include "uprof/error.h"

static UprofSlice
slice_of(const char *text)
{
    return (UprofSlice){ text, strlen(text) };
}

static UprofRun *
make_run(void)
{
    UprofRun *run = uprof_run_new();

    for (size_t i = 0; i < uprof_run_n_fields; i++) {
        void *member = G_STRUCT_MEMBER_P(run, uprof_run_fields[i].offset);

        switch (uprof_run_fields[i].kind) {
        case UPROF_RUN_TEXT:
            *(char **)member = g_strdup_printf("a = b \xff %zu", i);
            break;
        case UPROF_RUN_UINT:
            *(uint64_t *)member = UINT64_MAX - i;
            break;
        case UPROF_RUN_BOOL:
            *(bool *)member = true;
            break;
        }
    }
    return run;
}

static void
assert_same_run(const UprofRun *run, const UprofRun *expected)
{
    for (size_t i = 0; i < uprof_run_n_fields; i++) {
        const void *member = G_STRUCT_MEMBER_P(run, uprof_run_fields[i].offset);
        const void *other = G_STRUCT_MEMBER_P(expected, uprof_run_fields[i].offset);

        switch (uprof_run_fields[i].kind) {
        case UPROF_RUN_TEXT:
            g_assert_cmpstr(*(char *const *)member, ==, *(char *const *)other);
            break;
        case UPROF_RUN_UINT:
            g_assert_cmpuint(*(const uint64_t *)member, ==, *(const uint64_t *)other);
            break;
        case UPROF_RUN_BOOL:
            g_assert_true(*(const bool *)member == *(const bool *)other);
            break;
        }
    }
}

/* Returns: a snapshot with a different number in each member that may have any number */
static UprofSnapshot *
make_snapshot(void)
{
    UprofSnapshot *snapshot = g_new0(UprofSnapshot, 1);

    snapshot->time_ns = 1;
    snapshot->hold = 2;
    snapshot->hold_ns = 3;
    snapshot->stopped_ns = UINT64_MAX;
    snapshot->vcpu = 5;
    snapshot->weight = 6;
    snapshot->count = 1;
    snapshot->reset = 7;
    snapshot->grain = UPROF_GRAIN_GUEST;
    snapshot->stale = true;
    snapshot->regs.pc = 8;
    snapshot->regs.sp = 9;
    snapshot->regs.fp = 10;
    snapshot->regs.flags = 11;
    snapshot->regs.word_bytes = 8;
    snapshot->regs.privilege = 3;
    snapshot->regs.smm = true;
    for (unsigned i = 0; i < UPROF_REGS_MAX; i++)
        snapshot->regs.reg[i] = 100 + i;
    for (unsigned i = 0; i < UPROF_SYS_MAX; i++)
        snapshot->regs.sys[i] = 200 + i;
    snapshot->n_windows = 3;
    snapshot->windows[0] = (UprofWindow){ .gva = UINT64_MAX - 15, .offset = 0, .len = 16 };
    snapshot->windows[1] = (UprofWindow){ .gva = 0x2000, .offset = 16, .len = 0 };
    snapshot->windows[2] =
        (UprofWindow){ .gva = 0x3000, .offset = 16, .len = UPROF_SNAPSHOT_BYTES_MAX - 16 };
    for (unsigned i = 0; i < UPROF_SNAPSHOT_BYTES_MAX; i++)
        snapshot->bytes[i] = i * 7;
    return snapshot;
}

/* Makes it a rest, which repeats the sample of a vCPU that has not run, with different numbers. */
static void
fill_rest(UprofSnapshot *snapshot)
{
    uprof_snapshot_clear(snapshot);
    snapshot->time_ns = UINT64_MAX - 1;
    snapshot->vcpu = 5;
    snapshot->weight = UINT32_MAX - 2;
    snapshot->count = UINT32_MAX - 3;
    snapshot->reset = 7;
    snapshot->grain = UPROF_GRAIN_VCPU;
    snapshot->idle = true;
    snapshot->same = true;
}

static GByteArray *
write_capture(const UprofRun *run, const UprofSnapshot *snapshot)
{
    const int fd = memfd_create("capture", MFD_CLOEXEC);
    g_autoptr(UprofWriter) writer = uprof_writer_new(fd);
    g_autoptr(UprofRun) images = uprof_run_new(), start = make_run();
    g_autoptr(GError) error = NULL;
    g_autofree UprofSnapshot *rest = g_new0(UprofSnapshot, 1);
    GByteArray *file = g_byte_array_new();
    uint8_t page[UPROF_CAPTURE_PAGE_BYTES];

    memset(page, 0xcc, sizeof(page));
    /* the end of the run changes these */
    start->started_utc_ns = 1;
    g_free(start->access);
    start->access = g_strdup("another");
    g_assert_true(uprof_writer_run(writer, start, &error));
    UprofRunImage *image = uprof_run_add_image(images, "[app]", "/a", "00ff", NULL);
    image->base = g_strdup("ffffffff9a000000");
    g_assert_true(uprof_writer_image(writer, image, &error));
    g_assert_true(uprof_writer_snapshot(writer, snapshot, &error));
    fill_rest(rest);
    g_assert_true(uprof_writer_snapshot(writer, rest, &error));
    g_assert_true(uprof_writer_page(writer, 0x7000, page, &error));
    g_assert_true(uprof_writer_page(writer, 0x8000, NULL, &error));
    g_assert_true(uprof_writer_end(writer, run, &error));
    g_assert_true(uprof_writer_flush(writer, &error));
    g_assert_no_error(error);

    g_byte_array_set_size(file, lseek(fd, 0, SEEK_END));
    g_assert_cmpint(pread(fd, file->data, file->len, 0), ==, file->len);
    close(fd);
    return file;
}

/* The reader returns the values that the writer got. */
static void
test_round_trip(void)
{
    g_autoptr(UprofRun) run = make_run(), read_run = uprof_run_new();
    g_autofree UprofSnapshot *snapshot = make_snapshot();
    g_autofree UprofSnapshot *read_snapshot = g_new0(UprofSnapshot, 1);
    g_autoptr(GByteArray) file = write_capture(run, snapshot);
    UprofBytes bytes = { .name = "capture", .all = { file->data, file->len } };
    UprofCaptureRecord record;
    uint64_t gpa;
    UprofSlice page;
    g_autoptr(GError) error = NULL;

    g_assert_true(uprof_capture_begin(&bytes, &error));
    g_assert_true(uprof_capture_next(&bytes, &record));
    g_assert_cmpint(record.type, ==, UPROF_CAPTURE_RUN);
    g_assert_true(uprof_capture_parse_run(record.body, read_run, &error));
    g_assert_cmpuint(read_run->duration_ns, ==, 0);

    g_assert_true(uprof_capture_next(&bytes, &record));
    g_assert_cmpint(record.type, ==, UPROF_CAPTURE_IMAGE);
    g_assert_true(uprof_capture_parse_image(record.body, read_run, &error));
    const UprofRunImage *image = g_ptr_array_index(read_run->images, 0);
    g_assert_cmpstr(image->label, ==, "[app]");
    g_assert_cmpstr(image->path, ==, "/a");
    g_assert_cmpstr(image->build_id, ==, "00ff");
    g_assert_null(image->digest);
    g_assert_cmpstr(image->base, ==, "ffffffff9a000000");

    g_assert_true(uprof_capture_next(&bytes, &record));
    g_assert_cmpint(record.type, ==, UPROF_CAPTURE_SNAPSHOT);
    g_assert_true(uprof_capture_parse_snapshot(record.body, read_snapshot, &error));
    g_assert_cmpmem(read_snapshot, sizeof(*read_snapshot), snapshot, sizeof(*snapshot));

    /* a rest has no bytes, and leaves the bytes of the slot unchanged */
    g_assert_true(uprof_capture_next(&bytes, &record));
    g_assert_cmpint(record.type, ==, UPROF_CAPTURE_REST);
    fill_rest(snapshot);
    g_assert_true(uprof_capture_parse_rest(record.body, read_snapshot, &error));
    g_assert_cmpmem(read_snapshot, sizeof(*read_snapshot), snapshot, sizeof(*snapshot));

    g_assert_true(uprof_capture_next(&bytes, &record));
    g_assert_cmpint(record.type, ==, UPROF_CAPTURE_PAGE);
    g_assert_true(uprof_capture_parse_page(record.body, &gpa, &page, &error));
    g_assert_cmphex(gpa, ==, 0x7000);
    g_assert_cmpuint(page.len, ==, UPROF_CAPTURE_PAGE_BYTES);
    g_assert_cmphex(*(const uint8_t *)page.data, ==, 0xcc);

    g_assert_true(uprof_capture_next(&bytes, &record));
    g_assert_true(uprof_capture_parse_page(record.body, &gpa, &page, &error));
    g_assert_cmphex(gpa, ==, 0x8000);
    g_assert_cmpuint(page.len, ==, 0);

    g_assert_true(uprof_capture_next(&bytes, &record));
    g_assert_cmpint(record.type, ==, UPROF_CAPTURE_END);
    g_assert_true(uprof_capture_parse_run(record.body, read_run, &error));
    g_assert_false(uprof_capture_next(&bytes, &record));
    g_assert_cmpuint(uprof_bytes_left(&bytes), ==, 0);
    assert_same_run(read_run, run);
}

/* A truncated file has its complete records, and no others. */
static void
test_cut_file(void)
{
    g_autoptr(UprofRun) run = make_run();
    g_autofree UprofSnapshot *snapshot = make_snapshot();
    snapshot->n_windows = 1;
    g_autoptr(GByteArray) file = write_capture(run, snapshot);
    unsigned last = 0;

    for (size_t len = 16; len <= file->len; len++) {
        UprofBytes bytes = { .name = "capture", .all = { file->data, len } };
        UprofCaptureRecord record;
        unsigned n = 0;

        g_assert_true(uprof_capture_begin(&bytes, NULL));
        while (uprof_capture_next(&bytes, &record))
            n++;
        g_assert_cmpuint(n, >=, last);
        g_assert_cmpuint(n, <=, last + 1);
        last = n;
    }
    g_assert_cmpuint(last, ==, 7);
}

/* clang-format off */
static const struct {
    const char *name;
    const char *bytes;
    size_t len;
    const char *error; /* NULL: must parse */
} headers[] = {
    { "good",        "UPROFCAP\1\0\0\0\0\0\0\0",     16, NULL },
    { "empty",       "",                             0,  "file byte 0: no capture of virt-uprof" },
    { "short",       "UPROFCA",                      7,  "file byte 0: no capture of virt-uprof" },
    { "other",       "PROFCAPU\1\0\0\0\0\0\0\0",     16, "*: no capture of virt-uprof" },
    { "cut",         "UPROFCAP\1\0\0\0\0\0\0",       15, "file byte 12: ends in the header" },
    { "version-0",   "UPROFCAP\0\0\0\0\0\0\0\0",     16, "*: a capture of version 0 is not known" },
    { "version-2",   "UPROFCAP\2\0\0\0\0\0\0\0",     16, "*: a capture of version 2 is not known" },
    { "not-0",       "UPROFCAP\1\0\0\0\1\0\0\0",     16, "*: a capture of version 1 is not known" },
    { "big-endian",  "UPROFCAP\0\0\0\1\0\0\0\0",     16, "*: a capture of version * is not known" },
};
/* clang-format on */

static void
test_header(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    UprofBytes bytes = { .name = "file", .all = { headers[i].bytes, headers[i].len } };
    g_autoptr(GError) error = NULL;

    const bool ok = uprof_capture_begin(&bytes, &error);

    if (!headers[i].error) {
        g_assert_no_error(error);
        g_assert_true(ok);
        g_assert_cmpuint(bytes.at, ==, 16);
        return;
    }
    g_assert_false(ok);
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
    g_assert_true(g_pattern_match_simple(headers[i].error, error->message));
    g_assert_cmpuint(bytes.at, ==, 0);
}

static void
test_unknown_records(void)
{
    static const char records[] = "\0\0\0\0\1\0\0\0x"
                                  "\x09\0\0\0\0\0\0\0"
                                  "\xff\xff\xff\xff\2\0\0\0yz"
                                  "\5\0\0\0\0\0\0\0"
                                  "\3\0\0\0\xff\xff\xff\xff";
    UprofBytes bytes = { .name = "file", .all = { records, sizeof(records) - 1 } };
    UprofCaptureRecord record;

    g_assert_true(uprof_capture_next(&bytes, &record));
    g_assert_cmpint(record.type, ==, UPROF_CAPTURE_END);
    g_assert_cmpuint(record.body.len, ==, 0);
    g_assert_false(uprof_capture_next(&bytes, &record));
    g_assert_false(uprof_capture_next(&bytes, &record));
}

/* clang-format off */
static const struct {
    const char *name;
    const char *text;
    const char *error; /* NULL: must parse */
} runs[] = {
    { "nothing",      "",                                  NULL },
    { "unknown",      "color=red\nvcpus=2\n",              NULL },
    { "equals-signs", "domain=a=b\n",                      NULL },
    { "twice",        "domain=a\ndomain=b\n",              NULL },
    { "empty-text",   "domain=\n",                         NULL },
    { "no-newline",   "vcpus=2",                           NULL },
    { "no-key",       "vcpus=2\nhello\n",                  "capture: run line 2: not 'KEY=VALUE'" },
    { "empty-line",   "vcpus=2\n\n",                       "capture: run line 2: not 'KEY=VALUE'" },
    { "not-a-number", "vcpus=two\n",                       "*: bad value of 'vcpus'" },
    { "negative",     "vcpus=-1\n",                        "*: bad value of 'vcpus'" },
    { "too-large",    "vcpus=18446744073709551616\n",      "*: bad value of 'vcpus'" },
    { "no-number",    "vcpus=\n",                          "*: bad value of 'vcpus'" },
    { "bool-2",       "idle=2\n",                          "*: bad value of 'idle'" },
    { "bool-text",    "idle=true\n",                       "*: bad value of 'idle'" },
};

static const struct {
    const char *name;
    const char *text;
    const char *error; /* NULL: must parse */
} images[] = {
    { "label-only", "label=[app]\n",                       NULL },
    { "unknown",    "label=[app]\nsize=7\n",               NULL },
    { "twice",      "label=[app]\nlabel=[b]\n",            NULL },
    { "empty",      "",                                    "capture: image line 0: no 'label' up to here" },
    { "no-label",   "path=/a\n",                           "capture: image line 1: no 'label' up to here" },
    { "no-key",     "label=[app]\nhello\n",                "*: not 'KEY=VALUE'" },
    { "not-hex",    "label=[app]\nbuild_id=../x\n",        "*: bad value of 'build_id'" },
    { "digest",     "label=[app]\ndigest=-1\n",            "*: bad value of 'digest'" },
};
/* clang-format on */

static void
assert_answer(bool ok, const GError *error, const char *pattern)
{
    if (!pattern) {
        g_assert_no_error(error);
        g_assert_true(ok);
        return;
    }
    g_assert_false(ok);
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
    g_assert_true(g_pattern_match_simple(pattern, error->message));
}

static void
test_run(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_autoptr(UprofRun) run = uprof_run_new();
    g_autoptr(GError) error = NULL;

    const bool ok = uprof_capture_parse_run(slice_of(runs[i].text), run, &error);
    assert_answer(ok, error, runs[i].error);
}

static void
test_image(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_autoptr(UprofRun) run = uprof_run_new();
    g_autoptr(GError) error = NULL;

    const bool ok = uprof_capture_parse_image(slice_of(images[i].text), run, &error);
    assert_answer(ok, error, images[i].error);
    g_assert_cmpuint(run->images->len, ==, ok ? 1 : 0);
}

static void
test_nul_in_text(void)
{
    g_autoptr(UprofRun) run = uprof_run_new();
    g_autoptr(GError) error = NULL;

    g_assert_false(uprof_capture_parse_run((UprofSlice){ "domain=a\0b", 10 }, run, &error));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
    g_assert_cmpstr(error->message, ==, "capture: run line 1: bad value of 'domain'");
}

static void
test_text_limits(void)
{
    g_autoptr(UprofRun) run = uprof_run_new();
    g_autofree char *value = g_strnfill(UPROF_CAPTURE_VALUE_BYTES_MAX, 'x');
    g_autofree char *most = g_strdup_printf("domain=%s", value);
    g_autofree char *more = g_strdup_printf("domain=%sx", value);
    g_autofree char *filling = g_strnfill(UPROF_CAPTURE_TEXT_BYTES_MAX - 2, 'x');
    g_autofree char *longest = g_strdup_printf("x=%s", filling);
    g_autofree char *too_long = g_strdup_printf("x=%sx", filling);
    g_autoptr(GError) error = NULL, long_error = NULL, image_error = NULL;

    g_assert_true(uprof_capture_parse_run(slice_of(most), run, NULL));
    g_assert_cmpstr(run->domain, ==, value);
    g_assert_false(uprof_capture_parse_run(slice_of(more), run, &error));
    g_assert_cmpstr(error->message, ==, "capture: run line 1: bad value of 'domain'");
    g_assert_true(uprof_capture_parse_run(slice_of(longest), run, NULL));
    g_assert_false(uprof_capture_parse_run(slice_of(too_long), run, &long_error));
    g_assert_cmpstr(long_error->message, ==, "capture: run line 0: 65537 bytes are too many");
    g_assert_false(uprof_capture_parse_image(slice_of(too_long), run, &image_error));
    g_assert_cmpstr(image_error->message, ==, "capture: image line 0: 65537 bytes are too many");
}

static void
test_too_many_images(void)
{
    g_autoptr(UprofRun) run = uprof_run_new();
    g_autoptr(GError) error = NULL;

    for (unsigned i = 0; i < UPROF_CAPTURE_IMAGES_MAX; i++)
        g_assert_true(uprof_capture_parse_image(slice_of("label=a"), run, NULL));
    g_assert_false(uprof_capture_parse_image(slice_of("label=a"), run, &error));
    g_assert_cmpstr(error->message, ==, "capture: image line 0: more than 1024 images");
    g_assert_cmpuint(run->images->len, ==, UPROF_CAPTURE_IMAGES_MAX);
}

/* Offsets of the numbers in the body of a snapshot. */
enum {
    WEIGHT_AT = 36,
    GRAIN_AT = 44,
    IDLE_AT,
    STALE_AT,
    N_WINDOWS_AT,
    WORD_BYTES_AT,
    PRIVILEGE_AT,
    HALTED_AT,
    SMM_AT,
    N_SYS_AT = 84,
    N_REGS_AT,
    ZERO_AT,
    WINDOW_AT = 88 + 8 * (UPROF_SYS_MAX + UPROF_REGS_MAX),
    WINDOW_LEN_AT = WINDOW_AT + 8,
};

/* Offsets of the numbers in the body of a rest. */
enum {
    REST_WEIGHT_AT = 12,
    REST_COUNT_AT = 16,
    REST_GRAIN_AT = 24,
    REST_IDLE_AT,
    REST_ZERO_AT,
    REST_LEN = 28,
};

/* clang-format off */
static const struct {
    const char *name;
    size_t at;
    uint8_t byte;
    const char *error; /* NULL: must parse */
} damages[] = {
    { "unchanged",    GRAIN_AT, UPROF_GRAIN_GUEST,  NULL },
    { "weight-0",     WEIGHT_AT, 0,                 "capture: snapshot byte 48: bad description" },
    { "grain",        GRAIN_AT, 3,                  "*: bad description" },
    { "idle",         IDLE_AT, 2,                   "*: bad description" },
    { "stale",        STALE_AT, 2,                  "*: bad description" },
    { "windows-none", N_WINDOWS_AT, 0,              "*: data behind the end of the snapshot" },
    { "windows-2",    N_WINDOWS_AT, 2,              "*: bad window 1" },
    { "windows-25",   N_WINDOWS_AT, 25,             "*: bad description" },
    { "no-registers", WORD_BYTES_AT, 0,             NULL },
    { "word-bytes-4", WORD_BYTES_AT, 4,             NULL },
    { "word-bytes-3", WORD_BYTES_AT, 3,             "*: bad registers" },
    { "word-bytes-16", WORD_BYTES_AT, 16,           "*: bad registers" },
    { "privilege-4",  PRIVILEGE_AT, 4,              "*: bad registers" },
    { "halted",       HALTED_AT, 2,                 "*: bad registers" },
    { "smm",          SMM_AT, 2,                    "*: bad registers" },
    { "sys-plus-1",   N_SYS_AT, UPROF_SYS_MAX + 1,  "*: bad registers" },
    { "regs-plus-1",  N_REGS_AT, UPROF_REGS_MAX + 1, "*: bad registers" },
    { "not-0",        ZERO_AT, 1,                   "*: bad registers" },
    { "window-short", WINDOW_LEN_AT, 15,            "*: data behind the end of the snapshot" },
    { "window-long",  WINDOW_LEN_AT, 17,            "*: bad window 0" },
    { "window-huge",  WINDOW_LEN_AT + 3, 0xff,      "*: bad window 0" },
    { "window-wraps", WINDOW_AT, 0xf1,              "*: bad window 0" },
};

/* A rest whose bytes from @at on are replaced. */
static const struct {
    const char *name;
    size_t at;
    const char *bytes;
    size_t n;
    const char *error; /* NULL: must parse */
} rest_damages[] = {
    { "unchanged",   0, "", 0,                               NULL },
    { "smallest",    REST_WEIGHT_AT, "\1\0\0\0\1\0\0\0", 8, NULL },
    { "weight-0",    REST_WEIGHT_AT, "\0\0\0\0", 4,          "capture: rest byte 28: bad description" },
    { "count-0",     REST_COUNT_AT, "\0\0\0\0", 4,           "*: bad description" },
    { "count-most",  REST_COUNT_AT, "\xff\xff\xff\xff", 4,   NULL },
    { "grain-none",  REST_GRAIN_AT, "\0", 1,                 NULL },
    { "grain-guest", REST_GRAIN_AT, "\2", 1,                 NULL },
    { "grain-3",     REST_GRAIN_AT, "\3", 1,                 "capture: rest byte 25: bad description" },
    { "not-idle",    REST_IDLE_AT, "\0", 1,                  NULL },
    { "idle-2",      REST_IDLE_AT, "\2", 1,                  "capture: rest byte 26: bad description" },
    { "idle-ff",     REST_IDLE_AT, "\xff", 1,                "*: bad description" },
    { "not-0",       REST_ZERO_AT, "\1", 1,                  "*: bad description" },
    { "not-0-high",  REST_ZERO_AT + 1, "\x80", 1,            "*: bad description" },
    { "one-more",    REST_LEN, "\0", 1,                      "capture: rest byte 28: data behind the end of the REST record" },
};
/* clang-format on */

/* a snapshot with one window of 16 bytes at the top of the address space; an unchanged rest */
static GByteArray *
make_body(UprofCaptureType type)
{
    g_autoptr(UprofRun) run = uprof_run_new();
    g_autofree UprofSnapshot *snapshot = make_snapshot();
    snapshot->n_windows = 1;
    g_autoptr(GByteArray) file = write_capture(run, snapshot);
    UprofBytes bytes = { .name = "capture", .all = { file->data, file->len } };
    UprofCaptureRecord record;
    GByteArray *body = g_byte_array_new();

    g_assert_true(uprof_capture_begin(&bytes, NULL));
    do
        g_assert_true(uprof_capture_next(&bytes, &record));
    while (record.type != type);
    return g_byte_array_append(body, record.body.data, record.body.len);
}

static void
test_damage(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_autoptr(GByteArray) body = make_body(UPROF_CAPTURE_SNAPSHOT);
    g_autofree UprofSnapshot *snapshot = g_new0(UprofSnapshot, 1);
    g_autofree UprofSnapshot *untouched = g_new0(UprofSnapshot, 1);
    g_autoptr(GError) error = NULL;

    body->data[damages[i].at] = damages[i].byte;
    const UprofSlice slice = { body->data, body->len };
    const bool ok = uprof_capture_parse_snapshot(slice, snapshot, &error);

    assert_answer(ok, error, damages[i].error);
    if (!ok)
        g_assert_cmpmem(snapshot, sizeof(*snapshot), untouched, sizeof(*untouched));
}

static void
test_cut_snapshot(void)
{
    g_autoptr(GByteArray) body = make_body(UPROF_CAPTURE_SNAPSHOT);
    g_autofree UprofSnapshot *snapshot = g_new0(UprofSnapshot, 1);

    for (size_t len = 0; len <= body->len; len++) {
        g_autoptr(GError) error = NULL;

        const bool ok =
            uprof_capture_parse_snapshot((UprofSlice){ body->data, len }, snapshot, &error);
        g_assert_true(ok == (len == body->len));
        g_assert_true(ok == !error);
    }
}

/* Windows can fill a slot completely; one more byte is refused. */
static void
test_window_limit(void)
{
    for (unsigned more = 0; more <= 1; more++) {
        g_autoptr(GByteArray) body = make_body(UPROF_CAPTURE_SNAPSHOT);
        g_autofree UprofSnapshot *snapshot = g_new0(UprofSnapshot, 1);
        const uint32_t len = UPROF_SNAPSHOT_BYTES_MAX + more;

        g_byte_array_set_size(body, WINDOW_LEN_AT + 4 + len);
        memset(body->data + WINDOW_AT, 0, 8);
        memcpy(body->data + WINDOW_LEN_AT, &(uint32_t){ GUINT32_TO_LE(len) }, 4);
        memset(body->data + WINDOW_LEN_AT + 4, 0xee, len);
        const bool ok =
            uprof_capture_parse_snapshot((UprofSlice){ body->data, body->len }, snapshot, NULL);
        g_assert_true(ok == !more);
    }
}

static void
test_rest_damage(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_autoptr(GByteArray) body = make_body(UPROF_CAPTURE_REST);
    g_autofree UprofSnapshot *untouched = make_snapshot(), *snapshot = make_snapshot();
    g_autoptr(GError) error = NULL;

    g_assert_cmpuint(body->len, ==, REST_LEN);
    if (rest_damages[i].at + rest_damages[i].n > body->len)
        g_byte_array_set_size(body, (guint)(rest_damages[i].at + rest_damages[i].n));
    memcpy(body->data + rest_damages[i].at, rest_damages[i].bytes, rest_damages[i].n);
    const UprofSlice slice = { body->data, body->len };
    const bool ok = uprof_capture_parse_rest(slice, snapshot, &error);

    assert_answer(ok, error, rest_damages[i].error);
    if (!ok)
        g_assert_cmpmem(snapshot, sizeof(*snapshot), untouched, sizeof(*untouched));
}

static void
test_cut_rest(void)
{
    g_autoptr(GByteArray) body = make_body(UPROF_CAPTURE_REST);
    g_autofree UprofSnapshot *untouched = make_snapshot(), *snapshot = make_snapshot();

    for (size_t len = 0; len < body->len; len++) {
        g_autoptr(GError) error = NULL;

        const bool ok = uprof_capture_parse_rest((UprofSlice){ body->data, len }, snapshot, &error);
        assert_answer(ok, error, "*: bad description");
        g_assert_cmpmem(snapshot, sizeof(*snapshot), untouched, sizeof(*untouched));
    }
}

/* The body of a rest is refused as a snapshot, and the other way round. */
static void
test_mixed_up(void)
{
    g_autoptr(GByteArray) rest = make_body(UPROF_CAPTURE_REST);
    g_autoptr(GByteArray) body = make_body(UPROF_CAPTURE_SNAPSHOT);
    g_autofree UprofSnapshot *snapshot = g_new0(UprofSnapshot, 1);

    g_assert_false(
        uprof_capture_parse_snapshot((UprofSlice){ rest->data, rest->len }, snapshot, NULL));
    g_assert_false(uprof_capture_parse_rest((UprofSlice){ body->data, body->len }, snapshot, NULL));
}

/* clang-format off */
static const struct {
    const char *name;
    uint64_t gpa;
    size_t len;
    const char *error; /* NULL: must parse */
} pages[] = {
    { "page",       0x7000,                          8 + 4096, NULL },
    { "none",       UINT64_MAX - 4095,               8,        NULL },
    { "short",      0x7000,                          8 + 4095, "capture: page byte 8: a page must have 0 or 4096 bytes" },
    { "long",       0x7000,                          8 + 4097, "capture: page byte 8: a page must have 0 or 4096 bytes" },
    { "unaligned",  0x7001,                          8 + 4096, "capture: page byte 8: bad address" },
    { "no-address", 0,                               7,        "capture: page byte 0: bad address" },
    { "empty",      0,                               0,        "capture: page byte 0: bad address" },
};
/* clang-format on */

static void
test_page(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    uint8_t body[8 + 4097] = { 0 };
    uint64_t gpa = 42;
    UprofSlice page = { NULL, 42 };
    g_autoptr(GError) error = NULL;

    memcpy(body, &(uint64_t){ GUINT64_TO_LE(pages[i].gpa) }, 8);
    const bool ok =
        uprof_capture_parse_page((UprofSlice){ body, pages[i].len }, &gpa, &page, &error);

    assert_answer(ok, error, pages[i].error);
    g_assert_cmphex(gpa, ==, ok ? pages[i].gpa : 42);
    g_assert_cmpuint(page.len, ==, ok ? pages[i].len - 8 : 42);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    g_test_add_func("/capture/round-trip", test_round_trip);
    g_test_add_func("/capture/cut-file", test_cut_file);
    g_test_add_func("/capture/unknown-records", test_unknown_records);
    g_test_add_func("/capture/nul-in-text", test_nul_in_text);
    g_test_add_func("/capture/text-limits", test_text_limits);
    g_test_add_func("/capture/too-many-images", test_too_many_images);
    g_test_add_func("/capture/cut-snapshot", test_cut_snapshot);
    g_test_add_func("/capture/window-limit", test_window_limit);
    g_test_add_func("/capture/cut-rest", test_cut_rest);
    g_test_add_func("/capture/mixed-up", test_mixed_up);
    for (size_t i = 0; i < G_N_ELEMENTS(headers); i++) {
        g_autofree char *path = g_strdup_printf("/capture/header/%s", headers[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_header);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(runs); i++) {
        g_autofree char *path = g_strdup_printf("/capture/run/%s", runs[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_run);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(images); i++) {
        g_autofree char *path = g_strdup_printf("/capture/image/%s", images[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_image);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(damages); i++) {
        g_autofree char *path = g_strdup_printf("/capture/damage/%s", damages[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_damage);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(rest_damages); i++) {
        g_autofree char *path = g_strdup_printf("/capture/rest-damage/%s", rest_damages[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_rest_damage);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(pages); i++) {
        g_autofree char *path = g_strdup_printf("/capture/page/%s", pages[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_page);
    }
    return g_test_run();
}
