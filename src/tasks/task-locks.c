/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "task-locks-priv.h"

#include "uprof/clock.h"

#include "task-text-priv.h"

enum { SHOWN_MAX = 8 }; /* lines for one group */

/* After this time no more locks are searched. */
#define SEARCH_NS (UINT64_C(20) * UPROF_NS_PER_S)

/* A lock, and how many tasks of a group wait for it. */
typedef struct {
    const UprofTaskLock *lock;
    unsigned n_tasks;
} Line;

void
uprof_task_locks_init(UprofTaskLocks *locks, const UprofPipeline *pipeline, GArray *all)
{
    uprof_task_lock_sort(all);
    *locks = (UprofTaskLocks){
        .search = { .kernel = pipeline->kernel, .mem = pipeline->mem, .tasks = all },
        .all = all,
        .began_ns = uprof_clock_now_ns(),
    };
}

void
uprof_task_locks_clear(UprofTaskLocks *locks)
{
    g_array_unref(locks->all);
}

static UprofTaskLockKind
find_kind(const UprofTaskUnwinder *unwinder)
{
    const UprofStack *stack = unwinder->stack;
    UprofTaskLockKind kind = UPROF_TASK_LOCK_NONE;

    for (unsigned i = 0; i < stack->n_kernel && i < stack->n && kind == UPROF_TASK_LOCK_NONE; i++) {
        const UprofFrame *frame = &stack->frames[i];
        const UprofSymAnswer answer =
            uprof_sym_find(unwinder->pipeline->sym, frame->symbol_address, frame->is_return);
        kind = uprof_task_lock_kind(uprof_name_text(answer.name));
    }
    return kind;
}

bool
uprof_task_locks_find(UprofTaskLocks *locks, const UprofTaskUnwinder *unwinder,
                      const UprofTask *task, UprofTaskLock *lock)
{
    /* a task that waits for a CPU has got its lock, or tries again */
    const UprofTaskLockKind kind = task->state == 'R' ? UPROF_TASK_LOCK_NONE : find_kind(unwinder);

    *lock = (UprofTaskLock){ 0 };
    if (kind == UPROF_TASK_LOCK_NONE)
        return false;
    if (uprof_clock_now_ns() - locks->began_ns >= SEARCH_NS) {
        locks->n_cut++;
        return false;
    }
    return uprof_task_lock_find(&locks->search, kind, task, unwinder->copy, lock);
}

void
uprof_task_locks_warn(const UprofTaskLocks *locks, const char *shown, const UprofNotices *notices)
{
    if (locks->n_cut > 0)
        uprof_notice(
            notices, UPROF_NOTICE_WARNING,
            "%s: the locks of %u task%s were not searched, to save time; choose fewer tasks", shown,
            locks->n_cut, locks->n_cut == 1 ? "" : "s");
}

/* ---- Lines ---- */

/* "name[12] (uninterruptible for 3.2s)" */
static void
append_owner(GString *out, const UprofTask *owner)
{
    g_autofree char *wait = uprof_task_text_span(owner->wait_ns);

    g_string_append_printf(out, "%s[%u] (%s", owner->name, owner->id, uprof_task_text_state(owner));
    if (owner->has_wait)
        g_string_append_printf(out, " for %s", wait);
    g_string_append_c(out, ')');
}

static void
append_holder(GString *out, const UprofTaskLocks *locks, const UprofTaskLock *lock)
{
    const UprofTask *owner = uprof_task_lock_task(&locks->search, lock->owner);

    if (lock->holder == UPROF_TASK_LOCK_READERS)
        g_string_append_printf(out,
                               " that %" G_GUINT64_FORMAT " reader%s; the last to come, a hint: ",
                               lock->n_readers, lock->n_readers == 1 ? " holds" : "s hold");
    else if (lock->holder == UPROF_TASK_LOCK_HELD)
        g_string_append(out, " that ");
    if (owner)
        append_owner(out, owner);
    if (lock->holder == UPROF_TASK_LOCK_HELD)
        g_string_append(out, " holds");
    else if (lock->holder == UPROF_TASK_LOCK_READERS && !owner)
        g_string_append(out, "unknown");
    else if (lock->holder == UPROF_TASK_LOCK_RELEASED)
        g_string_append(out, ", just released");
    else if (lock->holder == UPROF_TASK_LOCK_UNKNOWN)
        g_string_append(out, ", owner unknown");
}

