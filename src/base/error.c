/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "error-priv.h"

#include <errno.h>

/* clang-format off */
G_DEFINE_QUARK(uprof-error-quark, uprof_error)
/* clang-format on */

UprofErrorCode
uprof_error_code_of(const GError *error)
{
    if (!error)
        return UPROF_ERROR_NONE;
    return error->domain == UPROF_ERROR ? (UprofErrorCode)error->code : UPROF_ERROR_FAILED;
}

UprofErrorCode
uprof_error_of_errno(int code)
{
    switch (code) {
    case EACCES:
    case EPERM:
    case EROFS:
        return UPROF_ERROR_DENIED;
    case ENOENT:
        return UPROF_ERROR_NO_FILE;
    default:
        return UPROF_ERROR_FAILED;
    }
}

bool
uprof_error_fail_errno(GError **error, const char *format, ...)
{
    const int code = errno;
    va_list arguments;

    va_start(arguments, format);
    g_autofree char *what = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    g_set_error(error, UPROF_ERROR, uprof_error_of_errno(code), "%s: %s", what, g_strerror(code));
    return false;
}

UprofErrorCode
uprof_error_merge(UprofErrorCode one, UprofErrorCode other)
{
    if (one == UPROF_ERROR_LEFT_HELD || other == UPROF_ERROR_LEFT_HELD)
        return UPROF_ERROR_LEFT_HELD;
    return one != UPROF_ERROR_NONE ? one : other;
}

void
uprof_error_count(UprofErrorTally *tally, UprofErrorCode code)
{
    tally->n++;
    tally->n_failed += code != UPROF_ERROR_NONE;
    tally->code = uprof_error_merge(tally->code, code);
}

UprofErrorCode
uprof_error_of_tally(const UprofErrorTally *tally)
{
    const bool some_failed = tally->n_failed > 0 && tally->n_failed < tally->n;

    return some_failed && tally->code != UPROF_ERROR_LEFT_HELD ? UPROF_ERROR_SOME_FAILED
                                                               : tally->code;
}
