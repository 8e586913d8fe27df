/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * exit-priv.h - exit codes, and how errors are said
 */
#pragma once

#include <glib.h>

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

/** uprof_exit_code: Returns: the exit code of an error of ours */
int uprof_exit_code(const GError *error);

/** uprof_exit_worse: Returns: which of two codes to leave with; 10 outranks all */
int uprof_exit_worse(int one, int other);

/**
 * UprofExitTally: the codes of several domains
 * @n, @n_failed: domains so far; @code: of the first that failed
 */
typedef struct {
    unsigned n, n_failed;
    int code;
} UprofExitTally;

/** uprof_exit_count: adds the exit code of one more domain */
void uprof_exit_count(UprofExitTally *tally, int code);

/** uprof_exit_of: Returns: the code for all: 6 if only some have failed */
int uprof_exit_of(const UprofExitTally *tally);

/** uprof_exit_text: Returns: (nullable): what a code means; %NULL: no such code */
const char *uprof_exit_text(int code);

/** uprof_say_error: one line on stderr, "virt-uprof: " before it. Returns: its exit code */
int uprof_say_error(const GError *error);

/** uprof_say: one line on stderr, after the progress line if there is one */
void uprof_say(const char *format, ...) G_GNUC_PRINTF(1, 2);

/** uprof_say_progress: rewrites the progress line on stderr; "" ends it */
void uprof_say_progress(const char *text);

/**
 * uprof_say_divert: what would be said goes elsewhere, while the screen is another's
 * @lines: (nullable): borrowed: of char, owned by it; %NULL: to stderr again
 */
void uprof_say_divert(GPtrArray *lines);
