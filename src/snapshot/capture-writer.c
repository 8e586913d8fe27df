/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/capture.h"

#include "capture-writer-priv.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "uprof/error.h"

enum { BUFFER_BYTES = 256 * 1024 };

/*
 * A record is built in `record`, whose memory is reused, and then copied to `buffer` and to
 * the file. The first failure ends all writing, because readers stop at a cut record.
 */
struct _UprofWriter {
    int fd; /* borrowed */
    bool has_header;
    int failed; /* errno of the first failure; 0 if there was none */
    GByteArray *record;
    size_t len; /* bytes used of @buffer */
    uint8_t buffer[BUFFER_BYTES];
};

UprofWriter *
uprof_writer_new(int fd)
{
    UprofWriter *writer = g_new0(UprofWriter, 1);

    writer->fd = fd;
    writer->record = g_byte_array_new();
    return writer;
}

void
uprof_writer_free(UprofWriter *writer)
{
    if (!writer)
        return;
    g_byte_array_unref(writer->record);
    g_free(writer);
}

static bool
check_failure(const UprofWriter *writer, GError **error)
{
    if (writer->failed == 0)
        return true;
    g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED, "capture cannot be written: %s",
                g_strerror(writer->failed));
    return false;
}

static void
write_fully(UprofWriter *writer, const uint8_t *data, size_t len)
{
    while (len > 0 && writer->failed == 0) {
        const ssize_t done = write(writer->fd, data, len);

        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0) {
            writer->failed = done < 0 ? errno : EIO;
            return;
        }
        data += done;
        len -= done;
    }
}

static void
empty_buffer(UprofWriter *writer)
{
    write_fully(writer, writer->buffer, writer->len);
    writer->len = 0;
}

static void
append_bytes(UprofWriter *writer, const void *data, size_t len)
{
    if (len == 0)
        return;
    if (len > BUFFER_BYTES - writer->len)
        empty_buffer(writer);
    if (len > BUFFER_BYTES) {
        write_fully(writer, data, len);
        return;
    }
    memcpy(writer->buffer + writer->len, data, len);
    writer->len += len;
}

static void
put_bytes(UprofWriter *writer, const void *data, size_t len)
{
    if (len > 0)
        g_byte_array_append(writer->record, data, len);
}

static void
put_u8(UprofWriter *writer, uint8_t value)
{
    put_bytes(writer, &value, sizeof(value));
}

static void
put_u16(UprofWriter *writer, uint16_t value)
{
    value = GUINT16_TO_LE(value);
    put_bytes(writer, &value, sizeof(value));
}

static void
put_u32(UprofWriter *writer, uint32_t value)
{
    value = GUINT32_TO_LE(value);
    put_bytes(writer, &value, sizeof(value));
}

static void
put_u64(UprofWriter *writer, uint64_t value)
{
    value = GUINT64_TO_LE(value);
    put_bytes(writer, &value, sizeof(value));
}

/* Appends "key=value\n". A value of NULL is omitted, a long value is cut. */
static void
put_line(GByteArray *record, const char *key, const char *value)
{
    if (!value)
        return;

    g_autofree char *line = g_strndup(value, UPROF_CAPTURE_VALUE_BYTES_MAX);
    g_strdelimit(line, "\r\n", '?');
    const char *const parts[] = { key, "=", line, "\n" };
    for (size_t i = 0; i < G_N_ELEMENTS(parts); i++)
        g_byte_array_append(record, (const guint8 *)parts[i], (guint)strlen(parts[i]));
}

static void
put_uint_line(GByteArray *record, const char *key, uint64_t value)
{
    char text[24];

    g_snprintf(text, sizeof(text), "%" G_GUINT64_FORMAT, value);
    put_line(record, key, text);
}

static void
put_field(GByteArray *record, const UprofRun *run, const UprofRunField *field)
{
    const void *member = G_STRUCT_MEMBER_P(run, field->offset);

    switch (field->kind) {
    case UPROF_RUN_TEXT:
        put_line(record, field->key, *(char *const *)member);
        break;
    case UPROF_RUN_UINT:
        put_uint_line(record, field->key, *(const uint64_t *)member);
        break;
    case UPROF_RUN_BOOL:
        put_uint_line(record, field->key, *(const bool *)member);
        break;
    }
}

void
uprof_capture_format_run(const UprofRun *run, UprofRunWhen when, GByteArray *text)
{
    for (size_t i = 0; i < uprof_run_n_fields; i++)
        if (uprof_run_fields[i].when & when)
            put_field(text, run, &uprof_run_fields[i]);
}

static void
begin_record(UprofWriter *writer)
{
    g_byte_array_set_size(writer->record, 0);

    if (writer->has_header)
        return;
    put_bytes(writer, UPROF_CAPTURE_MAGIC, strlen(UPROF_CAPTURE_MAGIC));
    put_u32(writer, UPROF_CAPTURE_VERSION);
    put_u32(writer, 0);
    append_bytes(writer, writer->record->data, writer->record->len);
    g_byte_array_set_size(writer->record, 0);
    writer->has_header = true;
}

