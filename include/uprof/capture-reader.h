/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * capture-reader.h - reads the records of a capture file, which may be hostile
 *
 * The format is specified in capture.h. The functions keep no state: bytes go in, records
 * come out.
 */
#pragma once

#include "uprof/bytes.h"
#include "uprof/capture.h"

typedef struct {
    UprofCaptureType type; /* which uprof_capture_parse_*() function reads @body */
    UprofSlice body;       /* borrowed from the file's bytes */
} UprofCaptureRecord;

/**
 * uprof_capture_begin:
 * @bytes: (inout): a cursor at the start of the file; moves to the first record
 *
 * Returns: false with %UPROF_ERROR_BAD_DATA if the file is not a capture, or has an unknown
 *   version
 */
bool uprof_capture_begin(UprofBytes *bytes, GError **error);

/**
 * uprof_capture_next:
 * @bytes: (inout): moves behind the record
 * @record: (out): the next record of a known type
 *
 * Returns: false at the end, and at a truncated record. A truncated record is not an error,
 *   because a run that is killed leaves one.
 */
bool uprof_capture_next(UprofBytes *bytes, UprofCaptureRecord *record);

/*
 * uprof_capture_parse_run, _image, _snapshot, _rest, _page:
 * @body: the body of a record of that type; _run parses both RUN and END
 *
 * On failure @run may have some of the new fields; other outputs are unchanged. Unknown keys
 * are skipped.
 *
 * Returns: false with %UPROF_ERROR_BAD_DATA if the body does not follow the format
 */
bool uprof_capture_parse_run(UprofSlice body, UprofRun *run, GError **error);
bool uprof_capture_parse_image(UprofSlice body, UprofRun *run, GError **error);
bool uprof_capture_parse_snapshot(UprofSlice body, UprofSnapshot *snapshot, GError **error);
bool uprof_capture_parse_rest(UprofSlice body, UprofSnapshot *snapshot, GError **error);
/**
 * @gpa: (out): guest-physical address of the page
 * @page: (out): 4096 bytes, borrowed from @body; empty if the guest has no memory there
 */
bool uprof_capture_parse_page(UprofSlice body, uint64_t *gpa, UprofSlice *page, GError **error);
