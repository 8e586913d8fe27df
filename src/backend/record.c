/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/backend.h"

typedef struct {
    UprofGuest base;
    UprofGuest *inner;   /* borrowed */
    UprofWriter *writer; /* borrowed */
    GError *error;
} RecordGuest;

static const UprofGuestOps record_ops;

static RecordGuest *
as_record(UprofGuest *guest)
{
    g_assert(guest->ops == &record_ops);
    return (RecordGuest *)guest;
}

static void
record_close(UprofGuest *guest)
{
    RecordGuest *record = as_record(guest);

    g_clear_error(&record->error);
    g_free(record);
}

static void
record_read(UprofGuest *guest, UprofLane lane, UprofSpan *spans, unsigned n)
{
    RecordGuest *record = as_record(guest);

    g_assert(lane == UPROF_LANE_WORKER);
    for (unsigned i = 0; i < n; i++)
        g_assert(spans[i].gpa % UPROF_CAPTURE_PAGE_BYTES == 0 &&
                 spans[i].len % UPROF_CAPTURE_PAGE_BYTES == 0);
    uprof_guest_read(record->inner, lane, spans, n);
    for (unsigned i = 0; i < n; i++)
        for (uint32_t done = 0; done < spans[i].len && !record->error;
             done += UPROF_CAPTURE_PAGE_BYTES)
            uprof_writer_page(record->writer, spans[i].gpa + done,
                              spans[i].missing ? NULL : (uint8_t *)spans[i].into + done,
                              &record->error);
}

static const UprofGuestOps record_ops = {
    .name = "record",
    .close = record_close,
    .read = record_read,
};

UprofGuest *
uprof_record_new(UprofGuest *guest, UprofWriter *writer)
{
    RecordGuest *record = g_new0(RecordGuest, 1);

    record->base.ops = &record_ops;
    record->base.arch = guest->arch;
    record->base.n_vcpus = guest->n_vcpus;
    record->base.slow_reads = guest->slow_reads;
    record->inner = guest;
    record->writer = writer;
    return &record->base;
}

const GError *
uprof_record_error(UprofGuest *guest)
{
    return as_record(guest)->error;
}
