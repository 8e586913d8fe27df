/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * regular-file.h - opens files whose paths or folders are not trusted
 *
 * Regular files are opened, and pipes if the user named them as input. Files of the kernel, such as
 * /proc/kcore, do not count as regular. Opening a device can have effects, and opening a pipe can
 * wait for ever, so the functions find out the kind of a file before they open it (O_PATH of
 * open(2)).
 *
 * All functions return a descriptor to read from, or -1 with errno: EINVAL means that the file is
 * not regular, and UPROF_FILE_REFUSED that a process has died while it parsed the file.
 */
#pragma once

#include <errno.h>
#include <stdbool.h>

#define UPROF_FILE_REFUSED ECANCELED

/** UprofFileLinks: symbolic links in a path below a folder */
typedef enum {
    UPROF_FILE_NO_LINKS,   /* a link ends the search with ELOOP */
    UPROF_FILE_AS_IN_ROOT, /* links are followed as if the folder were the root: none leads out */
} UprofFileLinks;

/** UprofFileKind: the files that a request allows */
typedef enum {
    UPROF_FILE_REGULAR, /* uprof_regular_file_open() */
    UPROF_FILE_BELOW,   /* uprof_regular_file_open_below() */
    UPROF_FILE_INPUT,   /* uprof_regular_file_open_input() */
} UprofFileKind;

/** UprofFileRequest: a file to open */
typedef struct {
    UprofFileKind kind;
    UprofFileLinks links; /* of BELOW */
    const char *folder;   /* (nullable): of BELOW */
    const char *path;     /* for BELOW, path below @folder */
} UprofFileRequest;

/**
 * uprof_regular_file_delegate: lets another process open all files for this one, which has no
 * rights
 * @ask: Returns: a descriptor to read from, or -1 with errno; called by the functions below
 * @data: borrowed; passed to @ask
 *
 * Call it before the process has a second thread.
 */
void
uprof_regular_file_delegate(int (*ask)(const UprofFileRequest *request, void *data), void *data);

/** uprof_regular_file_open: follows links */
int uprof_regular_file_open(const char *path);

/**
 * uprof_regular_file_open_input: opens a file that the user has chosen; follows links
 *
 * Also opens pipes without a name, and the pipes of this user and of root. Waits up to 5 seconds
 * until somebody writes into a pipe with a name; then fails with ETIMEDOUT.
 */
int uprof_regular_file_open_input(const char *path);

/**
 * uprof_regular_file_open_below:
 * @folder: trusted; links in its own path are followed
 * @rest: path below @folder; ".." never leads out of it
 */
int uprof_regular_file_open_below(const char *folder, const char *rest, UprofFileLinks links);

/**
 * uprof_regular_file_open_in: opens a file that lies directly in a folder; follows no link
 * @folder_fd: of the folder; not used by a process that opens no files itself
 * @folder: its path
 * @name: of the file, without '/'
 */
int uprof_regular_file_open_in(int folder_fd, const char *folder, const char *name);

/** uprof_regular_file_is_missing: does @reason, a value of errno, mean that the file is missing? */
bool uprof_regular_file_is_missing(int reason);

/** uprof_regular_file_reason: Returns: (transfer none): the reason in words, for messages */
const char *uprof_regular_file_reason(int reason);
