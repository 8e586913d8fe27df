/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fuzz.h"

#include <string.h>

#include "pieces.h"
#include "uprof/capture-reader.h"

enum { FILE_HEADER = 16, RECORD_HEADER = 8 };

static void
check_snapshot(const UprofSnapshot *snapshot)
{
    uint32_t used = 0;

    g_assert(snapshot->n_windows <= UPROF_WINDOWS_MAX && snapshot->weight > 0);
    g_assert(snapshot->count > 0 && !snapshot->owner);
    g_assert(snapshot->same ? snapshot->n_windows == 0 : snapshot->count == 1);
    for (unsigned i = 0; i < snapshot->n_windows; i++) {
        const UprofWindow *window = &snapshot->windows[i];
        uint8_t byte;

        g_assert(window->offset == used);
        g_assert(window->len <= UPROF_SNAPSHOT_BYTES_MAX - used);
        used += window->len;
        if (window->len > 0)
            g_assert(uprof_snapshot_read(snapshot, window->gva + (window->len - 1), &byte, 1));
    }
}

static void
parse_record(const UprofCaptureRecord *record, UprofRun *run)
{
    static UprofSnapshot snapshot;
    g_autoptr(GError) error = NULL;
    UprofSlice page = { NULL, 0 };
    uint64_t gpa = 0;
    bool ok = false;

    switch (record->type) {
    case UPROF_CAPTURE_RUN:
    case UPROF_CAPTURE_END:
        ok = uprof_capture_parse_run(record->body, run, &error);
        break;
    case UPROF_CAPTURE_IMAGE:
        ok = uprof_capture_parse_image(record->body, run, &error);
        g_assert(run->images->len <= UPROF_CAPTURE_IMAGES_MAX);
        break;
    case UPROF_CAPTURE_SNAPSHOT:
    case UPROF_CAPTURE_PRIME:
        ok = uprof_capture_parse_snapshot(record->body, &snapshot, &error);
        if (ok)
            check_snapshot(&snapshot);
        break;
    case UPROF_CAPTURE_REST:
        ok = uprof_capture_parse_rest(record->body, &snapshot, &error);
        if (ok)
            check_snapshot(&snapshot);
        break;
    case UPROF_CAPTURE_TASKS:
        ok = true; /* fuzz-task-record.c parses its parts */
        break;
    case UPROF_CAPTURE_PAGE:
        ok = uprof_capture_parse_page(record->body, &gpa, &page, &error);
        g_assert(gpa % UPROF_CAPTURE_PAGE_BYTES == 0);
        g_assert(page.len == 0 || page.len == UPROF_CAPTURE_PAGE_BYTES);
        g_assert(is_part(page, record->body));
        break;
    }
    check_answer(ok, error);
}

bool
fuzz_find_piece(UprofSlice rest, size_t at, FuzzPiece *piece)
{
    uint32_t len;
    UprofBytes bytes = { .name = "record", .all = rest };

    *piece = (FuzzPiece){ .content_len = FILE_HEADER, .is_fixed = true };
    if (at < FILE_HEADER)
        return true;
    if (!uprof_bytes_u32(&bytes, &len) || !uprof_bytes_u32(&bytes, &len))
        return false;
    *piece = (FuzzPiece){ .head_len = RECORD_HEADER, .content_len = len };
    return true;
}

size_t
fuzz_write_head(uint8_t *head, size_t content_len)
{
    const uint32_t len = GUINT32_TO_LE((uint32_t)content_len);

    memcpy(head + 4, &len, sizeof(len));
    return RECORD_HEADER;
}

void
fuzz_input(const uint8_t *data, size_t size)
{
    UprofBytes bytes = { .name = "file", .all = { data, size } };
    g_autoptr(UprofRun) run = uprof_run_new();
    g_autoptr(GError) error = NULL;
    UprofCaptureRecord record;

    const bool ok = uprof_capture_begin(&bytes, &error);

    check_answer(ok, error);
    if (!ok)
        return;
    while (uprof_capture_next(&bytes, &record)) {
        g_assert(bytes.at <= size && is_part(record.body, bytes.all));
        parse_record(&record, run);
    }
}
