/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "task-text-priv.h"

#include "uprof/clock.h"
#include "uprof/error.h"
#include "uprof/text-limit.h"

#include "task-choice-priv.h"

char *
uprof_task_text_span(uint64_t ns)
{
    const uint64_t s = ns / UPROF_NS_PER_S;

    if (s < 60)
        return g_strdup_printf("%u.%us", (unsigned)s, (unsigned)(ns / (UPROF_NS_PER_S / 10) % 10));
    if (s < 60 * 60)
        return g_strdup_printf("%um%02us", (unsigned)(s / 60), (unsigned)(s % 60));
    if (s < 24 * 60 * 60)
        return g_strdup_printf("%uh%02um", (unsigned)(s / 3600), (unsigned)(s / 60 % 60));
    return g_strdup_printf("%" G_GUINT64_FORMAT "d%02uh", s / 86400, (unsigned)(s / 3600 % 24));
}

const char *
uprof_task_text_state(const UprofTask *task)
{
    return task->is_on_cpu ? "running" : uprof_task_state_name(task->state);
}

bool
uprof_task_text_has_wait(const UprofTaskList *list, const UprofTask *task)
{
    return list->has_waits && task->has_wait;
}

bool
uprof_task_text_is_in_io(const UprofTask *task)
{
    return task->state == 'D' && task->is_in_io && !task->is_on_cpu;
}

const char *
uprof_task_text_doubt(const UprofTask *task)
{
    return task->is_doubtful ? " (threads may be missing)" : "";
}

static void
warn_about_list(const UprofTaskList *list, const char *shown, const UprofNotices *notices)
{
    if (list->is_late)
        uprof_notice(notices, UPROF_NOTICE_WARNING,
                     "%s: the list of tasks lacks some: the time for reading it was up", shown);
    else if (!list->is_complete)
        uprof_notice(notices, UPROF_NOTICE_WARNING,
                     "%s: the list of tasks may lack some: it changed all the time, is longer than "
                     "%d tasks, "
                     "or the guest's memory is malformed",
                     shown, UPROF_TASK_LIST_MAX);
    if (list->missing)
        uprof_notice(notices, UPROF_NOTICE_WARNING,
                     "%s: the kernel's types do not tell of a task: %s", shown, list->missing);
}

UprofTaskList *
uprof_task_text_list(UprofPipeline *pipeline, const UprofTaskRequest *request, const char *shown,
                     const UprofNotices *notices, GArray **all, GError **error)
{
    uprof_mem_begin_sample(pipeline->mem, request->time_ns, request->reset);
    const uint64_t list_ns =
        request->list_ns > 0 ? request->list_ns : uprof_task_list_limit_ns(pipeline->mem);
    g_autoptr(UprofTaskList) list =
        pipeline->tasks ? uprof_task_list_copy(pipeline->tasks)
                        : uprof_task_list_read(pipeline->kernel, pipeline->mem, list_ns, error);

    if (!list)
        return NULL;
    if (list->tasks->len == 0 && !list->is_complete) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_EMPTY, "no task can be read%s",
                    list->is_late ? " in time" : "");
        return NULL;
    }
    *all = g_array_copy(list->tasks);
    uprof_task_choice_apply(&request->choice, list->tasks);
    warn_about_list(list, shown, notices);
    return g_steal_pointer(&list);
}

bool
uprof_task_text_is_full(const UprofTaskRequest *request, const GString *out)
{
    return out->len >= (request->most > 0 ? request->most : UPROF_TEXT_LONG_MAX);
}

void
uprof_task_text_warn_full(unsigned n, const char *shown, const UprofNotices *notices)
{
    if (n > 0)
        uprof_notice(notices, UPROF_NOTICE_WARNING,
                     "%s: %u task%s left out: the text is longer than %d MiB; choose fewer tasks",
                     shown, n, n == 1 ? " is" : "s are", UPROF_TEXT_LONG_MIB);
}

void
uprof_task_text_begin(UprofJsonWriter *json, const UprofTaskRequest *request, const char *shown,
                      const UprofTaskList *list, const char *key)
{
    uprof_json_begin(json, NULL, UPROF_JSON_OBJECT);
    uprof_json_string(json, "domain", shown);
    uprof_json_string(json, "uuid", request->uuid);
    uprof_json_bool(json, "paused", request->is_paused);
    uprof_json_uint(json, "held_ns", request->hold.ns);
    if (request->hold.ns > 0)
        uprof_json_bool(json, "held_to_end", request->hold.ended_early == 0);
    uprof_json_string(json, "missing", list->missing ? list->missing : "");
    uprof_json_uint(json, "retries", list->n_retries);
    uprof_json_break_line(json, "\n ");
    uprof_json_begin(json, key, UPROF_JSON_ARRAY);
}

void
uprof_task_text_end(UprofJsonWriter *json, bool is_complete)
{
    uprof_json_end(json, UPROF_JSON_ARRAY);
    uprof_json_bool(json, "complete", is_complete);
    uprof_json_end(json, UPROF_JSON_OBJECT);
    g_string_append_c(json->out, '\n');
}

void
uprof_task_text_write(UprofJsonWriter *json, const UprofTaskList *list, const UprofTask *task)
{
    const char state[] = { task->state, '\0' };

    uprof_json_uint(json, "pid", task->process);
    uprof_json_uint(json, "tid", task->id);
    if (list->has_parents)
        uprof_json_uint(json, "parent", task->parent);
    if (list->has_levels) {
        uprof_json_uint(json, "inner_tid", task->inner);
        uprof_json_uint(json, "namespace_depth", task->level);
    }
    uprof_json_string(json, "name", task->name);
    uprof_json_bool(json, "kernel", task->is_kernel);
    uprof_json_string(json, "state", state);
    uprof_json_string(json, "state_name", uprof_task_text_state(task));
    if (task->is_on_cpu)
        uprof_json_uint(json, "vcpu", task->cpu);
    if (uprof_task_text_is_in_io(task))
        uprof_json_bool(json, "in_io", true);
    uprof_json_uint(json, "began_ns", task->began_ns);
    if (list->has_times) {
        uprof_json_uint(json, "user_ns", task->user_ns);
        uprof_json_uint(json, "system_ns", task->system_ns);
    }
    if (uprof_task_text_has_wait(list, task))
        uprof_json_uint(json, "wait_ns", task->wait_ns);
    uprof_json_uint(json, "switches", task->n_switches);
    if (task->is_doubtful)
        uprof_json_bool(json, "doubtful", true);
}
