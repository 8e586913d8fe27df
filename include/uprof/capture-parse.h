/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * capture-parse.h - reads capture files, which may come from anybody
 *
 * The format is specified in capture.h. Pure: bytes in, records out.
 */
#pragma once

#include "uprof/bytes.h"
#include "uprof/capture.h"

/**
 * UprofCaptureRecord:
 * @type: which of the others means something
 * @body: borrowed
 */
typedef struct {
    UprofCaptureType type;
    UprofSlice body;
} UprofCaptureRecord;

/**
 * uprof_capture_begin:
 * @bytes: a cursor at the start of the file; moves behind the header
 *
 * Returns: false with %UPROF_ERROR_BAD_DATA if this is no capture, or one of a
 *   version that this program does not know
 */
bool uprof_capture_begin(UprofBytes *bytes, GError **error);

/**
 * uprof_capture_next:
 * @record: (out): the next record of a known type
 *
 * Returns: false at the end, or where the file was cut off: never an error
 */
bool uprof_capture_next(UprofBytes *bytes, UprofCaptureRecord *record);

/*
 * uprof_capture_parse_run, _image, _snapshot, _rest, _page:
 * @body: of a record of that type (RUN and END are both parsed by _run)
 *
 * Outputs are untouched on failure, except that @run may have got some of the
 * fields. Unknown keys are skipped.
 *
 * Returns: false with %UPROF_ERROR_BAD_DATA if the body is not as specified
 */
bool uprof_capture_parse_run(UprofSlice body, UprofRun *run, GError **error);
bool uprof_capture_parse_image(UprofSlice body, UprofRun *run, GError **error);
bool uprof_capture_parse_snapshot(UprofSlice body, UprofSnapshot *snapshot, GError **error);
bool uprof_capture_parse_rest(UprofSlice body, UprofSnapshot *snapshot, GError **error);
/** @page: (out): the 4096 bytes, borrowed from @body; no bytes if there is no memory there */
bool uprof_capture_parse_page(UprofSlice body, uint64_t *gpa, UprofSlice *page, GError **error);
