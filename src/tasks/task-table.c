/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/task-table.h"

#include "uprof/clock.h"

#include "task-locks-priv.h"
#include "task-text-priv.h"
#include "task-unwind-priv.h"

#include <string.h>

enum {
    DEPTH = 24,      /* frames that may be code for waiting, and one more */
    WAIT_CHARS = 28, /* the widest columns */
    CALL_CHARS = 18,
    CGROUP_CHARS = 32,
};

/* Facts of a task that its row in the list lacks. */
typedef struct {
    char *waits_in;      /* (nullable): owned: the function */
    const char *call;    /* (nullable): literal: the name of the system call */
    bool has_call;       /* the task is in a system call ... */
    int64_t number;      /* ... of this number */
    char *cgroup;        /* (nullable): owned */
    UprofTaskLock *lock; /* (nullable): owned */
} Extra;

static void
clear_extra(gpointer data)
{
    Extra *extra = data;

    g_free(extra->waits_in);
    g_free(extra->cgroup);
    g_free(extra->lock);
}

/*
 * The names of the kernel's functions end in "_[k]", which tells nothing in this table.
 *
 * Returns: (transfer full) (nullable)
 */
static char *
name_wait(UprofTaskUnwinder *unwinder)
{
    static const char suffix[] = "_[k]";
    const UprofFrame *frame = uprof_task_unwind_wait(unwinder);

    if (!frame)
        return NULL;
    const UprofSymAnswer answer =
        uprof_sym_find(unwinder->pipeline->sym, frame->symbol_address, frame->is_return);
    const char *name = uprof_name_text(answer.name);
    return g_strndup(name, strlen(name) - (g_str_has_suffix(name, suffix) ? strlen(suffix) : 0));
}

/* @locks: (nullable): locks are not searched */
static Extra
find_extra(UprofTaskUnwinder *unwinder, GArray *tasks, guint i, UprofTaskLocks *locks)
{
    const UprofPipeline *pipeline = unwinder->pipeline;
    Extra extra = { 0 };
    UprofTaskLock lock;

    uprof_task_unwind_kernel(unwinder, tasks, i, DEPTH);
    const UprofTaskStack *copy = unwinder->copy;
    /* a task that waits for a CPU waits in no function */
    if (g_array_index(tasks, UprofTask, i).state != 'R')
        extra.waits_in = name_wait(unwinder);
    extra.has_call = copy->has_user && copy->syscall >= 0;
    extra.number = copy->syscall;
    extra.call = uprof_task_stack_syscall_name(pipeline->kernel, copy);
    if (locks && uprof_task_locks_find(locks, unwinder, &g_array_index(tasks, UprofTask, i), &lock))
        extra.lock = g_memdup2(&lock, sizeof(lock));
    return extra;
}

static GArray *
find_extras(UprofTaskUnwinder *unwinder, const UprofTaskList *list, UprofTaskLocks *locks)
{
    GArray *extras = g_array_sized_new(FALSE, FALSE, sizeof(Extra), list->tasks->len);

    g_array_set_clear_func(extras, clear_extra);
    for (guint i = 0; i < list->tasks->len; i++) {
        const Extra extra = find_extra(unwinder, list->tasks, i, locks);
        g_array_append_val(extras, extra);
    }
    return extras;
}

/*
 * Finds cgroups after all stacks, so that the stacks are close together in time.
 *
 * Returns: number of tasks for which there was no time
 */
static unsigned
find_cgroups(UprofTaskUnwinder *unwinder, const UprofTaskRequest *request,
             const UprofTaskList *list, GArray *extras)
{
    const UprofPipeline *pipeline = unwinder->pipeline;

    for (guint i = 0; i < list->tasks->len; i++) {
        if (uprof_task_unwinder_is_late(unwinder))
            return list->tasks->len - i;
        const UprofTask *task = &g_array_index(list->tasks, UprofTask, i);
        /* the limits of a sample are for each new cgroup */
        uprof_mem_begin_sample(pipeline->mem, request->time_ns, request->reset);
        g_array_index(extras, Extra, i).cgroup = g_strdup(uprof_cgroups_find_set(
            pipeline->cgroups, pipeline->mem, request->time_ns, request->reset, task->cgroup));
    }
    return 0;
}

/* ---- Lines ---- */

typedef struct {
    int wait, call, cgroup; /* widths of columns, in characters */
    bool has_inner;         /* some tasks have other ids in their namespaces */
} Layout;

