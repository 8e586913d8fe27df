/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * capture-file-priv.h - the records of a capture, read from its file one after the other
 *
 * The file is not mapped: a read of the mapping would fault after somebody has truncated it. If
 * somebody shortens the file, its records end early, as in the capture of a run that was killed.
 */
#pragma once

#include "uprof/capture-reader.h"

typedef struct _UprofCaptureFile UprofCaptureFile;

/**
 * uprof_capture_file_open:
 * @name: of the file, for messages; borrowed until the close
 *
 * Returns: (transfer full) (nullable): the file, positioned behind its header; %NULL with an error
 *   if it is not a regular file or not a capture
 */
UprofCaptureFile *uprof_capture_file_open(const char *path, const char *name, GError **error);
void uprof_capture_file_close(UprofCaptureFile *file);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofCaptureFile, uprof_capture_file_close)

/**
 * uprof_capture_file_next:
 * @record: (out): valid until the next call
 *
 * Returns: false without an error at the end; false with an error if the file cannot be read, or a
 *   record is longer than any that virt-uprof writes
 */
bool uprof_capture_file_next(UprofCaptureFile *file, UprofCaptureRecord *record, GError **error);

/** uprof_capture_file_tell: Returns: position of the next record, in bytes from the file's start */
uint64_t uprof_capture_file_tell(const UprofCaptureFile *file);

/** uprof_capture_file_seek: @at: a position of uprof_capture_file_tell() */
void uprof_capture_file_seek(UprofCaptureFile *file, uint64_t at);

/** uprof_capture_file_locate: Returns: position in the file of @part, a part of the last record */
uint64_t uprof_capture_file_locate(const UprofCaptureFile *file, UprofSlice part);

/** uprof_capture_file_read: Returns: false if the file does not have these bytes any more */
bool uprof_capture_file_read(const UprofCaptureFile *file, uint64_t at, void *into, size_t len);
