/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * error.h - the error domain of virt-uprof
 *
 * Unexpected failures are a GError of this domain. Expected conditions (a busy guest,
 * unmapped memory, an address without a name) are return values instead. Each code exists
 * because a caller acts on it. cli/exit.c turns the codes into exit codes of the program.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

#define UPROF_ERROR (uprof_error_quark())

/** UprofErrorCode: the code of a GError, or of a function that reports its errors as notices */
typedef enum {
    UPROF_ERROR_NONE,        /* no error; never the code of a GError */
    UPROF_ERROR_FAILED,      /* input or output failed, or another unexpected failure */
    UPROF_ERROR_NOT_FOUND,   /* there is no such domain, or it does not run */
    UPROF_ERROR_DENIED,      /* no connection, or no permission */
    UPROF_ERROR_UNSUPPORTED, /* this guest, host or build cannot do it */
    UPROF_ERROR_BAD_DATA,    /* bytes from outside are malformed */
    UPROF_ERROR_LEFT_HELD,   /* a guest may have been left stopped */
    UPROF_ERROR_NO_FILE,     /* the file does not exist */
    UPROF_ERROR_LOCKED,      /* another run of virt-uprof has the lock */
    UPROF_ERROR_EMPTY,       /* there is no usable sample or stack */
    UPROF_ERROR_USAGE,       /* the user asks for what this domain does not have */
    UPROF_ERROR_SOME_FAILED, /* some of several domains or files failed, others did not */
} UprofErrorCode;

GQuark uprof_error_quark(void);

/** uprof_error_code_of: Returns: the code of @error (nullable); FAILED if it has another domain */
UprofErrorCode uprof_error_code_of(const GError *error);

/**
 * uprof_error_fail_errno: sets @error for a system call that has just failed
 * @format: what failed; ": " and the text of errno are added
 *
 * Returns: false, always, so that a function can end with it
 */
bool uprof_error_fail_errno(GError **error, const char *format, ...) G_GNUC_PRINTF(2, 3);

/**
 * uprof_error_merge: Returns: LEFT_HELD if one code is LEFT_HELD; else the first that is not NONE
 */
UprofErrorCode uprof_error_merge(UprofErrorCode one, UprofErrorCode other);

/** UprofErrorTally: the results of several domains */
typedef struct {
    unsigned n;          /* domains so far */
    unsigned n_failed;   /* of these, domains that ended with an error */
    UprofErrorCode code; /* of the first that failed; LEFT_HELD outranks it */
} UprofErrorTally;

/** uprof_error_count: adds one more domain that ended with @code */
void uprof_error_count(UprofErrorTally *tally, UprofErrorCode code);

/** uprof_error_of_tally: Returns: the code for all domains; SOME_FAILED if only some failed */
UprofErrorCode uprof_error_of_tally(const UprofErrorTally *tally);
