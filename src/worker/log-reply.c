/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/log-reply.h"

#include "uprof/kernel-log.h"
#include "uprof/text-limit.h"
#include "uprof/text.h"

#include <string.h>

UprofErrorCode
uprof_log_append(GString *out, const UprofPipeline *pipeline, bool as_json,
                 const UprofNotices *notices, GError **error)
{
    UprofLinuxFacts facts;

    uprof_linux_facts(pipeline->kernel, &facts);
    if (facts.state != UPROF_LINUX_FOUND) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_UNSUPPORTED, "no Linux kernel was found%s%s",
                    facts.why ? ": " : "", facts.why ? facts.why : "");
        return UPROF_ERROR_UNSUPPORTED;
    }
    g_autoptr(UprofKernelLog) log = uprof_kernel_log_read(pipeline->kernel, pipeline->mem, error);
    if (!log)
        return (*error)->code;
    const unsigned n = as_json ? uprof_kernel_log_append_json(out, log, UPROF_TEXT_LONG_MAX)
                               : uprof_kernel_log_append_text(out, log, UPROF_TEXT_LONG_MAX);
    g_autofree char *shown = uprof_text_quote(pipeline->run->domain);
    if (n > 0)
        uprof_notice(notices, UPROF_NOTICE_WARNING,
                     "%s: the oldest records (%u) are left out: the log is longer than %d MiB",
                     shown, n, UPROF_TEXT_LONG_MIB);
    return UPROF_ERROR_NONE;
}

void
uprof_log_reply_make(UprofAnalysis *analysis, UprofSlice argument, GByteArray *reply)
{
    const UprofLogRequest *request = argument.data;
    g_autoptr(GError) error = NULL;
    g_autoptr(GString) out = g_string_new(NULL);
    const UprofLogReply head = { .code = uprof_log_append(out, analysis->pipeline, request->is_json,
                                                          &analysis->notices, &error) };
    const char *text = error ? error->message : out->str;

    g_byte_array_append(reply, (const guint8 *)&head, sizeof(head));
    g_byte_array_append(reply, (const guint8 *)text, (guint)strlen(text));
}
