/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/task-groups.h"

#include "uprof/clock.h"
#include "uprof/fnv.h"
#include "uprof/stack-text.h"

#include "task-locks-priv.h"
#include "task-text-priv.h"
#include "task-unwind-priv.h"

#include <string.h>

enum {
    FRAMES_MAX = 1000 * 1000, /* of all groups */
    NAMED_MAX = 8,            /* tasks that a line names */
};

/* By default, after this time only the kernel's frames are found, because user space takes more
 * reads. */
#define USER_NS (UINT64_C(20) * UPROF_NS_PER_S)

/* Tasks of one state with equal stacks. */
typedef struct {
    uint64_t digest;
    char state;
    UprofTaskStackState why; /* COPIED if there are frames */
    UprofEnd end;
    UprofFrame *frames; /* owned */
    unsigned n_frames;
    GArray *tasks; /* of guint: indices in the list; owned */
    GArray *locks; /* of UprofTaskLock: of those tasks that wait for one, in their order; owned */
    GArray *waits; /* of guint: their indices in the list; owned */
} Group;

typedef struct {
    UprofTaskReading base;
    const char *shown; /* borrowed */
    UprofTaskUnwinder unwinder;
    UprofTaskLocks locks;
    UprofTaskLock lock;  /* of the last task */
    UprofTaskList *list; /* owned */
    GHashTable *known;   /* a set of Group; borrowed from @groups */
    GPtrArray *groups;   /* of Group, in the order of the tasks; owned */
    unsigned n_frames;   /* of all groups */
    unsigned n_dropped;  /* tasks whose stacks did not fit */
    unsigned n_cut;      /* tasks whose user space was left out */
    unsigned n_written;  /* tasks that are in the text */
    uint64_t began_ns, user_ns;
} Groups;

static void
free_group(gpointer data)
{
    Group *group = data;

    g_free(group->frames);
    if (group->tasks)
        g_array_unref(group->tasks);
    if (group->locks)
        g_array_unref(group->locks);
    if (group->waits)
        g_array_unref(group->waits);
    g_free(group);
}

static guint
hash_group(gconstpointer data)
{
    return (guint)((const Group *)data)->digest;
}

static gboolean
is_equal_group(gconstpointer a, gconstpointer b)
{
    const Group *one = a, *other = b;

    if (one->digest != other->digest || one->state != other->state || one->why != other->why ||
        one->end != other->end || one->n_frames != other->n_frames)
        return FALSE;
    for (unsigned i = 0; i < one->n_frames; i++)
        if (one->frames[i].symbol_address != other->frames[i].symbol_address)
            return FALSE;
    return TRUE;
}

/* Fills a group with the last stack; its frames are borrowed. */
static Group
make_group(const UprofTaskUnwinder *unwinder, const UprofTask *task)
{
    Group group = {
        .digest = UPROF_FNV64_START,
        .state = task->state,
        .why = unwinder->copy->state,
        .end = unwinder->stack->n > 0 ? unwinder->stack->end : UPROF_END_BASE,
        .frames = unwinder->stack->frames,
        .n_frames = unwinder->stack->n,
    };

    for (unsigned i = 0; i < group.n_frames; i++)
        group.digest =
            uprof_fnv64_add(group.digest, &group.frames[i].symbol_address, sizeof(uint64_t));
    return group;
}

static void
unwind_task(Groups *groups, guint i)
{
    const unsigned depth = (unsigned)groups->unwinder.pipeline->run->max_depth;

    uprof_task_unwind_kernel(&groups->unwinder, groups->list->tasks, i, depth);
    uprof_task_locks_find(&groups->locks, &groups->unwinder,
                          &g_array_index(groups->list->tasks, UprofTask, i), &groups->lock);
    if (!groups->unwinder.copy->has_user)
        return;
    if (uprof_clock_now_ns() - groups->began_ns < groups->user_ns)
        uprof_task_unwind_user(&groups->unwinder, &g_array_index(groups->list->tasks, UprofTask, i),
                               depth);
    else
        groups->n_cut++;
}

/* Makes a group that is kept; @wanted: its frames are copied */
static Group *
keep_group(Groups *groups, const Group *wanted)
{
    Group *group = g_memdup2(wanted, sizeof(*wanted));

    group->frames = g_memdup2(wanted->frames, wanted->n_frames * sizeof(wanted->frames[0]));
    group->tasks = g_array_new(FALSE, FALSE, sizeof(guint));
    group->locks = g_array_new(FALSE, FALSE, sizeof(UprofTaskLock));
    group->waits = g_array_new(FALSE, FALSE, sizeof(guint));
    groups->n_frames += wanted->n_frames;
    g_ptr_array_add(groups->groups, group);
    g_hash_table_add(groups->known, group);
    return group;
}

