/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * store.h - the profiles of `collect` on disk: names, slices and days
 *
 *   STORE/data/web-1/web-1-20261120T091500Z.folded.gz    a slice: the stacks of one round
 *                    web-1-20261120T091500Z.meta.json    its sidecar
 *                    web-1-20261119.folded.gz, .meta.json    a closed day
 *                    web-1-20261119.pending    the new sidecar of a day that is being merged
 *                    web-1-20261120.failures   rounds that failed to make a slice
 *   STORE/summary/2026-11-19.txt
 *   STORE/push/grafana.log    the rounds that a destination of `push` has (push/push-log-priv.h)
 *
 * The folder has the safe name of the domain. The sidecar is written last and is the commit
 * mark: a profile without a sidecar does not count. The sidecar has the true name and the UUID.
 * Domains of the same name share a folder. If two of their days would get the same name, the
 * later day gets "~" and its UUID (32 digits) after the date.
 *
 * The store reads only regular files with such names, in the folders of domains, and follows no
 * link. It never changes other files.
 */
#pragma once

#include "uprof/bytes.h"

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define UPROF_STORE_PROFILE ".folded.gz"
#define UPROF_STORE_SIDECAR ".meta.json"
#define UPROF_STORE_FUNCTIONS ".functions.gz"
#define UPROF_STORE_PUSH "push"

typedef struct _UprofStore UprofStore;

/**
 * uprof_store_open:
 * @folder: must not be a link. If root runs the program, only root may be able to write to it.
 * @may_create: makes the folder if it is missing, and sets the umask of the process to 027
 *
 * Returns: (transfer full) (nullable): %NULL with %UPROF_ERROR_FAILED or %UPROF_ERROR_DENIED
 */
UprofStore *uprof_store_open(const char *folder, bool may_create, GError **error);
void uprof_store_close(UprofStore *store);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofStore, uprof_store_close)

/** uprof_store_exists: is there a file or folder at the path @folder? */
bool uprof_store_exists(const char *folder);

/**
 * uprof_store_lock: takes the lock of the store; only a process with this lock may delete files
 * @taken: (out): another process has the lock; then no error is set
 *
 * uprof_store_close() releases the lock. The lock is on the folder, so no lock file is left behind,
 * and each store has its own lock.
 */
bool uprof_store_lock(UprofStore *store, bool *taken, GError **error);

/** uprof_store_path: Returns: (transfer none): the path that was opened */
const char *uprof_store_path(const UprofStore *store);

/** uprof_store_folder: Returns: borrowed: descriptor of the folder of the store */
int uprof_store_folder(const UprofStore *store);

/**
 * uprof_store_open_push: opens the folder %UPROF_STORE_PUSH
 * @may_create: makes the folder if it is missing
 *
 * Returns: a descriptor; -1 with %UPROF_ERROR_FAILED or %UPROF_ERROR_DENIED, or without an error if
 *   there is no such folder
 */
int uprof_store_open_push(UprofStore *store, bool may_create, GError **error);

/**
 * uprof_store_data: Returns: borrowed: descriptor of the folder that has the domains' folders; -1:
 *   there is none yet
 */
int uprof_store_data(const UprofStore *store);

/**
 * uprof_store_slice_base: names a new slice, and makes the folder of the domain
 * @start_s: since 1970. If a slice begins in this second already, because the clock was set back,
 *   the name has the next free second.
 * @counted: (nullable): of int64_t: seconds that are not free although no slice begins in them
 *
 * Returns: (transfer full) (nullable): path without an ending. Write %UPROF_STORE_PROFILE first
 *   and %UPROF_STORE_SIDECAR last.
 */
char *uprof_store_slice_base(UprofStore *store, const char *name, const char *uuid, int64_t start_s,
                             GHashTable *counted, GError **error);

/**
 * uprof_store_last_attempt: finds when a round last sampled the domain, or failed to
 * @now_s: since 1970; later times are ignored, because a clock was ahead
 *
 * Domains that share a folder share the time, too.
 *
 * Returns: since 1970; 0 if there was no attempt
 */
int64_t
uprof_store_last_attempt(UprofStore *store, const char *name, const char *uuid, int64_t now_s);

/**
 * uprof_store_note_failure: notes that a round has failed, for the summary of the day
 * @at_s: since 1970
 * @reason: one line; any bytes
 *
 * Appends a line to the day's file of failures. A file of more than a megabyte gets no
 * more lines, without an error.
 */
bool uprof_store_note_failure(UprofStore *store, const char *name, const char *uuid, int64_t at_s,
                              const char *reason, GError **error);

/**
 * uprof_store_has_room: at least @min_free_megabytes of the disk are free; else sets
 * %UPROF_ERROR_FAILED
 */
bool uprof_store_has_room(UprofStore *store, uint64_t min_free_megabytes, GError **error);

/** UprofStoreVisit: @path: of a file that will be removed; relative to the store */
typedef void (*UprofStoreVisit)(const char *path, void *data);

/**
 * uprof_store_remove_leftovers: removes temporary files, and profiles without a sidecar, that are
 * older than a day
 * @now_s: since 1970
 * @dry_run: removes nothing
 * @visit: (nullable): called for each file
 */
void uprof_store_remove_leftovers(UprofStore *store, int64_t now_s, bool dry_run,
                                  UprofStoreVisit visit, void *data);
