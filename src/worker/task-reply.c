/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/task-reply.h"

#include "uprof/task-groups.h"

#include <string.h>

void
uprof_task_reply_prepare(UprofAnalysis *analysis, UprofSlice argument, GByteArray *reply)
{
    uprof_linux_want_tasks(analysis->pipeline->kernel);
}

/* A function such as uprof_task_table_read() */
typedef UprofTaskReading *ReadTasks(UprofPipeline *pipeline, const UprofTaskRequest *request,
                                    const char *shown, const UprofNotices *notices, GError **error);

/* Replies with one byte if the tasks were read, and keeps them unless this is a rehearsal. */
static void
read_tasks(UprofAnalysis *analysis, const UprofTaskRequest *request, GByteArray *reply,
           ReadTasks *read)
{
    static const guint8 done = 1;
    const UprofNotices *notices = request->is_rehearsal ? NULL : &analysis->notices;
    g_autoptr(GError) error = NULL;

    g_clear_pointer(&analysis->tasks, uprof_task_reading_free);
    analysis->tasks = read(analysis->pipeline, request, analysis->shown, notices, &error);
    if (analysis->tasks)
        g_byte_array_append(reply, &done, sizeof(done));
    else
        uprof_notice(&analysis->notices, UPROF_NOTICE_WARNING, "%s: %s", analysis->shown,
                     error->message);
    if (request->is_rehearsal)
        g_clear_pointer(&analysis->tasks, uprof_task_reading_free);
}

void
uprof_task_reply_read_table(UprofAnalysis *analysis, UprofSlice argument, GByteArray *reply)
{
    read_tasks(analysis, argument.data, reply, uprof_task_table_read);
}

void
uprof_task_reply_read_groups(UprofAnalysis *analysis, UprofSlice argument, GByteArray *reply)
{
    read_tasks(analysis, argument.data, reply, uprof_task_groups_read);
}

void
uprof_task_reply_write(UprofAnalysis *analysis, UprofSlice argument, GByteArray *reply)
{
    UprofTaskHold hold;

    if (!analysis->tasks)
        return;
    memcpy(&hold, argument.data, sizeof(hold));
    g_autoptr(GString) text = uprof_task_reading_write(analysis->tasks, &hold, &analysis->notices);
    g_byte_array_append(reply, (const guint8 *)text->str, (guint)text->len);
}
