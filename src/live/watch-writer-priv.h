/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * watch-writer-priv.h - writes kept samples to files, in a process without rights for each profile
 *
 * A thread opens the files and waits for these processes, one profile after another, so that
 * sampling goes on meanwhile.
 */
#pragma once

#include "uprof/error.h"
#include "uprof/output-request.h"
#include "uprof/store.h"

typedef struct _UprofWatchWriter UprofWatchWriter;

/** UprofWatchTarget: where profiles are written; all pointers are borrowed */
typedef struct {
    UprofStore *store;           /* (nullable): %NULL: to @outputs; used by the thread alone */
    uint64_t min_free_megabytes; /* of the disk of the store */
    const GPtrArray *outputs;    /* of UprofOutputRequest */
} UprofWatchTarget;

/** UprofWatchProfile: a profile to write. All members are owned. */
typedef struct {
    char *name, *uuid;   /* of the domain */
    char *shown;         /* its name, safe to print */
    char *trigger;       /* why it is written */
    uint64_t started_ns; /* UTC, of the first slice */
    GBytes *facts;       /* see watch-slice-priv.h */
    GPtrArray *slices;   /* of GBytes */
    int asker;           /* a connection that waits for the answer; -1: none */
} UprofWatchProfile;

/** uprof_watch_profile_new: Returns: (transfer full): an empty profile */
UprofWatchProfile *uprof_watch_profile_new(void);
void uprof_watch_profile_free(UprofWatchProfile *profile);

/** UprofWatchResult: what became of a profile. All members are owned. */
typedef struct {
    char *text; /* one line */
    bool is_error;
    bool is_answered; /* somebody asked, and has got the text as the answer */
} UprofWatchResult;

void uprof_watch_result_free(UprofWatchResult *result);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofWatchResult, uprof_watch_result_free)

/**
 * uprof_watch_writer_new: forks the process that makes the others; the program must have one thread
 * @target: copied
 *
 * Returns: (transfer full) (nullable): %NULL with an error
 */
UprofWatchWriter *uprof_watch_writer_new(const UprofWatchTarget *target, GError **error);

/** uprof_watch_writer_free: @writer: (nullable): ends as uprof_watch_writer_finish() does */
void uprof_watch_writer_free(UprofWatchWriter *writer);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofWatchWriter, uprof_watch_writer_free)

/**
 * uprof_watch_writer_add:
 * @profile: (transfer full)
 *
 * Returns: false if too many profiles wait already, or if there is no thread; @profile is then
 * freed
 */
bool uprof_watch_writer_add(UprofWatchWriter *writer, UprofWatchProfile *profile);

/**
 * uprof_watch_writer_finish: waits until all profiles are written
 *
 * The writer begins no profile after 15 seconds, and a profile takes up to 15 seconds more.
 */
void uprof_watch_writer_finish(UprofWatchWriter *writer);

/** uprof_watch_writer_take: Returns: (transfer full) (nullable): the next result; %NULL: none now
 */
UprofWatchResult *uprof_watch_writer_take(UprofWatchWriter *writer);
