/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * exit-priv.h - exit codes, and lines on stderr
 */
#pragma once

#include "uprof/error.h"

enum {
    UPROF_EXIT_OK = 0,
    UPROF_EXIT_FAILED = 1,
    UPROF_EXIT_USAGE = 2,
    UPROF_EXIT_DOMAIN = 3,
    UPROF_EXIT_DENIED = 4,
    UPROF_EXIT_USELESS = 5,
    UPROF_EXIT_SOME_FAILED = 6,
    UPROF_EXIT_LEFT_HELD = 10,
    UPROF_EXIT_LOCKED = 75,
};

/** uprof_exit_of_code: Returns: the exit code of an error code */
int uprof_exit_of_code(UprofErrorCode code);

/** uprof_exit_code: Returns: the exit code of an error */
int uprof_exit_code(const GError *error);

/** uprof_exit_worse: Returns: LEFT_HELD if a code is LEFT_HELD; else the first that is not OK */
int uprof_exit_worse(int one, int other);

/** uprof_exit_of_tally: Returns: the exit code for all domains; SOME_FAILED if only some failed */
int uprof_exit_of_tally(const UprofErrorTally *tally);

/** uprof_exit_of_run: Returns: the exit code of uprof_record_domains() */
int uprof_exit_of_run(const UprofErrorTally *tally, UprofErrorCode code);

/** uprof_exit_leave: ends the process with uprof_exit_of_run(), and does nothing else */
G_GNUC_NORETURN void uprof_exit_leave(const UprofErrorTally *tally, UprofErrorCode code);

/** uprof_exit_text: Returns: (nullable): the meaning of @code, for --help; %NULL: no such code */
const char *uprof_exit_text(int code);

/** uprof_say_error: prints "virt-uprof: " and the message. Returns: the code of @error */
UprofErrorCode uprof_say_error(const GError *error);

/** uprof_exit_say_error: prints like uprof_say_error(). Returns: the exit code of @error */
int uprof_exit_say_error(const GError *error);

/** uprof_say: prints one line on stderr and ends the progress line, if there is one */
void uprof_say(const char *format, ...) G_GNUC_PRINTF(1, 2);

/** uprof_say_lines: prints each line; @lines: (transfer full) (element-type utf8) */
void uprof_say_lines(GPtrArray *lines);

/** uprof_say_progress: replaces the progress line on stderr by @text; "" clears the line */
void uprof_say_progress(const char *text);

/**
 * uprof_say_divert: collects the lines of uprof_say() while a full screen is shown
 * @lines: (nullable): of char; gets the lines; borrowed until the next call. %NULL: uprof_say()
 *   prints on stderr again.
 */
void uprof_say_divert(GPtrArray *lines);