static void
append_line(GString *out, const UprofTaskLocks *locks, const Line *line)
{
    static const char *const kinds[] = {
        [UPROF_TASK_LOCK_MUTEX] = "for a mutex",
        [UPROF_TASK_LOCK_READ] = "to read under a rw-semaphore",
        [UPROF_TASK_LOCK_WRITE] = "to write under a rw-semaphore",
        [UPROF_TASK_LOCK_FUTEX] = "for a PI futex, rt-mutex",
        [UPROF_TASK_LOCK_PER_CPU] = "for a per-CPU rw-semaphore",
    };
    const UprofTaskLock *lock = line->lock;

    if (line->n_tasks == 1)
        g_string_append(out, "  waits ");
    else
        g_string_append_printf(out, "  %u wait ", line->n_tasks);
    if (lock->type[0]) {
        g_string_append_printf(out, "for a file system: %s on %s, frozen\n", lock->type,
                               lock->device);
        return;
    }
    g_string_append_printf(out, "%s at %" G_GINT64_MODIFIER "x", kinds[lock->kind], lock->address);
    append_holder(out, locks, lock);
    g_string_append_c(out, '\n');
}

/* Returns: false if the lock is another one than those of the lines, which are full */
static bool
count_lock(Line *lines, unsigned *n_lines, const UprofTaskLock *lock)
{
    for (unsigned i = 0; i < *n_lines; i++)
        if (lines[i].lock->address == lock->address && lines[i].lock->kind == lock->kind) {
            lines[i].n_tasks++;
            return true;
        }
    if (*n_lines == SHOWN_MAX)
        return false;
    lines[(*n_lines)++] = (Line){ lock, 1 };
    return true;
}

void
uprof_task_locks_append(GString *out, const UprofTaskLocks *locks, const GArray *found)
{
    Line lines[SHOWN_MAX];
    unsigned n_lines = 0, n_more = 0;

    for (guint i = 0; i < found->len; i++)
        n_more += !count_lock(lines, &n_lines, &g_array_index(found, UprofTaskLock, i));
    for (unsigned i = 0; i < n_lines; i++)
        append_line(out, locks, &lines[i]);
    if (n_more > 0)
        g_string_append_printf(out, "  %u wait%s for other locks\n", n_more,
                               n_more == 1 ? "s" : "");
}

/* ---- JSON ---- */

static void
write_owner(UprofJsonWriter *json, const UprofTask *owner)
{
    uprof_json_begin(json, "owner", UPROF_JSON_OBJECT);
    uprof_json_uint(json, "pid", owner->process);
    uprof_json_uint(json, "tid", owner->id);
    uprof_json_string(json, "name", owner->name);
    uprof_json_string(json, "state_name", uprof_task_text_state(owner));
    if (owner->has_wait)
        uprof_json_uint(json, "wait_ns", owner->wait_ns);
    uprof_json_end(json, UPROF_JSON_OBJECT);
}

void
uprof_task_locks_write(UprofJsonWriter *json, const UprofTaskLocks *locks,
                       const UprofTaskLock *lock)
{
    static const char *const holders[] = {
        [UPROF_TASK_LOCK_UNTOLD] = "untold",   [UPROF_TASK_LOCK_RELEASED] = "released",
        [UPROF_TASK_LOCK_HELD] = "held",       [UPROF_TASK_LOCK_READERS] = "readers",
        [UPROF_TASK_LOCK_UNKNOWN] = "unknown",
    };
    const UprofTask *owner = uprof_task_lock_task(&locks->search, lock->owner);
    g_autofree char *address = g_strdup_printf("0x%" G_GINT64_MODIFIER "x", lock->address);

    uprof_json_begin(json, "lock", UPROF_JSON_OBJECT);
    uprof_json_string(json, "kind", uprof_task_lock_kind_name(lock->kind));
    uprof_json_string(json, "address", address);
    uprof_json_string(json, "holder", holders[lock->holder]);
    if (lock->holder == UPROF_TASK_LOCK_READERS)
        uprof_json_uint(json, "readers", lock->n_readers);
    if (lock->n_waiters > 0)
        uprof_json_uint(json, "waiters", lock->n_waiters);
    if (owner)
        write_owner(json, owner);
    if (lock->type[0]) {
        uprof_json_string(json, "frozen_type", lock->type);
        uprof_json_string(json, "frozen_device", lock->device);
    }
    uprof_json_end(json, UPROF_JSON_OBJECT);
}
