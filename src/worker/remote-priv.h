/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * remote-priv.h - in a worker: reads memory and opens files through the program
 *
 * If the program has ended, the process ends at once.
 */
#pragma once

#include "uprof/guest.h"

/** UprofRemoteFacts: the facts about a guest that a worker needs to read its memory */
typedef struct {
    const UprofArch *arch;
    unsigned n_vcpus;
    bool slow_reads;
    bool translates; /* the backend translates virtual addresses */
} UprofRemoteFacts;

/**
 * uprof_remote_new:
 * @requests: borrowed: the request channel
 *
 * Returns: (transfer full): a guest whose memory can be read; close it with uprof_guest_close()
 */
UprofGuest *uprof_remote_new(int requests, const UprofRemoteFacts *facts);

/** uprof_remote_tell: sends a message of @type that has no answer */
void uprof_remote_tell(int requests, uint32_t type, const UprofSlice *parts, unsigned n_parts);

/** uprof_remote_open_files: makes the functions of regular-file.h open files through the program */
void uprof_remote_open_files(int requests);