static bool
end_record(UprofWriter *writer, UprofCaptureType type, GError **error)
{
    const uint32_t head[] = { GUINT32_TO_LE(type), GUINT32_TO_LE(writer->record->len) };

    append_bytes(writer, head, sizeof(head));
    append_bytes(writer, writer->record->data, writer->record->len);
    return check_failure(writer, error);
}

static bool
write_run(UprofWriter *writer, UprofCaptureType type, UprofRunWhen when, const UprofRun *run,
          GError **error)
{
    begin_record(writer);
    uprof_capture_format_run(run, when, writer->record);
    return end_record(writer, type, error);
}

bool
uprof_writer_run(UprofWriter *writer, const UprofRun *run, GError **error)
{
    return write_run(writer, UPROF_CAPTURE_RUN, UPROF_RUN_AT_START, run, error);
}

bool
uprof_writer_image(UprofWriter *writer, const UprofRunImage *image, GError **error)
{
    begin_record(writer);
    put_line(writer->record, "label", image->label);
    put_line(writer->record, "path", image->path);
    put_line(writer->record, "build_id", image->build_id);
    put_line(writer->record, "digest", image->digest);
    put_line(writer->record, "base", image->base);
    return end_record(writer, UPROF_CAPTURE_IMAGE, error);
}

static void
put_regs(UprofWriter *writer, const UprofRegs *regs)
{
    put_u8(writer, regs->word_bytes);
    put_u8(writer, regs->privilege);
    put_u8(writer, regs->halted);
    put_u8(writer, regs->smm);
    put_u64(writer, regs->pc);
    put_u64(writer, regs->sp);
    put_u64(writer, regs->fp);
    put_u64(writer, regs->flags);
    put_u8(writer, UPROF_SYS_MAX);
    put_u8(writer, UPROF_REGS_MAX);
    put_u16(writer, 0);
    for (unsigned i = 0; i < UPROF_SYS_MAX; i++)
        put_u64(writer, regs->sys[i]);
    for (unsigned i = 0; i < UPROF_REGS_MAX; i++)
        put_u64(writer, regs->reg[i]);
}

static bool
write_rest(UprofWriter *writer, const UprofSnapshot *snapshot, GError **error)
{
    begin_record(writer);
    put_u64(writer, snapshot->time_ns);
    put_u32(writer, snapshot->vcpu);
    put_u32(writer, snapshot->weight);
    put_u32(writer, snapshot->count);
    put_u32(writer, snapshot->reset);
    put_u8(writer, snapshot->grain);
    put_u8(writer, snapshot->idle);
    put_u16(writer, 0);
    return end_record(writer, UPROF_CAPTURE_REST, error);
}

bool
uprof_writer_snapshot(UprofWriter *writer, const UprofSnapshot *snapshot, GError **error)
{
    if (snapshot->same)
        return write_rest(writer, snapshot, error);
    const uint8_t n_windows = snapshot->is_prime ? 0 : (uint8_t)snapshot->n_windows;
    begin_record(writer);
    put_u64(writer, snapshot->time_ns);
    put_u64(writer, snapshot->hold);
    put_u64(writer, snapshot->hold_ns);
    put_u64(writer, snapshot->stopped_ns);
    put_u32(writer, snapshot->vcpu);
    put_u32(writer, snapshot->weight);
    put_u32(writer, snapshot->reset);
    put_u8(writer, snapshot->grain);
    put_u8(writer, snapshot->idle);
    put_u8(writer, snapshot->stale);
    put_u8(writer, n_windows);
    put_regs(writer, &snapshot->regs);
    for (unsigned i = 0; i < n_windows; i++) {
        const UprofWindow *window = &snapshot->windows[i];

        put_u64(writer, window->gva);
        put_u32(writer, window->len);
        put_bytes(writer, snapshot->bytes + window->offset, window->len);
    }
    return end_record(writer, snapshot->is_prime ? UPROF_CAPTURE_PRIME : UPROF_CAPTURE_SNAPSHOT,
                      error);
}

bool
uprof_writer_page(UprofWriter *writer, uint64_t gpa, const void *page, GError **error)
{
    begin_record(writer);
    put_u64(writer, gpa);
    if (page)
        put_bytes(writer, page, UPROF_CAPTURE_PAGE_BYTES);
    return end_record(writer, UPROF_CAPTURE_PAGE, error);
}

bool
uprof_writer_tasks(UprofWriter *writer, UprofSlice tasks, GError **error)
{
    const uint8_t *bytes = tasks.data;
    bool ok = true;

    for (size_t done = 0, len; ok && done < tasks.len; done += len) {
        len = MIN(tasks.len - done, (size_t)UPROF_CAPTURE_TASKS_PART_BYTES);
        begin_record(writer);
        put_bytes(writer, bytes + done, len);
        ok = end_record(writer, UPROF_CAPTURE_TASKS, error);
    }
    return ok;
}

bool
uprof_writer_end(UprofWriter *writer, const UprofRun *run, GError **error)
{
    return write_run(writer, UPROF_CAPTURE_END, UPROF_RUN_AT_END, run, error);
}

bool
uprof_writer_flush(UprofWriter *writer, GError **error)
{
    empty_buffer(writer);
    return check_failure(writer, error);
}