static Layout
make_layout(const UprofTaskList *list, const GArray *extras)
{
    Layout layout = { (int)strlen("WAITS IN"), (int)strlen("SYSCALL"), (int)strlen("CGROUP"),
                      false };

    for (guint i = 0; i < extras->len; i++) {
        const Extra *extra = &g_array_index(extras, Extra, i);
        const char *waits_in = extra->waits_in ? extra->waits_in : "";
        const char *cgroup = extra->cgroup ? extra->cgroup : "";
        layout.wait = MAX(layout.wait, (int)MIN(strlen(waits_in), (size_t)WAIT_CHARS));
        layout.call =
            MAX(layout.call, (int)MIN(strlen(extra->call ? extra->call : ""), (size_t)CALL_CHARS));
        layout.cgroup =
            MAX(layout.cgroup, (int)MIN((size_t)g_utf8_strlen(cgroup, -1), (size_t)CGROUP_CHARS));
        layout.has_inner |= g_array_index(list->tasks, UprofTask, i).level > 0;
    }
    return layout;
}

/* Appends @text and blanks up to @width characters; a longer text is cut, and ends in "..". */
static void
append_column(GString *out, const char *text, int width)
{
    const glong chars = g_utf8_strlen(text, -1);

    if (chars > width) {
        g_string_append_len(out, text, g_utf8_offset_to_pointer(text, width - 2) - text);
        g_string_append(out, "..  ");
        return;
    }
    g_string_append_printf(out, "%s%*s", text, width - (int)chars + 2, "");
}

static void
append_head(GString *out, const Layout *layout)
{
    g_string_append_printf(out, "%8s %8s %8s ", "PID", "TID", "PPID");
    if (layout->has_inner)
        g_string_append_printf(out, "%8s ", "NSTID");
    g_string_append_printf(out, "%-6s %9s %8s  ", "STATE", "TIME", "WAIT");
    append_column(out, "WAITS IN", layout->wait);
    append_column(out, "SYSCALL", layout->call);
    append_column(out, "CGROUP", layout->cgroup);
    g_string_append(out, "NAME\n");
}

/* "R cpu3", "D io", or the letter alone */
static void
append_state(GString *out, const UprofTask *task)
{
    g_autofree char *cpu = task->is_on_cpu ? g_strdup_printf(" cpu%u", task->cpu) : NULL;
    const char *detail = cpu ? cpu : uprof_task_text_is_in_io(task) ? " io" : "";

    g_string_append_printf(out, "%c%-5s ", task->state, detail);
}

static void
append_times(GString *out, const UprofTaskList *list, const UprofTask *task)
{
    g_autofree char *time =
        list->has_times ? uprof_task_text_span(task->user_ns + task->system_ns) : NULL;
    g_autofree char *wait =
        uprof_task_text_has_wait(list, task) ? uprof_task_text_span(task->wait_ns) : NULL;

    g_string_append_printf(out, "%9s %8s  ", time ? time : "-", wait ? wait : "-");
}

static void
append_row(GString *out, const Layout *layout, const UprofTaskList *list, const UprofTask *task,
           const Extra *extra)
{
    g_autofree char *number =
        extra->has_call ? g_strdup_printf("%" G_GINT64_FORMAT, extra->number) : NULL;

    g_string_append_printf(out, "%8u %8u ", task->process, task->id);
    if (list->has_parents)
        g_string_append_printf(out, "%8u ", task->parent);
    else
        g_string_append_printf(out, "%8s ", "-");
    if (layout->has_inner)
        g_string_append_printf(out, "%8u ", task->inner);
    append_state(out, task);
    append_times(out, list, task);
    append_column(out, extra->waits_in ? extra->waits_in : "-", layout->wait);
    append_column(out, extra->call ? extra->call : number ? number : "-", layout->call);
    append_column(out, extra->cgroup ? extra->cgroup : "-", layout->cgroup);
    g_string_append_printf(out, task->is_kernel ? "[%s]%s\n" : "%s%s\n", task->name,
                           uprof_task_text_doubt(task));
}

static unsigned
count_state(const UprofTaskList *list, char state, bool is_on_cpu)
{
    unsigned n = 0;

    for (guint i = 0; i < list->tasks->len; i++) {
        const UprofTask *task = &g_array_index(list->tasks, UprofTask, i);
        n += task->is_on_cpu == is_on_cpu && (is_on_cpu || task->state == state);
    }
    return n;
}

/* Returns: number of tasks that do not fit */
static unsigned
append_lines(GString *out, const UprofTaskRequest *request, const char *shown,
             const UprofTaskList *list, const GArray *extras)
{
    const Layout layout = make_layout(list, extras);
    guint n = 0;

    g_string_append_printf(out, "%s: %u task%s: %u on a vCPU, %u runnable, %u uninterruptible\n",
                           shown, list->tasks->len, list->tasks->len == 1 ? "" : "s",
                           count_state(list, 0, true), count_state(list, 'R', false),
                           count_state(list, 'D', false));
    append_head(out, &layout);
    for (; n < list->tasks->len && !uprof_task_text_is_full(request, out); n++)
        append_row(out, &layout, list, &g_array_index(list->tasks, UprofTask, n),
                   &g_array_index(extras, Extra, n));
    return list->tasks->len - n;
}

