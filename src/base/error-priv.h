/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * error-priv.h - error codes of system calls, for tests
 */
#pragma once

#include "uprof/error.h"

/** uprof_error_of_errno: Returns: DENIED, NO_FILE, or FAILED for any other @code of errno */
UprofErrorCode uprof_error_of_errno(int code);
