/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * pause-priv.h - one hold of a whole guest while the worker reads it
 *
 * In the hold of a sample nothing is allocated, looked up, printed or written. Here the worker does
 * all of its work in the hold, because only then all that it reads is of one moment. Instead the
 * hold is bounded: a thread of its own takes the hold, and ends it when the call ends, or the time
 * is up, or a signal ends the program, or the guardian has died. This thread is made before the
 * hold, and allocates nothing in it. If the program dies, the guardian resumes the guest, as after
 * every hold.
 */
#pragma once

#include "uprof/guest.h"
#include "uprof/worker.h"

/** UprofPauseEnd: why a pause has ended */
typedef enum {
    UPROF_PAUSE_DONE,        /* the call had ended */
    UPROF_PAUSE_TOO_LONG,    /* the time was up: the call went on */
    UPROF_PAUSE_INTERRUPTED, /* a signal or the death of the guardian: the call went on */
} UprofPauseEnd;

/** UprofPauseInput: what to call, and for how long; all pointers are borrowed for the call */
typedef struct {
    UprofGuest *guest;   /* nothing else holds it, and nobody had paused it when it was opened */
    int guardian;        /* see uprof_guardian_fd(); -1: none */
    uint64_t limit_ns;   /* the longest time for which the guest stands still */
    UprofWorker *worker; /* reads @guest */
    unsigned call;       /* of the worker's plan ... */
    UprofSlice argument; /* ... and its argument */
} UprofPauseInput;

/** UprofPauseResult: only if the answer is %UPROF_OK */
typedef struct {
    GByteArray *reply; /* owned: of the worker */
    UprofPauseEnd end;
    uint64_t held_ns; /* from the request to stop until the release */
} UprofPauseResult;

void uprof_pause_result_clear(UprofPauseResult *result);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(UprofPauseResult, uprof_pause_result_clear)

/**
 * uprof_pause_call: calls a function in the worker while the whole guest is held
 * @result: (out): in any case; to be cleared
 *
 * Returns: the answer for the hold; if it is not %UPROF_OK, nothing was called. Else %UPROF_FAILED
 * with an error if the hold or its release has failed, or the worker has died
 */
UprofAnswer
uprof_pause_call(const UprofPauseInput *input, UprofPauseResult *result, GError **error);