static void
add_task(Groups *groups, guint i)
{
    const UprofTask *task = &g_array_index(groups->list->tasks, UprofTask, i);

    unwind_task(groups, i);
    const Group wanted = make_group(&groups->unwinder, task);
    Group *group = g_hash_table_lookup(groups->known, &wanted);
    if (!group && groups->n_frames + wanted.n_frames > FRAMES_MAX) {
        groups->n_dropped++;
        return;
    }
    if (!group)
        group = keep_group(groups, &wanted);
    g_array_append_val(group->tasks, i);
    if (groups->lock.kind != UPROF_TASK_LOCK_NONE) {
        g_array_append_val(group->locks, groups->lock);
        g_array_append_val(group->waits, i);
    }
}

static const UprofTask *
get_task(const Groups *groups, const Group *group, guint i)
{
    return &g_array_index(groups->list->tasks, UprofTask, g_array_index(group->tasks, guint, i));
}

/* ---- Lines ---- */

static void
append_names(GString *out, const Groups *groups, const Group *group)
{
    for (guint i = 0; i < group->tasks->len && i < NAMED_MAX; i++) {
        const UprofTask *task = get_task(groups, group, i);
        g_string_append_printf(out, "%s%s[%u]%s", i > 0 ? ", " : "", task->name, task->id,
                               uprof_task_text_doubt(task));
    }
    if (group->tasks->len > NAMED_MAX)
        g_string_append_printf(out, " and %u more", group->tasks->len - NAMED_MAX);
}

/* Appends how long the tasks wait, as far as it is known. */
static void
append_wait(GString *out, const Groups *groups, const Group *group)
{
    uint64_t longest_ns = 0;
    bool is_known = false;

    for (guint i = 0; i < group->tasks->len; i++) {
        const UprofTask *task = get_task(groups, group, i);
        if (uprof_task_text_has_wait(groups->list, task)) {
            longest_ns = MAX(longest_ns, task->wait_ns);
            is_known = true;
        }
    }
    g_autofree char *wait = uprof_task_text_span(longest_ns);
    if (is_known)
        g_string_append_printf(out, " for %s%s", group->tasks->len == 1 ? "" : "up to ", wait);
}

static const char *
describe_end(const Group *group)
{
    return group->why != UPROF_TASK_STACK_COPIED ? uprof_task_stack_state_name(group->why)
           : group->end == UPROF_END_BASE        ? "complete"
                                                 : uprof_end_name(group->end);
}

static void
append_group(GString *out, Groups *groups, const Group *group, const char *shown)
{
    const guint n = group->tasks->len;

    g_string_append_printf(out, "%s %u task%s %s", shown, n, n == 1 ? "" : "s",
                           uprof_task_state_name(group->state));
    append_wait(out, groups, group);
    g_string_append(out, ", ");
    append_names(out, groups, group);
    g_string_append_printf(out, ": %u frame%s, %s\n", group->n_frames,
                           group->n_frames == 1 ? "" : "s", describe_end(group));
    uprof_task_locks_append(out, &groups->locks, group->locks);
    uprof_stack_text_append_frames(out, groups->unwinder.pipeline->sym, group->frames,
                                   group->n_frames);
    groups->n_written += n;
}

/* ---- JSON ---- */

static bool
is_full(const Groups *groups, const GString *out)
{
    return uprof_task_text_is_full(&groups->base.request, out);
}

static void
write_tasks(UprofJsonWriter *json, Groups *groups, const Group *group)
{
    guint n = 0; /* locks so far */

    uprof_json_begin(json, "tasks", UPROF_JSON_ARRAY);
    for (guint i = 0; i < group->tasks->len && !is_full(groups, json->out); i++) {
        uprof_json_begin(json, NULL, UPROF_JSON_OBJECT);
        uprof_task_text_write(json, groups->list, get_task(groups, group, i));
        if (n < group->waits->len &&
            g_array_index(group->waits, guint, n) == g_array_index(group->tasks, guint, i))
            uprof_task_locks_write(json, &groups->locks,
                                   &g_array_index(group->locks, UprofTaskLock, n++));
        uprof_json_end(json, UPROF_JSON_OBJECT);
        groups->n_written++;
    }
    uprof_json_end(json, UPROF_JSON_ARRAY);
}

static void
write_group(UprofJsonWriter *json, Groups *groups, const Group *group)
{
    uprof_json_break_line(json, "\n  ");
    uprof_json_begin(json, NULL, UPROF_JSON_OBJECT);
    write_tasks(json, groups, group);
    uprof_json_bool(json, "complete",
                    group->why == UPROF_TASK_STACK_COPIED && group->end == UPROF_END_BASE);
    uprof_json_string(json, "end", describe_end(group));
    uprof_stack_text_write_frames(json, groups->unwinder.pipeline->sym, group->frames,
                                  group->n_frames);
    uprof_json_end(json, UPROF_JSON_OBJECT);
}

