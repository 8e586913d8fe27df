/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * store-message-priv.h - the messages between the program and a process that reads the store
 *
 * Both ends run the same program file, so messages are structs as in memory. The process trusts the
 * program. The program checks each number, and each name by the rules of the store.
 */
#pragma once

#include "uprof/error.h"
#include "uprof/notice.h"

#include <glib.h>
#include <stdint.h>

enum {
    UPROF_STORE_STEM_BYTES = 256,
    UPROF_STORE_ENDING_BYTES = 16,
};

/** UprofStoreMessage: types of messages from a process */
typedef enum {
    UPROF_STORE_ASK_READ,  /* UprofStoreFileAsk; the answer: UprofStoreAnswer, and a descriptor */
    UPROF_STORE_ASK_HAS,   /* UprofStoreFileAsk; the answer: UprofStoreAnswer */
    UPROF_STORE_ASK_WRITE, /* UprofStoreFileAsk; the answer: UprofStoreAnswer, the text of an error,
                            * and a descriptor */
    UPROF_STORE_ASK_COMMIT,      /* empty: commits the file of the last UPROF_STORE_ASK_WRITE; the
                                  * answer: UprofStoreAnswer, the text of an error */
    UPROF_STORE_ASK_RENAME,      /* UprofStoreFileAsk; the answer: as of UPROF_STORE_ASK_COMMIT */
    UPROF_STORE_ASK_REMOVE,      /* UprofStoreFileAsk; the answer: as of UPROF_STORE_ASK_COMMIT */
    UPROF_STORE_TELL_NOTICE,     /* UprofStoreNotice, text */
    UPROF_STORE_TELL_CLOSED_DAY, /* UprofStoreClosedDay */
    UPROF_STORE_TELL_REPLY,      /* a part of the reply */
} UprofStoreMessage;

typedef struct {
    guint folder; /* index in the folders of UprofStoreWork */
    char stem[UPROF_STORE_STEM_BYTES];
    char ending[UPROF_STORE_ENDING_BYTES]; /* of UPROF_STORE_ASK_RENAME: the old one */
    char to[UPROF_STORE_ENDING_BYTES];     /* of UPROF_STORE_ASK_RENAME: the new one */
} UprofStoreFileAsk;

typedef struct {
    bool ok;
    UprofErrorCode code; /* unless @ok */
    int reason;          /* errno of UPROF_STORE_ASK_READ */
} UprofStoreAnswer;

typedef struct {
    UprofNoticeKind kind;
} UprofStoreNotice;

typedef struct {
    int64_t day_s;
    unsigned n_slices;
} UprofStoreClosedDay;
