/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * worker-message-priv.h - what the program accepts of a worker
 *
 * These functions only look at bytes. Nothing that they accept can harm the program: each length
 * fits, and each number is in its range.
 */
#pragma once

#include "protocol-priv.h"
#include "uprof/links.h"
#include "uprof/notice.h"
#include "uprof/worker.h"

/** UprofWorkerInput: a buffer for any message of a worker, with the alignment that each needs */
typedef union {
    UprofReadSpan spans[UPROF_READ_SPANS_MAX];
    UprofTranslateAsk translate;
    UprofWindowTell window;
    UprofWorkerCounts counts;
    UprofLinks links;
    uint32_t number;
    uint8_t bytes[UPROF_CHANNEL_BYTES_MAX];
} UprofWorkerInput;

/**
 * uprof_worker_message_plan_reads: checks %UPROF_ASK_READ
 * @len: bytes of @input
 * @into: has room for %UPROF_READ_BYTES_MAX bytes
 * @spans: (out): has room for %UPROF_READ_SPANS_MAX; one after another in @into
 * @n: (out): how many
 * @bytes: (out): of all of them
 *
 * Returns: false if the request breaks the rules
 */
bool uprof_worker_message_plan_reads(const UprofWorkerInput *input, size_t len, uint8_t *into,
                                     UprofSpan *spans, unsigned *n, size_t *bytes);

/**
 * uprof_worker_message_find_notice: checks %UPROF_TELL_NOTICE
 * @text: (out): a part of @input: any bytes
 *
 * Returns: false if the message breaks the rules
 */
bool uprof_worker_message_find_notice(const UprofWorkerInput *input, size_t len,
                                      UprofNoticeKind *kind, UprofSlice *text);

/**
 * uprof_worker_message_has_links: checks %UPROF_TELL_LINKS
 * @n_vcpus: of the guest
 *
 * The sampler may use such links: it copies only memory of that guest by them, and a bounded part.
 */
bool uprof_worker_message_has_links(const UprofWorkerInput *input, size_t len, unsigned n_vcpus);

/** uprof_worker_message_has_window: checks %UPROF_TELL_WINDOW; @n_vcpus: of the guest */
bool uprof_worker_message_has_window(const UprofWorkerInput *input, size_t len, unsigned n_vcpus);

/**
 * uprof_worker_message_read_outcome: reads a reply that is an UprofOutcome
 * @reply: any bytes; a reply that is too short is a failure
 * @outcome: (out): its code is one of UprofErrorCode
 * @text: (out): the text of the error: a part of @reply, any bytes
 */
void uprof_worker_message_read_outcome(UprofSlice reply, UprofOutcome *outcome, UprofSlice *text);
