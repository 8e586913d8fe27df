/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "worker-reply-priv.h"

#include "exit-priv.h"
#include "uprof/text.h"

#include <string.h>

static GPtrArray *collected; /* of char: owned */

void
uprof_worker_reply_begin(void)
{
    collected = g_ptr_array_new_with_free_func(g_free);
    uprof_say_divert(collected);
}

void
uprof_worker_reply_end(GByteArray *reply)
{
    uprof_say_divert(NULL);
    for (guint i = 0; i < collected->len; i++) {
        const char *line = g_ptr_array_index(collected, i);
        g_byte_array_append(reply, (const guint8 *)line, (guint)strlen(line));
        g_byte_array_append(reply, (const guint8 *)"\n", 1);
    }
    g_clear_pointer(&collected, g_ptr_array_unref);
}

GString *
uprof_worker_reply_text(const UprofSession *session, unsigned call, UprofSlice argument,
                        GError **error)
{
    g_autoptr(GByteArray) reply = NULL;

    if (!uprof_worker_call(session->worker, call, argument, &reply, error))
        return NULL;
    GString *text = g_string_new(NULL);
    uprof_text_append_lines(text, (UprofSlice){ reply->data, reply->len });
    return text;
}

void
uprof_worker_reply_say(const UprofSession *session, unsigned call, UprofSlice argument)
{
    g_autoptr(GString) text = uprof_worker_reply_text(session, call, argument, NULL);
    g_auto(GStrv) lines = text ? g_strsplit(text->str, "\n", -1) : NULL;

    for (guint i = 0; lines && lines[i] && lines[i][0]; i++)
        uprof_say("%s", lines[i]);
}
