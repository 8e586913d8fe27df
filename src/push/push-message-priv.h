/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * push-message-priv.h - the messages between the program and its helper, push-helper
 *
 * The helper's standard input is a channel (channel.h). The program sends UPROF_PUSH_BEGIN once,
 * and then UPROF_PUSH_SEND for each request. The helper replies to each message with
 * UPROF_PUSH_ANSWER, and ends when the channel is closed. Both ends belong to one version, so
 * messages are structs as in memory. The program checks what the helper sends, because an engine
 * may have taken it over.
 */
#pragma once

#include <stdint.h>

enum {
    UPROF_PUSH_TEXT_BYTES_MAX = 64 * 1024, /* of the texts of UPROF_PUSH_BEGIN */
    UPROF_PUSH_WORDS_BYTES_MAX = 2 * 1024, /* of the text of UPROF_PUSH_ANSWER */
};

/** UprofPushMessage: types of messages */
typedef enum {
    UPROF_PUSH_BEGIN, /* UprofPushBegin; the URL and the lines of the header, each with a NUL at its
                       * end; the files that UprofPushBegin names, in its order, as descriptors */
    UPROF_PUSH_SEND,  /* empty; the body, a file in memory, as a descriptor */
    UPROF_PUSH_ANSWER, /* UprofPushAnswerHead, and a text of the engine or about a failure */
} UprofPushMessage;

typedef struct {
    uint32_t has_ca;          /* 0 or 1, as the next two */
    uint32_t has_certificate; /* of the client */
    uint32_t has_key;
    uint32_t timeout_s; /* for a request */
} UprofPushBegin;

/** UprofPushAnswerKind: the end of a request */
typedef enum {
    UPROF_PUSH_ANSWERED,   /* @status is of HTTP */
    UPROF_PUSH_UNANSWERED, /* no connection, or it has broken: to be tried again */
    UPROF_PUSH_DISTRUSTED, /* a certificate is wrong */
    UPROF_PUSH_IMPOSSIBLE, /* the helper cannot work */
} UprofPushAnswerKind;

typedef struct {
    uint32_t kind; /* UprofPushAnswerKind */
    uint32_t status;
    uint32_t retry_s; /* that the engine asks to wait; 0: it does not say */
    uint32_t is_json; /* 0 or 1: the content of the answer may be a JSON object */
    int64_t date_s;   /* the engine's time, since 1970; 0: it does not say */
} UprofPushAnswerHead;
