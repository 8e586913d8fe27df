/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * error.h - the one error domain
 *
 * What is unexpected is a GError of this domain; what can be expected (a busy
 * guest, unmapped memory, an address with no name) is a value and never gets
 * here. A code exists only because some caller acts on it: the program turns
 * it into its exit code (cli/exit.c).
 */
#pragma once

#include <glib.h>

#define UPROF_ERROR (uprof_error_quark())

/**
 * UprofErrorCode:
 * @UPROF_ERROR_FAILED: input or output failed, or something broke
 * @UPROF_ERROR_NOT_FOUND: no such domain, or it does not run
 * @UPROF_ERROR_DENIED: no connection, or no permission
 * @UPROF_ERROR_UNSUPPORTED: this cannot be done with this guest, host or build
 * @UPROF_ERROR_BAD_DATA: bytes from outside are not what they should be
 * @UPROF_ERROR_LEFT_HELD: a guest may have been left stopped
 * @UPROF_ERROR_NO_FILE: there is no file of that name
 */
typedef enum {
    UPROF_ERROR_FAILED,
    UPROF_ERROR_NOT_FOUND,
    UPROF_ERROR_DENIED,
    UPROF_ERROR_UNSUPPORTED,
    UPROF_ERROR_BAD_DATA,
    UPROF_ERROR_LEFT_HELD,
    UPROF_ERROR_NO_FILE,
} UprofErrorCode;

GQuark uprof_error_quark(void);
