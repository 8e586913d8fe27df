/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * task-text-priv.h - parts of the texts about tasks
 */
#pragma once

#include "uprof/json-writer.h"
#include "uprof/task-table.h"

/** uprof_task_text_span: Returns: (transfer full): "12.3s", "4m05s", "3h12m" or "6d02h" */
char *uprof_task_text_span(uint64_t ns);

/** uprof_task_text_state: Returns: the state in words, or "running"; literal */
const char *uprof_task_text_state(const UprofTask *task);

/** uprof_task_text_has_wait: it is known how long the task waits */
bool uprof_task_text_has_wait(const UprofTaskList *list, const UprofTask *task);

/**
 * uprof_task_text_doubt:
 *
 * Returns: what to say behind the name of a task some of whose threads may be missing; "" for other
 * tasks
 */
const char *uprof_task_text_doubt(const UprofTask *task);

/** uprof_task_text_is_in_io: the task cannot be interrupted, and waits for I/O */
bool uprof_task_text_is_in_io(const UprofTask *task);

/**
 * uprof_task_text_list: lists the chosen tasks, with notices
 * @all: (out) (transfer full): if a list is returned: of UprofTask: all tasks
 *
 * Returns: as uprof_task_list_read()
 */
UprofTaskList *
uprof_task_text_list(UprofPipeline *pipeline, const UprofTaskRequest *request, const char *shown,
                     const UprofNotices *notices, GArray **all, GError **error);

/** uprof_task_text_is_full: @out is as long as the request allows */
bool uprof_task_text_is_full(const UprofTaskRequest *request, const GString *out);

/** uprof_task_text_warn_full: warns of @n tasks that are not in the text, unless it is 0 */
void uprof_task_text_warn_full(unsigned n, const char *shown, const UprofNotices *notices);

/** uprof_task_text_begin: begins the JSON of a domain, up to the array @key */
void uprof_task_text_begin(UprofJsonWriter *json, const UprofTaskRequest *request,
                           const char *shown, const UprofTaskList *list, const char *key);

/** uprof_task_text_end: @is_complete: the text has every task that was chosen */
void uprof_task_text_end(UprofJsonWriter *json, bool is_complete);

/** uprof_task_text_write: the members of @task that its list has */
void uprof_task_text_write(UprofJsonWriter *json, const UprofTaskList *list, const UprofTask *task);
