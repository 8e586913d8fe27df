/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * worker-reply-priv.h - text that a worker makes and the program prints
 *
 * Only the worker has the counts of a domain, so the worker makes the text about them. The program
 * makes the text safe before it prints the text.
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
void uprof_worker_reply_say(const UprofSession *session, unsigned call, UprofSlice argument);

/**
 * uprof_worker_reply_text: calls a function in the worker
 *
 * Returns: (transfer full) (nullable): its reply, safe to print; %NULL with an error
 */
GString *uprof_worker_reply_text(const UprofSession *session, unsigned call, UprofSlice argument,
                                 GError **error);
