/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/capture-reader.h"

#include <string.h>

#include "uprof/scan.h"

bool
uprof_capture_begin(UprofBytes *bytes, GError **error)
{
    UprofBytes cursor = *bytes;
    UprofSlice magic;
    uint32_t version, zero;

    cursor.big_endian = false;
    if (!uprof_bytes_take(&cursor, strlen(UPROF_CAPTURE_MAGIC), &magic) ||
        !uprof_slice_is(magic, UPROF_CAPTURE_MAGIC))
        return uprof_bytes_fail(&cursor, error, "no capture of virt-uprof");
    if (!uprof_bytes_u32(&cursor, &version) || !uprof_bytes_u32(&cursor, &zero))
        return uprof_bytes_fail(&cursor, error, "ends in the header");
    if (version != UPROF_CAPTURE_VERSION || zero != 0)
        return uprof_bytes_fail(&cursor, error, "a capture of version %u is not known", version);

    *bytes = cursor;
    return true;
}

bool
uprof_capture_next(UprofBytes *bytes, UprofCaptureRecord *record)
{
    UprofBytes cursor = *bytes;
    uint32_t type, len;
    UprofSlice body;

    while (uprof_bytes_u32(&cursor, &type) && uprof_bytes_u32(&cursor, &len) &&
           uprof_bytes_take(&cursor, len, &body)) {
        *bytes = cursor;
        if (type < UPROF_CAPTURE_RUN || type > UPROF_CAPTURE_TASKS)
            continue;
        *record = (UprofCaptureRecord){ .type = type, .body = body };
        return true;
    }
    return false;
}

static const UprofRunField *
find_field(UprofSlice key)
{
    for (size_t i = 0; i < uprof_run_n_fields; i++)
        if (uprof_slice_is(key, uprof_run_fields[i].key))
            return &uprof_run_fields[i];
    return NULL;
}

/* @text: (inout): frees the old text */
static bool
read_text(UprofSlice value, char **text)
{
    if (value.len > UPROF_CAPTURE_VALUE_BYTES_MAX || memchr(value.data, '\0', value.len))
        return false;

    g_free(*text);
    *text = g_strndup(value.data, value.len);
    return true;
}

static bool
read_field(const UprofRunField *field, UprofSlice value, UprofRun *run)
{
    void *member = G_STRUCT_MEMBER_P(run, field->offset);
    uint64_t number;

    switch (field->kind) {
    case UPROF_RUN_TEXT:
        return read_text(value, member);
    case UPROF_RUN_UINT:
        return uprof_slice_to_uint(value, 10, 0, UINT64_MAX, member);
    case UPROF_RUN_BOOL:
        if (!uprof_slice_to_uint(value, 10, 0, 1, &number))
            return false;
        *(bool *)member = number;
        return true;
    }
    g_assert_not_reached();
}

bool
uprof_capture_parse_run(UprofSlice body, UprofRun *run, GError **error)
{
    UprofScan scan = { .name = "capture: run", .rest = body };
    UprofSlice line, key, value;

    if (body.len > UPROF_CAPTURE_TEXT_BYTES_MAX)
        return uprof_scan_fail(&scan, error, "%zu bytes are too many", body.len);

    while (uprof_scan_line(&scan, &line)) {
        if (!uprof_slice_split(line, '=', &key, &value))
            return uprof_scan_fail(&scan, error, "not 'KEY=VALUE'");

        const UprofRunField *field = find_field(key);
        if (field && !read_field(field, value, run))
            return uprof_scan_fail(&scan, error, "bad value of '%s'", field->key);
    }
    return true;
}

typedef struct {
    const char *key;
    bool is_hex;
    char *value;
} ImageLine;

enum { IMAGE_LABEL, IMAGE_PATH, IMAGE_BUILD_ID, IMAGE_DIGEST, IMAGE_BASE, IMAGE_N_LINES };

typedef struct {
    ImageLine lines[IMAGE_N_LINES];
} ImageLines;

