/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/unwind.h"

#include <string.h>

/* A frame record: the caller's frame pointer, and above it the return address. */
static bool
read_record(const UprofSnapshot *snapshot, uint64_t fp, unsigned word_bytes, uint64_t record[2])
{
    uint64_t wide[2];
    uint32_t narrow[2];

    if (word_bytes == sizeof(wide[0])) {
        if (!uprof_snapshot_read(snapshot, fp, wide, sizeof(wide)))
            return false;
        record[0] = GUINT64_FROM_LE(wide[0]);
        record[1] = GUINT64_FROM_LE(wide[1]);
        return true;
    }
    if (!uprof_snapshot_read(snapshot, fp, narrow, sizeof(narrow)))
        return false;
    record[0] = GUINT32_FROM_LE(narrow[0]);
    record[1] = GUINT32_FROM_LE(narrow[1]);
    return true;
}

UprofStep
uprof_fp_step(const UprofUnwindContext *context, UprofRegs *frame)
{
    const unsigned word_bytes = frame->word_bytes;
    uint64_t record[2];

    if (word_bytes != 8 && word_bytes != 4)
        return UPROF_STEP_PASS; /* 16-bit code: firmware, a boot loader */
    if (frame->fp == 0)
        return UPROF_STEP_BASE;
    if (frame->fp % word_bytes != 0 || frame->fp < frame->sp ||
        frame->fp - frame->sp > UPROF_FRAME_BYTES_MAX)
        return UPROF_STEP_LOST;
    if (!read_record(context->snapshot, frame->fp, word_bytes, record))
        return UPROF_STEP_CUT;
    if (record[1] == 0)
        return UPROF_STEP_BASE;

    frame->pc = record[1];
    frame->sp = frame->fp + 2 * word_bytes;
    frame->fp = record[0];
    return UPROF_STEP_OK;
}
