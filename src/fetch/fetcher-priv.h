/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * fetcher-priv.h - the helper program of the fetcher
 *
 *     debuginfod-helper executable|debuginfo BUILD_ID
 *
 * writes the file with this build-id to its standard output. If that fails, it writes one line
 * about the reason to its standard error. It ends when its standard input, a pipe, is closed.
 */
#pragma once

#include "uprof/fetcher.h"

enum {
    UPROF_FETCH_FILES_MAX = 400, /* that a run asks for */
};

/** UprofHelperStatus: exit status of the helper */
typedef enum {
    UPROF_HELPER_FOUND,
    UPROF_HELPER_MISSING,   /* no server has the file */
    UPROF_HELPER_NO_SERVER, /* no server can be reached */
    UPROF_HELPER_FAILED,    /* or any other status */
} UprofHelperStatus;

/** uprof_fetcher_new_by: uprof_fetcher_new() with another program and another cache */
UprofFetcher *uprof_fetcher_new_by(UprofFetchKind kind, const char *helper, const char *folder);