static void
clear_image_lines(ImageLines *lines)
{
    for (unsigned i = 0; i < IMAGE_N_LINES; i++)
        g_free(lines->lines[i].value);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(ImageLines, clear_image_lines)

static bool
read_image_line(ImageLine *line, UprofSlice value)
{
    for (size_t i = 0; line->is_hex && i < value.len; i++)
        if (!g_ascii_isxdigit(((const char *)value.data)[i]))
            return false;
    return read_text(value, &line->value);
}

bool
uprof_capture_parse_image(UprofSlice body, UprofRun *run, GError **error)
{
    UprofScan scan = { .name = "capture: image", .rest = body };
    /* clang-format off */
    g_auto(ImageLines) lines = { {
        [IMAGE_LABEL]    = { .key = "label" },
        [IMAGE_PATH]     = { .key = "path" },
        [IMAGE_BUILD_ID] = { .key = "build_id", .is_hex = true },
        [IMAGE_DIGEST]   = { .key = "digest", .is_hex = true },
        [IMAGE_BASE]     = { .key = "base", .is_hex = true },
    } };
    /* clang-format on */
    UprofSlice line, key, value;

    if (body.len > UPROF_CAPTURE_TEXT_BYTES_MAX)
        return uprof_scan_fail(&scan, error, "%zu bytes are too many", body.len);
    if (run->images->len >= UPROF_CAPTURE_IMAGES_MAX)
        return uprof_scan_fail(&scan, error, "more than %d images", UPROF_CAPTURE_IMAGES_MAX);

    while (uprof_scan_line(&scan, &line)) {
        if (!uprof_slice_split(line, '=', &key, &value))
            return uprof_scan_fail(&scan, error, "not 'KEY=VALUE'");
        for (unsigned i = 0; i < IMAGE_N_LINES; i++)
            if (uprof_slice_is(key, lines.lines[i].key) && !read_image_line(&lines.lines[i], value))
                return uprof_scan_fail(&scan, error, "bad value of '%s'", lines.lines[i].key);
    }
    if (!lines.lines[IMAGE_LABEL].value)
        return uprof_scan_fail(&scan, error, "no 'label' up to here");

    UprofRunImage *image =
        uprof_run_add_image(run, lines.lines[IMAGE_LABEL].value, lines.lines[IMAGE_PATH].value,
                            lines.lines[IMAGE_BUILD_ID].value, lines.lines[IMAGE_DIGEST].value);
    image->base = g_steal_pointer(&lines.lines[IMAGE_BASE].value);
    return true;
}

/* Reads one byte, which must not exceed @max. */
static bool
read_small(UprofBytes *bytes, uint8_t max, uint8_t *value)
{
    uint8_t byte;

    if (!uprof_bytes_u8(bytes, &byte) || byte > max)
        return false;
    *value = byte;
    return true;
}

static bool
read_bool(UprofBytes *bytes, bool *value)
{
    uint8_t byte;

    if (!read_small(bytes, 1, &byte))
        return false;
    *value = byte;
    return true;
}

static bool
read_description(UprofBytes *bytes, UprofSnapshot *snapshot)
{
    uint8_t n_windows;

    if (!uprof_bytes_u64(bytes, &snapshot->time_ns) || !uprof_bytes_u64(bytes, &snapshot->hold) ||
        !uprof_bytes_u64(bytes, &snapshot->hold_ns) ||
        !uprof_bytes_u64(bytes, &snapshot->stopped_ns) ||
        !uprof_bytes_u32(bytes, &snapshot->vcpu) || !uprof_bytes_u32(bytes, &snapshot->weight) ||
        !uprof_bytes_u32(bytes, &snapshot->reset) ||
        !read_small(bytes, UPROF_GRAIN_GUEST, &snapshot->grain) ||
        !read_bool(bytes, &snapshot->idle) || !read_bool(bytes, &snapshot->stale) ||
        !read_small(bytes, UPROF_WINDOWS_MAX, &n_windows))
        return false;
    snapshot->n_windows = n_windows;
    return snapshot->weight > 0;
}

static bool
read_numbers(UprofBytes *bytes, unsigned n, uint64_t *numbers)
{
    for (unsigned i = 0; i < n; i++)
        if (!uprof_bytes_u64(bytes, &numbers[i]))
            return false;
    return true;
}

static bool
is_word_bytes(uint8_t word_bytes)
{
    /* 0: the sampler read no registers, because the vCPU was idle */
    return word_bytes == 0 || word_bytes == 2 || word_bytes == 4 || word_bytes == 8;
}

static bool
read_regs(UprofBytes *bytes, UprofRegs *regs)
{
    uint8_t n_sys, n_regs;
    uint16_t zero;

    return read_small(bytes, 8, &regs->word_bytes) && is_word_bytes(regs->word_bytes) &&
           read_small(bytes, 3, &regs->privilege) && read_bool(bytes, &regs->halted) &&
           read_bool(bytes, &regs->smm) && uprof_bytes_u64(bytes, &regs->pc) &&
           uprof_bytes_u64(bytes, &regs->sp) && uprof_bytes_u64(bytes, &regs->fp) &&
           uprof_bytes_u64(bytes, &regs->flags) && read_small(bytes, UPROF_SYS_MAX, &n_sys) &&
           read_small(bytes, UPROF_REGS_MAX, &n_regs) && uprof_bytes_u16(bytes, &zero) &&
           zero == 0 && read_numbers(bytes, n_sys, regs->sys) &&
           read_numbers(bytes, n_regs, regs->reg);
}

static bool
read_window(UprofBytes *bytes, UprofSnapshot *snapshot, uint32_t *used, UprofWindow *window)
{
    UprofSlice copy;

    if (!uprof_bytes_u64(bytes, &window->gva) || !uprof_bytes_u32(bytes, &window->len) ||
        window->len > UPROF_SNAPSHOT_BYTES_MAX - *used ||
        !uprof_bytes_take(bytes, window->len, &copy))
        return false;
    if (window->len > 0 && window->gva > UINT64_MAX - (window->len - 1))
        return false;

    window->offset = *used;
    if (copy.len > 0)
        memcpy(snapshot->bytes + *used, copy.data, copy.len);
    *used += window->len;
    return true;
}

bool
uprof_capture_parse_snapshot(UprofSlice body, UprofSnapshot *snapshot, GError **error)
{
    UprofBytes bytes = { .name = "capture: snapshot", .all = body };
    UprofSnapshot found;
    uint32_t used = 0;

    uprof_snapshot_clear(&found);
    found.count = 1;
    if (!read_description(&bytes, &found))
        return uprof_bytes_fail(&bytes, error, "bad description");
    if (!read_regs(&bytes, &found.regs))
        return uprof_bytes_fail(&bytes, error, "bad registers");
    for (unsigned i = 0; i < found.n_windows; i++)
        if (!read_window(&bytes, &found, &used, &found.windows[i]))
            return uprof_bytes_fail(&bytes, error, "bad window %u", i);
    if (uprof_bytes_left(&bytes) > 0)
        return uprof_bytes_fail(&bytes, error, "data behind the end of the snapshot");

    memcpy(snapshot, &found, G_STRUCT_OFFSET(UprofSnapshot, bytes) + used);
    return true;
}

bool
uprof_capture_parse_rest(UprofSlice body, UprofSnapshot *snapshot, GError **error)
{
    UprofBytes bytes = { .name = "capture: rest", .all = body };
    UprofSnapshot found;
    uint16_t zero;

    uprof_snapshot_clear(&found);
    found.same = true;
    if (!uprof_bytes_u64(&bytes, &found.time_ns) || !uprof_bytes_u32(&bytes, &found.vcpu) ||
        !uprof_bytes_u32(&bytes, &found.weight) || !uprof_bytes_u32(&bytes, &found.count) ||
        !uprof_bytes_u32(&bytes, &found.reset) ||
        !read_small(&bytes, UPROF_GRAIN_GUEST, &found.grain) || !read_bool(&bytes, &found.idle) ||
        !uprof_bytes_u16(&bytes, &zero) || zero != 0 || found.weight == 0 || found.count == 0)
        return uprof_bytes_fail(&bytes, error, "bad description");
    if (uprof_bytes_left(&bytes) > 0)
        return uprof_bytes_fail(&bytes, error, "data behind the end of the REST record");

    memcpy(snapshot, &found, G_STRUCT_OFFSET(UprofSnapshot, bytes));
    return true;
}

bool
uprof_capture_parse_page(UprofSlice body, uint64_t *gpa, UprofSlice *page, GError **error)
{
    UprofBytes bytes = { .name = "capture: page", .all = body };
    uint64_t found;
    UprofSlice content;

    if (!uprof_bytes_u64(&bytes, &found) || found % UPROF_CAPTURE_PAGE_BYTES != 0)
        return uprof_bytes_fail(&bytes, error, "bad address");

    const size_t left = uprof_bytes_left(&bytes);
    if ((left != 0 && left != UPROF_CAPTURE_PAGE_BYTES) ||
        !uprof_bytes_take(&bytes, left, &content))
        return uprof_bytes_fail(&bytes, error, "a page must have 0 or 4096 bytes");

    *gpa = found;
    *page = content;
    return true;
}
