/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * worker-message-priv.h - checks the messages of a worker
 *
 * These functions only inspect bytes. In a message that they accept, each length fits and each
 * number is in its range, so the program can use the message safely.
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
    UprofChainTell chain;
    uint32_t number;
    uint8_t bytes[UPROF_CHANNEL_BYTES_MAX];
} UprofWorkerInput;

/**
 * uprof_worker_message_list_reads: checks %UPROF_ASK_READ
 * @len: bytes of @input
 * @into: has room for %UPROF_READ_BYTES_MAX bytes
 * @spans: (out): has room for %UPROF_READ_SPANS_MAX; one after another in @into
 * @n: (out): the number of spans
 * @bytes: (out): the sum of their lengths
 *
 * Returns: false if the request breaks the rules
 */
bool uprof_worker_message_list_reads(const UprofWorkerInput *input, size_t len, uint8_t *into,
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
 * The sampler can use such links safely: they lead only to memory of that guest, and their sizes
 * are limited.
 */
bool uprof_worker_message_has_links(const UprofWorkerInput *input, size_t len, unsigned n_vcpus);

/** uprof_worker_message_has_chain: checks %UPROF_TELL_CHAIN, which the sampler can then use safely
 */
bool uprof_worker_message_has_chain(const UprofWorkerInput *input, size_t len);

/** uprof_worker_message_has_window: checks %UPROF_TELL_WINDOW; @n_vcpus: of the guest */
bool uprof_worker_message_has_window(const UprofWorkerInput *input, size_t len, unsigned n_vcpus);

/**
 * uprof_worker_message_read_outcome: reads a reply that is an UprofOutcome
 * @reply: any bytes; a reply that is too short is a failure
 * @outcome: (out): its code is one of UprofErrorCode
 * @text: (out): the text of the error: a part of @reply, any bytes
 */
void uprof_worker_message_read_outcome(UprofSlice reply, UprofOutcome *outcome, UprofSlice *text);
