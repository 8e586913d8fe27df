/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * protocol-priv.h - the messages between the program and a worker
 *
 * A worker has two channels. On the stream the program sends snapshots, calls and the build-ids of
 * new files, in order, and gets no answer. On the request channel the worker asks for memory and
 * files; it also reports results there, without waiting. Answers come in the order of requests, and
 * at most two requests wait for one. The processes of confined-command.h and kernel-files.h have
 * only a request channel.
 *
 * Both ends run the same program file, so messages are structs as in memory. The worker trusts the
 * program. The program does not trust a worker: it checks the length of each message and the range
 * of each number (worker-message-priv.h).
 */
#pragma once

#include "uprof/chains.h"
#include "uprof/channel.h"
#include "uprof/guest.h"
#include "uprof/regular-file.h"

/** UprofDo: types of messages on the stream */
typedef enum {
    UPROF_DO_SNAPSHOTS, /* as by uprof_packed_bytes(), one after the other: analyze them */
    UPROF_DO_CALL,      /* UprofCallHead and the argument: run a function, and send its reply */
    UPROF_DO_WALK,      /* UprofWalkDo: there is time to walk the tasks: see waits.h */
    UPROF_DO_FILE,      /* a build-id in hex, NUL: a file has come to the symbol cache */
    UPROF_DO_ANSWER,    /* nothing: send UPROF_TELL_ANSWER */
} UprofDo;

/** UprofCallHead: the function that runs */
typedef struct {
    uint64_t call; /* UPROF_CALL_...; has 64 bits, so that the argument after it is aligned */
} UprofCallHead;

/** UprofWalkDo: the first members of UprofWaitTick */
typedef struct {
    uint64_t time_ns;
    uint32_t n_pauses;
} UprofWalkDo;

/** UprofTell: types of messages on the request channel */
typedef enum {
    UPROF_ASK_READ,        /* UprofReadSpan[]; the answer: UprofReadAnswer, then the bytes */
    UPROF_ASK_TRANSLATE,   /* UprofTranslateAsk; the answer: UprofTranslateAnswer */
    UPROF_ASK_FILE,        /* UprofFileAsk, folder, NUL, path, NUL; the answer: UprofFileAnswer */
    UPROF_ASK_COMMIT,      /* confined-command.h only; uint32_t: the output to commit; the answer:
                            * UprofOutcome and the text of an error */
    UPROF_TELL_NOTICE,     /* uint32_t UprofNoticeKind, then the text */
    UPROF_TELL_LINKS,      /* UprofLinks */
    UPROF_TELL_CHAIN,      /* UprofChainTell */
    UPROF_TELL_WINDOW,     /* UprofWindowTell */
    UPROF_TELL_COUNTS,     /* UprofWorkerCounts */
    UPROF_TELL_ANSWER,     /* nothing: everything before UPROF_DO_ANSWER is done */
    UPROF_TELL_CHECKPOINT, /* uint32_t: the checkpoint that is complete now */
    UPROF_TELL_REPLY,      /* uint32_t: 1 if this is the last part; then a part of the reply */
} UprofTell;

/** uprof_packed_bytes: Returns: bytes of a snapshot in a message: without its unused bytes, rounded
 * up to 8 */
static inline size_t
uprof_packed_bytes(const UprofSnapshot *snapshot)
{
    return (uprof_snapshot_bytes(snapshot) + sizeof(uint64_t) - 1) / sizeof(uint64_t) *
           sizeof(uint64_t);
}

/** uprof_pack_snapshot: @parts: (out) (array fixed-size=2): the snapshot in a message; borrowed */
static inline void
uprof_pack_snapshot(const UprofSnapshot *snapshot, UprofSlice *parts)
{
    static const uint8_t zeros[sizeof(uint64_t)];
    const size_t len = uprof_snapshot_bytes(snapshot);

    parts[0] = (UprofSlice){ snapshot, len };
    parts[1] = (UprofSlice){ zeros, uprof_packed_bytes(snapshot) - len };
}

enum {
    UPROF_SNAPSHOTS_MAX = 32,                        /* in one message ... */
    UPROF_BATCH_BYTES_MAX = UPROF_CHANNEL_BYTES_MAX, /* ... of at most so many bytes */
    UPROF_READ_SPANS_MAX = 512,                      /* in one request */
    UPROF_READ_BYTES_MAX = 80 * 1024,                /* of all spans of a request */
    UPROF_REPLY_PART_BYTES = 64 * 1024,              /* of a reply, in one message */
    UPROF_REPLY_BYTES_MAX = 64 * 1024 * 1024,
    UPROF_NOTICE_BYTES_MAX = 8 * 1024,
};

typedef struct {
    uint64_t gpa;
    uint32_t len;
} UprofReadSpan;

typedef struct {
    bool missing[UPROF_READ_SPANS_MAX];
} UprofReadAnswer;

typedef struct {
    uint64_t gva;
    unsigned vcpu;
} UprofTranslateAsk;

typedef struct {
    uint64_t gpa;
    bool is_mapped;
} UprofTranslateAnswer;

typedef struct {
    UprofFileKind kind;
    UprofFileLinks links;
} UprofFileAsk;

typedef struct {
    int reason; /* errno; 0: the descriptor comes with the message */
} UprofFileAnswer;

/** UprofChainTell: a chain, and its slot in the UprofChains of the guest */
typedef struct {
    uint32_t slot;
    UprofChain chain;
} UprofChainTell;

typedef struct {
    unsigned vcpu;
    int wanted; /* bytes: see UprofWindowSize */
} UprofWindowTell;

/** Calls that every worker has; those of its plan follow. */
enum {
    UPROF_CALL_BEGIN, /* see begin-priv.h */
    UPROF_CALL_MOVE,  /* UprofRemoteFacts */
    UPROF_CALL_SYNC,  /* does nothing; the reply shows that all earlier messages are done */
    UPROF_CALL_END,   /* UprofEndHead, the text of uprof_capture_format_run(); the reply:
                       * UprofWorkerCounts */
    UPROF_CALL_SAVE,  /* uint32_t: the output */
    UPROF_N_OWN_CALLS,
};

/** UprofEndHead: how a run ends */
typedef struct {
    uint64_t is_hurried; /* a signal ends the run, so the end may take only a second */
} UprofEndHead;

/** UprofOutcome: the reply to BEGIN, MOVE, SYNC, SAVE and COMMIT; the text of an error follows */
typedef struct {
    int code;           /* UprofErrorCode */
    uint32_t is_closed; /* 0 or 1: the reader of the output has closed it */
} UprofOutcome;
