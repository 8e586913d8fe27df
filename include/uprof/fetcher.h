/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * fetcher.h - fetches symbol files by their build-ids from the servers of $DEBUGINFOD_URLS
 *
 * A worker that lacks a file of the symbol cache makes the program ask for it. A helper program,
 * which is not root, downloads the file with elfutils' client (src/fetch/debuginfod-helper.c). The
 * program does not read the file: it only gives the file its name in the cache.
 *
 * A fetcher of kind BACKGROUND has a thread. It lists the files that have come; workers read them.
 * A fetcher of kind WAITING downloads while the worker waits, for a limited time of the run.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

typedef struct _UprofFetcher UprofFetcher;

/** UprofFetchKind: see above */
typedef enum {
    UPROF_FETCH_BACKGROUND,
    UPROF_FETCH_WAITING,
} UprofFetchKind;

enum {
    UPROF_FETCH_WAIT_S = 15, /* that a run waits for files, at most */
};

/** UprofFetchCounts: what a run has asked for */
typedef struct {
    unsigned n_asked;
    unsigned n_found;
    unsigned n_missing; /* no server has the file */
    unsigned n_failed;  /* also files that were not asked for, because no server can be reached */
    char *why_failed;   /* (nullable): owned: of the last failure; any text */
} UprofFetchCounts;

/**
 * uprof_fetcher_new: the thread and the cache are made when the first file is wanted
 *
 * Returns: (transfer full) (nullable): %NULL if the user wants no server to be asked
 */
UprofFetcher *uprof_fetcher_new(UprofFetchKind kind);

/** uprof_fetcher_hurry: a signal ends the run: downloads end soon; a signal handler may call it */
void uprof_fetcher_hurry(UprofFetcher *fetcher);

/** uprof_fetcher_free: ends a download that runs */
void uprof_fetcher_free(UprofFetcher *fetcher);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofFetcher, uprof_fetcher_free)

/**
 * uprof_fetcher_want: fetches a file, once in a run
 * @path: of a file that could not be opened; any text
 *
 * Returns: true if the file is there now; always false for kind BACKGROUND
 */
bool uprof_fetcher_want(UprofFetcher *fetcher, const char *path);

/**
 * uprof_fetcher_arrived: files that have arrived, in order
 * @i: from 0
 *
 * Returns: (transfer none) (nullable): the build-id of the file in hex; %NULL behind the last one
 */
const char *uprof_fetcher_arrived(UprofFetcher *fetcher, unsigned i);

/** uprof_fetcher_is_busy: does the thread still fetch files? */
bool uprof_fetcher_is_busy(UprofFetcher *fetcher);

/** uprof_fetcher_has_time: is a part of %UPROF_FETCH_WAIT_S left? */
bool uprof_fetcher_has_time(const UprofFetcher *fetcher);

/**
 * uprof_fetcher_wait: waits for the files that the thread still fetches
 * @gives_up: called now and then. Returns: true to end the wait
 * @data: borrowed; passed to @gives_up
 *
 * All calls together wait %UPROF_FETCH_WAIT_S at most. The thread goes on with the other files.
 *
 * Returns: false if files are still missing
 */
bool uprof_fetcher_wait(UprofFetcher *fetcher, bool (*gives_up)(void *data), void *data);

/** uprof_fetcher_counts: @counts: (out) (transfer full) */
void uprof_fetcher_counts(UprofFetcher *fetcher, UprofFetchCounts *counts);
