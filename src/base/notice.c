/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/notice.h"

void
uprof_notice(const UprofNotices *notices, UprofNoticeKind kind, const char *format, ...)
{
    va_list arguments;

    if (!notices)
        return;
    va_start(arguments, format);
    g_autofree char *text = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    notices->show(kind, text, notices->data);
}

UprofErrorCode
uprof_notice_error(const UprofNotices *notices, const GError *error)
{
    uprof_notice(notices, UPROF_NOTICE_WARNING, "%s", error->message);
    return uprof_error_code_of(error);
}
