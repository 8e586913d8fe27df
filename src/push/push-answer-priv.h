/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * push-answer-priv.h - the meaning of an engine's answer for a profile
 */
#pragma once

#include "push-message-priv.h"
#include "uprof/bytes.h"

/** UprofPushVerdict: the next step */
typedef enum {
    UPROF_VERDICT_SENT,    /* the engine has the profile */
    UPROF_VERDICT_REFUSED, /* the engine will never take it */
    UPROF_VERDICT_AGAIN,   /* the engine may take it later */
    UPROF_VERDICT_LEAVE,   /* no profile can be sent to this destination now */
} UprofPushVerdict;

/** UprofPushAnswer: an answer */
typedef struct {
    UprofPushVerdict verdict;
    unsigned status;  /* of HTTP; 0: none */
    unsigned retry_s; /* that the engine asks to wait; 0: it does not say */
    bool is_json;     /* the content is a JSON object */
    int64_t date_s;   /* the engine's time, since 1970; 0: it does not say */
    char *words;      /* owned: what the engine says, or why there is no answer; safe to print */
} UprofPushAnswer;

/**
 * uprof_push_answer_read: decides by the helper's message
 * @head: any numbers
 * @words: any bytes
 * @answer: (out)
 */
void
uprof_push_answer_read(const UprofPushAnswerHead *head, UprofSlice words, UprofPushAnswer *answer);

/** uprof_push_answer_fail: there is no answer. @words: safe to print */
void uprof_push_answer_fail(UprofPushAnswer *answer, UprofPushVerdict verdict, const char *words);
void uprof_push_answer_clear(UprofPushAnswer *answer);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(UprofPushAnswer, uprof_push_answer_clear)

/** uprof_push_answer_describe: Returns: (transfer full): "400 words", or only the words */
char *uprof_push_answer_describe(const UprofPushAnswer *answer);
