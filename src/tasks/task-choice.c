/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "task-choice-priv.h"

#include "uprof/sorted.h"

#include <string.h>

UprofTaskOrder
uprof_task_choice_order(const char *name)
{
    if (g_strcmp0(name, "cpu") == 0)
        return UPROF_TASK_BY_CPU;
    return g_strcmp0(name, "wait") == 0 ? UPROF_TASK_BY_WAIT : UPROF_TASK_BY_ID;
}

bool
uprof_task_choice_set_states(UprofTaskChoice *choice, const char *letters)
{
    const size_t len = strlen(letters);

    if (len == 0 || len >= sizeof(choice->states) || strspn(letters, UPROF_TASK_STATES) != len)
        return false;
    g_strlcpy(choice->states, letters, sizeof(choice->states));
    return true;
}

/* Returns: negative if the first number comes first, in falling order */
static gint
compare_falling(uint64_t one, uint64_t other)
{
    return UPROF_COMPARE(other, one);
}

static gint
compare_tasks(gconstpointer a, gconstpointer b, gpointer data)
{
    const UprofTask *one = a, *other = b;
    const UprofTaskOrder order = *(const UprofTaskOrder *)data;

    if (order == UPROF_TASK_BY_CPU)
        return compare_falling(one->user_ns + one->system_ns, other->user_ns + other->system_ns);
    if (order == UPROF_TASK_BLOCKED && (one->state == 'D') != (other->state == 'D'))
        return one->state == 'D' ? -1 : 1;
    if (one->has_wait != other->has_wait)
        return one->has_wait ? -1 : 1;
    return compare_falling(one->wait_ns, other->wait_ns);
}

static bool
is_chosen(const UprofTaskChoice *choice, const GRegex *pattern, const UprofTask *task)
{
    return (choice->states[0] == '\0' || strchr(choice->states, task->state)) &&
           (!pattern || g_regex_match(pattern, task->name, 0, NULL));
}

bool
uprof_task_choice_set_pattern(UprofTaskChoice *choice, const char *pattern)
{
    if (strlen(pattern) >= sizeof(choice->pattern) || !g_utf8_validate(pattern, -1, NULL))
        return false;
    g_autoptr(GRegex) regex = g_regex_new(pattern, 0, 0, NULL);
    g_strlcpy(choice->pattern, pattern, sizeof(choice->pattern));
    return regex != NULL;
}

void
uprof_task_choice_apply(const UprofTaskChoice *choice, GArray *tasks)
{
    UprofTaskOrder order = choice->order;
    g_autoptr(GRegex) pattern =
        choice->pattern[0] ? g_regex_new(choice->pattern, G_REGEX_OPTIMIZE, 0, NULL) : NULL;
    guint n = 0;

    for (guint i = 0; i < tasks->len; i++)
        if (is_chosen(choice, pattern, &g_array_index(tasks, UprofTask, i)))
            g_array_index(tasks, UprofTask, n++) = g_array_index(tasks, UprofTask, i);
    g_array_set_size(tasks, n);
    /* the list is sorted by id; the sort is stable */
    if (order != UPROF_TASK_BY_ID)
        g_array_sort_with_data(tasks, compare_tasks, &order);
}