static bool
has_everything(const Groups *groups)
{
    return groups->list->is_complete && groups->n_dropped == 0 && groups->unwinder.n_late == 0 &&
           groups->n_written == groups->list->tasks->len;
}

static void
write_json(GString *out, Groups *groups, const char *shown)
{
    UprofJsonWriter json = { .out = out };

    uprof_task_text_begin(&json, &groups->base.request, shown, groups->list, "stacks");
    for (guint i = 0; i < groups->groups->len && !is_full(groups, out); i++)
        write_group(&json, groups, g_ptr_array_index(groups->groups, i));
    uprof_task_text_end(&json, has_everything(groups));
}

/* ---- All groups ---- */

static void
warn_about_groups(const Groups *groups, const char *shown, const UprofNotices *notices)
{
    if (groups->n_dropped > 0)
        uprof_notice(notices, UPROF_NOTICE_WARNING,
                     "%s: %u task%s left out: the stacks have too many frames", shown,
                     groups->n_dropped, groups->n_dropped == 1 ? " is" : "s are");
    if (groups->n_cut > 0)
        uprof_notice(notices, UPROF_NOTICE_WARNING,
                     "%s: %u stack%s without user space, to save time; choose fewer tasks", shown,
                     groups->n_cut, groups->n_cut == 1 ? " is" : "s are");
    uprof_task_text_warn_full(groups->list->tasks->len - groups->n_dropped - groups->n_written,
                              shown, notices);
    uprof_task_unwinder_warn(&groups->unwinder, shown, notices);
    uprof_task_locks_warn(&groups->locks, shown, notices);
}

static GString *
make_text(Groups *groups, const char *shown)
{
    const bool is_json = groups->base.request.is_json;
    GString *out = g_string_new(NULL);

    uprof_sym_resolve(groups->unwinder.pipeline->sym, UPROF_SYM_RESOLVE_MS);
    if (is_json)
        write_json(out, groups, shown);
    for (guint i = 0; i < groups->groups->len && !is_json && !is_full(groups, out); i++)
        append_group(out, groups, g_ptr_array_index(groups->groups, i), shown);
    if (groups->groups->len == 0 && !is_json)
        g_string_append_printf(out, "%s: no such task\n", shown);
    return out;
}

static GString *
write_groups(UprofTaskReading *reading, const UprofNotices *notices)
{
    Groups *groups = (Groups *)reading;

    groups->n_written = 0;
    GString *out = make_text(groups, groups->shown);
    warn_about_groups(groups, groups->shown, notices);
    return out;
}

static void
free_groups(UprofTaskReading *reading)
{
    Groups *groups = (Groups *)reading;

    uprof_task_unwinder_clear(&groups->unwinder);
    uprof_task_locks_clear(&groups->locks);
    uprof_task_list_free(groups->list);
    g_hash_table_unref(groups->known);
    g_ptr_array_unref(groups->groups);
    g_free(groups);
}

UprofTaskReading *
uprof_task_groups_read(UprofPipeline *pipeline, const UprofTaskRequest *request, const char *shown,
                       const UprofNotices *notices, GError **error)
{
    GArray *all;
    UprofTaskList *list = uprof_task_text_list(pipeline, request, shown, notices, &all, error);

    if (!list)
        return NULL;
    Groups *groups = g_new0(Groups, 1);
    groups->base = (UprofTaskReading){ *request, write_groups, free_groups };
    groups->shown = shown;
    groups->list = list;
    groups->began_ns = uprof_clock_now_ns();
    groups->user_ns = request->user_ns > 0 ? request->user_ns : USER_NS;
    groups->known = g_hash_table_new(hash_group, is_equal_group);
    groups->groups = g_ptr_array_new_with_free_func(free_group);
    uprof_task_unwinder_init(&groups->unwinder, pipeline, request);
    uprof_task_locks_init(&groups->locks, pipeline, all);
    for (guint i = 0; i < list->tasks->len; i++)
        add_task(groups, i);
    return &groups->base;
}

GString *
uprof_task_groups_make(UprofPipeline *pipeline, const UprofTaskRequest *request, const char *shown,
                       const UprofNotices *notices, GError **error)
{
    g_autoptr(UprofTaskReading) reading =
        uprof_task_groups_read(pipeline, request, shown, notices, error);

    return reading ? uprof_task_reading_write(reading, &request->hold, notices) : NULL;
}
