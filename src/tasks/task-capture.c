/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/task-capture.h"

#include "uprof/kernel-log.h"
#include "uprof/task-groups.h"

static void
drop_text(GString *text)
{
    if (text)
        g_string_free(text, TRUE);
}

void
uprof_task_capture(UprofPipeline *pipeline, const UprofTaskRequest *request)
{
    UprofLinuxFacts facts;

    uprof_linux_facts(pipeline->kernel, &facts);
    if (facts.state != UPROF_LINUX_FOUND || !pipeline->recorder || pipeline->recorder->slow_reads)
        return;
    drop_text(uprof_task_table_make(pipeline, request, "", NULL, NULL));
    drop_text(uprof_task_groups_make(pipeline, request, "", NULL, NULL));
    uprof_kernel_log_free(uprof_kernel_log_read(pipeline->kernel, pipeline->mem, NULL));
}
