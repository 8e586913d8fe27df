/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * file.h - output files: whole or not at all
 *
 * A temporary file in the target's folder, without a name where the file system
 * can do that, is synced and renamed over the target when it is complete: never
 * half a file under the final name, never a link followed.
 * What is no regular file (a pipe, /dev/null) is written to directly.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

typedef struct _UprofFile UprofFile;

/**
 * uprof_file_open:
 * @path: "-" is stdout
 * @is_secret: mode 0600 whatever the umask
 *
 * As root, refuses a folder that everybody may write to, unless it is sticky.
 *
 * Returns: (transfer full) (nullable): %NULL with %UPROF_ERROR_FAILED or
 *   %UPROF_ERROR_DENIED; nothing is left behind
 */
UprofFile *uprof_file_open(const char *path, bool is_secret, GError **error);

/**
 * uprof_file_open_own: in a folder that is the program's own
 *
 * As uprof_file_open(), but whatever has that name is replaced, and nothing is opened that
 * somebody else may have put there. The folder is made, 0750, if it is missing, also between
 * this call and uprof_file_commit(); those above it must be there.
 */
UprofFile *uprof_file_open_own(const char *path, GError **error);

/** uprof_file_abort: @file: (nullable): removes what was written, unless it is stdout */
void uprof_file_abort(UprofFile *file);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofFile, uprof_file_abort)

/** uprof_file_fd: Returns: borrowed descriptor, for what writes by itself */
int uprof_file_fd(const UprofFile *file);

/** uprof_file_path: Returns: (transfer none): as it was given */
const char *uprof_file_path(const UprofFile *file);

/** uprof_file_is_stdout: Returns: whether it is "-" */
bool uprof_file_is_stdout(const UprofFile *file);

/** uprof_file_is_closed: Returns: whether a write failed because nobody reads stdout any more */
bool uprof_file_is_closed(const UprofFile *file);

/** uprof_file_write: @len: bytes. Returns: false with %UPROF_ERROR_FAILED */
bool uprof_file_write(UprofFile *file, const void *bytes, gsize len, GError **error);

/**
 * uprof_file_commit:
 * @file: freed in every case
 *
 * Returns: false, with no file left behind, if it could not be made whole
 */
bool uprof_file_commit(UprofFile *file, GError **error);

/**
 * uprof_file_unused_path:
 * @stem, @suffix: STEM SUFFIX, else STEM "-2" SUFFIX and so on
 *
 * Returns: (transfer full): the first of those that does not exist
 */
char *uprof_file_unused_path(const char *stem, const char *suffix);
