/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/backend.h"

#include "uprof/fnv.h"

#include <string.h>

typedef struct {
    UprofGuest base;
    UprofGuest *inner;   /* borrowed */
    UprofWriter *writer; /* borrowed */
    GError *error;       /* owned: the first failed write; nothing is written after it */
    GHashTable
        *written; /* gpa -> digest of the page as it was last written, or 0 if it is missing */
} RecorderGuest;

enum { WRITTEN_MAX = 64 * 1024 };

static const UprofGuestOps recorder_ops;

static RecorderGuest *
as_recorder(UprofGuest *guest)
{
    g_assert(guest->ops == &recorder_ops);
    return (RecorderGuest *)guest;
}

static void
recorder_close(UprofGuest *guest)
{
    RecorderGuest *recorder = as_recorder(guest);

    g_clear_error(&recorder->error);
    g_hash_table_unref(recorder->written);
    g_free(recorder);
}

/* The last record of the page has the same bytes. Notes that there is a record now. */
static bool
is_written(RecorderGuest *recorder, uint64_t gpa, const void *page)
{
    const uint64_t digest =
        page ? uprof_fnv64_add(UPROF_FNV64_START, page, UPROF_CAPTURE_PAGE_BYTES) : 0;
    const uint64_t *last = g_hash_table_lookup(recorder->written, &gpa);

    if (last && *last == digest)
        return true;
    if (g_hash_table_size(recorder->written) >= WRITTEN_MAX)
        g_hash_table_remove_all(recorder->written);
    g_hash_table_replace(recorder->written, g_memdup2(&gpa, sizeof(gpa)),
                         g_memdup2(&digest, sizeof(digest)));
    return false;
}

static void
write_page(RecorderGuest *recorder, uint64_t gpa, const void *page)
{
    if (!recorder->error && !is_written(recorder, gpa, page))
        uprof_writer_page(recorder->writer, gpa, page, &recorder->error);
}

/* Reads whole pages for a part of them, because a capture has whole pages. */
static void
read_part(RecorderGuest *recorder, UprofSpan *part)
{
    uint8_t page[UPROF_CAPTURE_PAGE_BYTES];

    part->missing = false;
    for (uint32_t done = 0, len; done < part->len && !part->missing; done += len) {
        const uint64_t offset = (part->gpa + done) % UPROF_CAPTURE_PAGE_BYTES;
        UprofSpan whole = { .gpa = part->gpa + done - offset,
                            .into = page,
                            .len = UPROF_CAPTURE_PAGE_BYTES };
        len = (uint32_t)MIN(UPROF_CAPTURE_PAGE_BYTES - offset, (uint64_t)(part->len - done));
        uprof_guest_read(recorder->inner, UPROF_LANE_WORKER, &whole, 1);
        write_page(recorder, whole.gpa, whole.missing ? NULL : page);
        part->missing = whole.missing;
        if (!whole.missing)
            memcpy((uint8_t *)part->into + done, page + offset, len);
    }
}

static void
write_pages(RecorderGuest *recorder, const UprofSpan *span)
{
    for (uint32_t done = 0; done < span->len; done += UPROF_CAPTURE_PAGE_BYTES)
        write_page(recorder, span->gpa + done, span->missing ? NULL : (uint8_t *)span->into + done);
}

static bool
is_part(const UprofSpan *span)
{
    return span->gpa % UPROF_CAPTURE_PAGE_BYTES != 0 || span->len % UPROF_CAPTURE_PAGE_BYTES != 0;
}

static void
recorder_read(UprofGuest *guest, UprofLane lane, UprofSpan *spans, unsigned n)
{
    RecorderGuest *recorder = as_recorder(guest);
    bool any_part = false;

    g_assert(lane == UPROF_LANE_WORKER);
    for (unsigned i = 0; i < n; i++)
        any_part |= is_part(&spans[i]);
    if (!any_part)
        uprof_guest_read(recorder->inner, lane, spans, n);
    for (unsigned i = 0; i < n; i++) {
        if (any_part)
            read_part(recorder, &spans[i]);
        else
            write_pages(recorder, &spans[i]);
    }
}

static const UprofGuestOps recorder_ops = {
    .name = "record",
    .close = recorder_close,
    .read = recorder_read,
};

UprofGuest *
uprof_recorder_new(UprofGuest *guest, UprofWriter *writer)
{
    RecorderGuest *recorder = g_new0(RecorderGuest, 1);

    recorder->base.ops = &recorder_ops;
    recorder->base.arch = guest->arch;
    recorder->base.n_vcpus = guest->n_vcpus;
    recorder->base.slow_reads = guest->slow_reads;
    recorder->inner = guest;
    recorder->writer = writer;
    recorder->written = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
    return &recorder->base;
}

const GError *
uprof_recorder_error(UprofGuest *guest)
{
    return as_recorder(guest)->error;
}
