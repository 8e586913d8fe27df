/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * worker-reply-priv.h - text that a worker makes and the program prints
 *
 * A worker knows what it has counted, so that it also writes the text about it. The program makes
 * that text safe before it prints it.
 */
#pragma once

#include "uprof/session.h"

/** uprof_worker_reply_begin: in a worker: lines of uprof_say() are collected from now on */
void uprof_worker_reply_begin(void);

/** uprof_worker_reply_end: in a worker: appends the collected lines to @reply */
void uprof_worker_reply_end(GByteArray *reply);

/**
 * uprof_worker_reply_say: calls a function in the worker, and prints its reply line by line
 * @call: of UprofWorkerPlan
 *
 * Prints nothing if the worker has failed.
 */
void uprof_worker_reply_say(const UprofSession *session, unsigned call);

/**
 * uprof_worker_reply_text: calls a function in the worker
 *
 * Returns: (transfer full) (nullable): its reply, safe to print; %NULL with an error
 */
GString *uprof_worker_reply_text(const UprofSession *session, unsigned call, UprofSlice argument,
                                 GError **error);