/* ---- JSON ---- */

static void
write_row(UprofJsonWriter *json, const UprofTaskLocks *locks, const UprofTaskList *list,
          const UprofTask *task, const Extra *extra)
{
    uprof_json_break_line(json, "\n  ");
    uprof_json_begin(json, NULL, UPROF_JSON_OBJECT);
    uprof_task_text_write(json, list, task);
    if (extra->waits_in)
        uprof_json_string(json, "waits_in", extra->waits_in);
    if (extra->has_call)
        uprof_json_int(json, "syscall_number", extra->number);
    if (extra->call)
        uprof_json_string(json, "syscall", extra->call);
    if (extra->cgroup)
        uprof_json_string(json, "cgroup", extra->cgroup);
    if (extra->lock)
        uprof_task_locks_write(json, locks, extra->lock);
    uprof_json_end(json, UPROF_JSON_OBJECT);
}

/* Returns: number of tasks that do not fit */
static unsigned
write_json(GString *out, const UprofTaskRequest *request, const char *shown,
           const UprofTaskList *list, const GArray *extras, const UprofTaskLocks *locks)
{
    UprofJsonWriter json = { .out = out };
    guint n = 0;

    uprof_task_text_begin(&json, request, shown, list, "tasks");
    for (; n < list->tasks->len && !uprof_task_text_is_full(request, out); n++)
        write_row(&json, locks, list, &g_array_index(list->tasks, UprofTask, n),
                  &g_array_index(extras, Extra, n));
    uprof_task_text_end(&json, list->is_complete && n == list->tasks->len);
    return list->tasks->len - n;
}

/* ---- The table ---- */

/* All members are owned unless they say "borrowed". */
typedef struct {
    UprofTaskReading base;
    const char *shown; /* borrowed */
    UprofTaskList *list;
    UprofTaskLocks locks;
    GArray *extras; /* of Extra */
} Table;

static GString *
write_table(UprofTaskReading *reading, const UprofNotices *notices)
{
    const Table *table = (const Table *)reading;
    const UprofTaskRequest *request = &reading->request;
    GString *out = g_string_new(NULL);
    const unsigned n_left_out =
        request->is_json
            ? write_json(out, request, table->shown, table->list, table->extras, &table->locks)
            : append_lines(out, request, table->shown, table->list, table->extras);

    uprof_task_text_warn_full(n_left_out, table->shown, notices);
    return out;
}

static void
free_table(UprofTaskReading *reading)
{
    Table *table = (Table *)reading;

    uprof_task_list_free(table->list);
    uprof_task_locks_clear(&table->locks);
    g_array_unref(table->extras);
    g_free(table);
}

UprofTaskReading *
uprof_task_table_read(UprofPipeline *pipeline, const UprofTaskRequest *request, const char *shown,
                      const UprofNotices *notices, GError **error)
{
    GArray *all;
    UprofTaskList *list = uprof_task_text_list(pipeline, request, shown, notices, &all, error);

    if (!list)
        return NULL;
    Table *table = g_new0(Table, 1);
    table->base = (UprofTaskReading){ *request, write_table, free_table };
    table->shown = shown;
    table->list = list;
    uprof_task_locks_init(&table->locks, pipeline, all);
    g_auto(UprofTaskUnwinder) unwinder;
    uprof_task_unwinder_init(&unwinder, pipeline, request);
    uprof_task_unwinder_read_ahead(&unwinder);
    table->extras = find_extras(&unwinder, list, request->is_json ? &table->locks : NULL);
    const unsigned n_late = find_cgroups(&unwinder, request, list, table->extras);
    uprof_task_unwinder_warn(&unwinder, shown, notices);
    if (n_late > unwinder.n_late)
        uprof_notice(notices, UPROF_NOTICE_WARNING,
                     "%s: the cgroups of %u task%s were not read, to save time; choose fewer tasks",
                     shown, n_late, n_late == 1 ? "" : "s");
    uprof_task_locks_warn(&table->locks, shown, notices);
    list->is_complete = list->is_complete && n_late == 0;
    return &table->base;
}

GString *
uprof_task_table_make(UprofPipeline *pipeline, const UprofTaskRequest *request, const char *shown,
                      const UprofNotices *notices, GError **error)
{
    g_autoptr(UprofTaskReading) reading =
        uprof_task_table_read(pipeline, request, shown, notices, error);

    return reading ? uprof_task_reading_write(reading, &request->hold, notices) : NULL;
}
