/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The input is a list of tasks of a capture. A list that was parsed can be written and parsed
 * again. */
#include "fuzz.h"

#include "uprof/task-record.h"

#include <string.h>

enum { TASK_BYTES_MIN = 10 * 8 + 6 * 4 + 4 };

static void
check_text(const char *text, size_t room)
{
    g_assert(strnlen(text, room) < room);
    g_assert(g_utf8_validate(text, -1, NULL));
    for (; *text != '\0'; text++)
        g_assert((unsigned char)*text >= ' ');
}

void
fuzz_input(const uint8_t *data, size_t size)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofTaskList) list = uprof_task_record_parse((UprofSlice){ data, size }, &error);

    g_assert((list == NULL) == (error != NULL));
    if (!list)
        return;
    g_assert(list->tasks->len <= size / TASK_BYTES_MIN);
    for (guint i = 0; i < list->tasks->len; i++) {
        const UprofTask *task = &g_array_index(list->tasks, UprofTask, i);
        check_text(task->name, sizeof(task->name));
        check_text(task->comm, sizeof(task->comm));
        g_assert(strchr("RSDTtXZPI", task->state) && task->state != '\0');
    }
    g_autoptr(GByteArray) bytes = uprof_task_record_make(list);
    g_autoptr(UprofTaskList) again =
        uprof_task_record_parse((UprofSlice){ bytes->data, bytes->len }, NULL);
    g_assert(again && again->tasks->len == list->tasks->len);
}
