/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/task-reply.h"

#include "uprof/task-groups.h"

static void
make_tasks(UprofAnalysis *analysis, UprofSlice argument, GByteArray *reply, UprofTaskMake *make)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GString) text =
        make(analysis->pipeline, argument.data, analysis->shown, &analysis->notices, &error);

    if (text)
        g_byte_array_append(reply, (const guint8 *)text->str, (guint)text->len);
    else
        uprof_notice(&analysis->notices, UPROF_NOTICE_WARNING, "%s: %s", analysis->shown,
                     error->message);
}

void
uprof_task_reply_prepare(UprofAnalysis *analysis, UprofSlice argument, GByteArray *reply)
{
    uprof_linux_want_tasks(analysis->pipeline->kernel);
}

void
uprof_task_reply_table(UprofAnalysis *analysis, UprofSlice argument, GByteArray *reply)
{
    make_tasks(analysis, argument, reply, uprof_task_table_make);
}

void
uprof_task_reply_groups(UprofAnalysis *analysis, UprofSlice argument, GByteArray *reply)
{
    make_tasks(analysis, argument, reply, uprof_task_groups_make);
}
