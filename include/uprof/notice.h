/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * notice.h - messages of a library for the user of the program
 *
 * Libraries do not print. A function that goes on after a problem, or reports what it does, sends a
 * notice. The program decides where notices are shown. A function that cannot go on returns a
 * GError instead.
 */
#pragma once

#include "uprof/error.h"

/** UprofNoticeKind: the importance of a notice */
typedef enum {
    UPROF_NOTICE_INFO,    /* a report of progress; hidden by --quiet */
    UPROF_NOTICE_HINT,    /* advice; hidden by --quiet */
    UPROF_NOTICE_WARNING, /* a problem; always shown */
} UprofNoticeKind;

/** UprofNotices: the receiver of notices */
typedef struct {
    /* @text: one line without newline, valid until the function returns */
    void (*show)(UprofNoticeKind kind, const char *text, void *data);
    void *data; /* borrowed; passed to @show */
} UprofNotices;

/**
 * uprof_notice:
 * @notices: (nullable): %NULL drops the notice
 *
 * Sends one line. Call it from the thread that owns @notices.
 */
void uprof_notice(const UprofNotices *notices, UprofNoticeKind kind, const char *format, ...)
    G_GNUC_PRINTF(3, 4);

/** uprof_notice_error: sends @error as a WARNING. Returns: its code */
UprofErrorCode uprof_notice_error(const UprofNotices *notices, const GError *error);
