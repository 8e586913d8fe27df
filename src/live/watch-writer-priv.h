/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * watch-writer-priv.h - writes kept samples to files, in a process without rights for each profile
 *
 * A thread waits for these processes, so that sampling goes on meanwhile.
 */
#pragma once

#include "uprof/error.h"
#include "uprof/output.h"

typedef struct _UprofWatchWriter UprofWatchWriter;

/** UprofWatchProfile: a profile to write. All members are owned. */
typedef struct {
    char *shown;         /* name of the domain, safe to print */
    char *trigger;       /* why it is written */
    uint64_t started_ns; /* UTC, of the first slice */
    GBytes *facts;       /* see watch-slice-priv.h */
    GPtrArray *slices;   /* of GBytes */
    GPtrArray *files;    /* of UprofFile */
    GPtrArray *formats;  /* of UprofFormat, borrowed; as @files */
    int asker;           /* a connection that waits for the answer; -1: none */
} UprofWatchProfile;

/** uprof_watch_profile_new: Returns: (transfer full): a profile without slices and files */
UprofWatchProfile *uprof_watch_profile_new(const char *shown, const char *trigger);
void uprof_watch_profile_free(UprofWatchProfile *profile);

/** UprofWatchResult: what became of a profile. All members are owned. */
typedef struct {
    char *text; /* one line */
    bool is_error;
} UprofWatchResult;

void uprof_watch_result_free(UprofWatchResult *result);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofWatchResult, uprof_watch_result_free)

/**
 * uprof_watch_writer_new: forks the process that makes the others; the program must have one thread
 *
 * Returns: (transfer full) (nullable): %NULL with an error
 */
UprofWatchWriter *uprof_watch_writer_new(GError **error);

/** uprof_watch_writer_free: @writer: (nullable): ends its work, for at most half a minute */
void uprof_watch_writer_free(UprofWatchWriter *writer);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofWatchWriter, uprof_watch_writer_free)

/** uprof_watch_writer_add: @profile: (transfer full) */
void uprof_watch_writer_add(UprofWatchWriter *writer, UprofWatchProfile *profile);

/** uprof_watch_writer_finish: waits until all profiles are written */
void uprof_watch_writer_finish(UprofWatchWriter *writer);

/** uprof_watch_writer_take: Returns: (transfer full) (nullable): the next result; %NULL: none now */
UprofWatchResult *uprof_watch_writer_take(UprofWatchWriter *writer);
