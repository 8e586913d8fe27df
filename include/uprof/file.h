/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * file.h - output files that are complete or do not exist
 *
 * Data goes to a temporary file in the folder of the target. The temporary file has no name if the
 * file system allows that. Commit syncs the temporary file and renames it over the target, so the
 * target never holds a part of the data. If the target is a link, the file replaces the link. Two
 * kinds of target are written directly: a pipe or device whose own path is given, such as
 * /dev/null, and a link to an open file of this process, such as /dev/stdout.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

typedef struct _UprofFile UprofFile;

/**
 * uprof_file_open:
 * @path: "-" is stdout
 * @is_secret: mode 0600 with every umask
 *
 * If this process runs as root, a folder that everybody may write is refused unless it is sticky. A
 * device or pipe must belong to this user or to root. A pipe that nobody reads is refused.
 *
 * Returns: (transfer full) (nullable): %NULL with an error; no file is left behind
 */
UprofFile *uprof_file_open(const char *path, bool is_secret, GError **error);

/**
 * uprof_file_open_part: opens a file whose data can be used even if the program is killed
 *
 * Like uprof_file_open() with mode 0600, but the temporary file is called @path with ".part" added.
 * A program that is killed leaves it behind. An old file of that name is replaced, unless a running
 * program still writes it.
 */
UprofFile *uprof_file_open_part(const char *path, GError **error);

/**
 * uprof_file_open_own: opens a file in a folder that belongs to the program
 * @parent: borrowed until the file is freed: descriptor of the folder that has the file's folder
 * @path: its last two parts, the names of the folder and of the file, are opened relative to
 *   @parent. The complete path is for messages.
 *
 * Like uprof_file_open(), but a target of any type is replaced, and links are not followed. The
 * folder is created with mode 0750 if it is missing. If somebody removes the folder before
 * uprof_file_commit(), the folder is created again. If this process runs as root, only root may be
 * able to write to the folder.
 */
UprofFile *uprof_file_open_own(int parent, const char *path, GError **error);

/**
 * uprof_file_adopt: writes to a descriptor that another process has opened and will commit
 * @fd: (transfer full): closed by uprof_file_abort()
 * @shown: name of the file in messages
 *
 * Returns: (transfer full)
 */
UprofFile *uprof_file_adopt(int fd, const char *shown, bool is_stdout);

/** uprof_file_abort: @file: (nullable): removes the written data, except from stdout */
void uprof_file_abort(UprofFile *file);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofFile, uprof_file_abort)

/** uprof_file_fd: Returns: borrowed: the descriptor */
int uprof_file_fd(const UprofFile *file);

/** uprof_file_path: Returns: (transfer none): the path given to uprof_file_open() */
const char *uprof_file_path(const UprofFile *file);

/** uprof_file_is_stdout: was the path "-"? */
bool uprof_file_is_stdout(const UprofFile *file);

/** uprof_file_is_closed: did a write fail because the reader closed stdout? */
bool uprof_file_is_closed(const UprofFile *file);

/** uprof_file_write: appends @len bytes */
bool uprof_file_write(UprofFile *file, const void *bytes, gsize len, GError **error);

/**
 * uprof_file_restart: drops all data written so far
 *
 * Returns: false with an error for stdout, a pipe or a device
 */
bool uprof_file_restart(UprofFile *file, GError **error);

/**
 * uprof_file_commit: makes the file complete
 * @file: freed in every case
 *
 * Returns: false with an error; no file is left behind then
 */
bool uprof_file_commit(UprofFile *file, GError **error);

/**
 * uprof_file_unused_path:
 *
 * Returns: (transfer full): the first path that does not exist of @stem @suffix,
 *   @stem "-2" @suffix, @stem "-3" @suffix and so on
 */
char *uprof_file_unused_path(const char *stem, const char *suffix);
