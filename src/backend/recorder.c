/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/backend.h"

typedef struct {
    UprofGuest base;
    UprofGuest *inner;   /* borrowed */
    UprofWriter *writer; /* borrowed */
    GError *error;       /* owned: the first failed write; nothing is written after it */
} RecorderGuest;

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
    g_free(recorder);
}

static void
recorder_read(UprofGuest *guest, UprofLane lane, UprofSpan *spans, unsigned n)
{
    RecorderGuest *recorder = as_recorder(guest);

    g_assert(lane == UPROF_LANE_WORKER);
    for (unsigned i = 0; i < n; i++)
        g_assert(spans[i].gpa % UPROF_CAPTURE_PAGE_BYTES == 0 &&
                 spans[i].len % UPROF_CAPTURE_PAGE_BYTES == 0);
    uprof_guest_read(recorder->inner, lane, spans, n);
    for (unsigned i = 0; i < n; i++)
        for (uint32_t done = 0; done < spans[i].len && !recorder->error;
             done += UPROF_CAPTURE_PAGE_BYTES)
            uprof_writer_page(recorder->writer, spans[i].gpa + done,
                              spans[i].missing ? NULL : (uint8_t *)spans[i].into + done,
                              &recorder->error);
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
    return &recorder->base;
}

const GError *
uprof_recorder_error(UprofGuest *guest)
{
    return as_recorder(guest)->error;
}
