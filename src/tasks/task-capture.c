/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * In a capture, the pages of a guest are of different moments. So the capture gets the list of
 * tasks as well, and it says which tasks have run meanwhile. The pages of the others are of one
 * wait.
 */
#include "uprof/task-capture.h"

#include "uprof/kernel-log.h"
#include "uprof/task-groups.h"
#include "uprof/task-record.h"

static void
drop_text(GString *text)
{
    if (text)
        g_string_free(text, TRUE);
}

static UprofTaskList *
read_list(UprofPipeline *pipeline, const UprofTaskRequest *request)
{
    uprof_mem_begin_sample(pipeline->mem, request->time_ns, request->reset);
    return uprof_task_list_read(pipeline->kernel, pipeline->mem,
                                uprof_task_list_limit_ns(pipeline->mem), NULL);
}

static bool
is_same_wait(const UprofTask *before, const UprofTask *after)
{
    return before->began_ns == after->began_ns && before->n_switches == after->n_switches &&
           before->saved_sp == after->saved_sp && before->memory == after->memory &&
           !before->is_on_cpu && !after->is_on_cpu;
}

/* Notes in @after which tasks have run since @before. */
static void
compare_lists(const UprofTaskList *before, UprofTaskList *after)
{
    g_autoptr(GHashTable) tasks = g_hash_table_new(NULL, NULL); /* id -> UprofTask */

    for (guint i = 0; i < before->tasks->len; i++) {
        UprofTask *task = &g_array_index(before->tasks, UprofTask, i);
        g_hash_table_replace(tasks, GUINT_TO_POINTER(task->id), task);
    }
    for (guint i = 0; i < after->tasks->len; i++) {
        UprofTask *task = &g_array_index(after->tasks, UprofTask, i);
        const UprofTask *old = g_hash_table_lookup(tasks, GUINT_TO_POINTER(task->id));
        task->has_run = !old || !is_same_wait(old, task);
    }
}

void
uprof_task_capture(UprofPipeline *pipeline, const UprofTaskRequest *request)
{
    UprofLinuxFacts facts;

    uprof_linux_facts(pipeline->kernel, &facts);
    if (facts.state != UPROF_LINUX_FOUND || !pipeline->recorder || pipeline->recorder->slow_reads)
        return;
    g_autoptr(UprofTaskList) before = read_list(pipeline, request);
    drop_text(uprof_task_table_make(pipeline, request, "", NULL, NULL));
    drop_text(uprof_task_groups_make(pipeline, request, "", NULL, NULL));
    uprof_kernel_log_free(uprof_kernel_log_read(pipeline->kernel, pipeline->mem, NULL));
    g_autoptr(UprofTaskList) after = before ? read_list(pipeline, request) : NULL;
    if (!after)
        return;
    compare_lists(before, after);
    g_autoptr(GByteArray) record = uprof_task_record_make(after);
    /* the next record fails as well, and says why */
    uprof_writer_tasks(pipeline->writer, (UprofSlice){ record->data, record->len }, NULL);
}
