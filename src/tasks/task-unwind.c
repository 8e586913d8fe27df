/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "task-unwind-priv.h"

#include "uprof/clock.h"

#include <string.h>

enum {
    USER_BYTES = 32 * 1024, /* of a stack of user space */
    TOGETHER = 32,          /* stacks that are copied together, unless the unwinder reads ahead */
};

/* Between two tasks as between two samples: so the limits of a sample begin again. */
#define APART_NS UINT64_C(10000000)

void
uprof_task_unwinder_init_beside(UprofTaskUnwinder *unwinder, UprofPipeline *pipeline,
                                UprofTaskReader reader)
{
    *unwinder = (UprofTaskUnwinder){
        .pipeline = pipeline,
        .reader = reader,
        .snapshot = g_new0(UprofSnapshot, 1),
        .copies = g_new0(UprofTaskStack, UPROF_TASK_STACKS_MAX),
        .stack = g_new0(UprofStack, 1),
    };
}

void
uprof_task_unwinder_read_ahead(UprofTaskUnwinder *unwinder)
{
    unwinder->next = g_new0(UprofTaskStack, UPROF_TASK_STACKS_MAX);
}

static void
drop_copies(UprofTaskUnwinder *unwinder)
{
    uprof_task_stacks_drop(g_steal_pointer(&unwinder->copying));
}

void
uprof_task_unwinder_restart(UprofTaskUnwinder *unwinder, uint64_t time_ns, uint32_t reset)
{
    drop_copies(unwinder);
    unwinder->snapshot->time_ns = time_ns;
    unwinder->snapshot->reset = reset;
    unwinder->first = unwinder->end = 0;
    uprof_mem_forget(unwinder->reader.mem);
}

void
uprof_task_unwinder_init(UprofTaskUnwinder *unwinder, UprofPipeline *pipeline,
                         const UprofTaskRequest *request)
{
    const UprofTaskReader reader = { pipeline->mem, pipeline->cache, APART_NS };

    uprof_task_unwinder_init_beside(unwinder, pipeline, reader);
    uprof_task_unwinder_restart(unwinder, request->time_ns, request->reset);
    unwinder->end_ns =
        uprof_clock_now_ns() +
        (request->kernel_ns > 0 ? request->kernel_ns : uprof_task_list_limit_ns(pipeline->mem));
}

bool
uprof_task_unwinder_is_late(const UprofTaskUnwinder *unwinder)
{
    return unwinder->end_ns > 0 && uprof_clock_now_ns() >= unwinder->end_ns;
}

void
uprof_task_unwinder_warn(const UprofTaskUnwinder *unwinder, const char *shown,
                         const UprofNotices *notices)
{
    if (unwinder->n_late > 0)
        uprof_notice(notices, UPROF_NOTICE_WARNING,
                     "%s: the stacks of %u task%s were not read, to save time; choose fewer tasks",
                     shown, unwinder->n_late, unwinder->n_late == 1 ? "" : "s");
}

void
uprof_task_unwinder_clear(UprofTaskUnwinder *unwinder)
{
    drop_copies(unwinder);
    g_free(unwinder->snapshot);
    g_free(unwinder->copies);
    g_free(unwinder->next);
    g_free(unwinder->stack);
}

static UprofUnwindContext
make_context(const UprofTaskUnwinder *unwinder, unsigned depth)
{
    const UprofPipeline *pipeline = unwinder->pipeline;

    return (UprofUnwindContext){
        .snapshot = unwinder->snapshot,
        .mem = unwinder->reader.mem,
        .sym = pipeline->sym,
        .cache = unwinder->reader.cache,
        .method = uprof_unwind_method(pipeline->run->unwind),
        .max_depth = CLAMP(depth, 1, (unsigned)UPROF_DEPTH_MAX),
    };
}

/* The time is up before the stack of the next task is read. */
static void
skip_stack(UprofTaskUnwinder *unwinder)
{
    drop_copies(unwinder);
    unwinder->first = unwinder->end = 0;
    unwinder->copy = &unwinder->copies[0];
    unwinder->copy->state = UPROF_TASK_STACK_SKIPPED;
    unwinder->copy->has_user = false;
    unwinder->n_late++;
}

/* Returns: (nullable): %NULL if there is no task @i */
static UprofTaskCopying *
begin_copies(const UprofTaskUnwinder *unwinder, GArray *tasks, guint i, UprofTaskStack *into)
{
    const unsigned most = unwinder->next ? UPROF_TASK_STACKS_MAX : TOGETHER;

    if (i >= tasks->len)
        return NULL;
    return uprof_task_stacks_begin(unwinder->pipeline->kernel, unwinder->reader.mem,
                                   &g_array_index(tasks, UprofTask, i), into,
                                   MIN(tasks->len - i, most));
}

/* The program reads the stacks of the next tasks while the caller finds the frames of these. */
static void
read_ahead(UprofTaskUnwinder *unwinder, GArray *tasks, guint i)
{
    UprofTaskStack *copies = unwinder->next;

    if (i != unwinder->end)
        drop_copies(unwinder);
    if (!unwinder->copying)
        unwinder->copying = begin_copies(unwinder, tasks, i, copies);
    uprof_task_stacks_end(g_steal_pointer(&unwinder->copying));
    unwinder->next = unwinder->copies;
    unwinder->copies = copies;
    unwinder->end = MIN(i + UPROF_TASK_STACKS_MAX, tasks->len);
    unwinder->copying = begin_copies(unwinder, tasks, unwinder->end, unwinder->next);
}

static void
copy_stacks(UprofTaskUnwinder *unwinder, GArray *tasks, guint i)
{
    if (i < unwinder->first || i >= unwinder->end) {
        if (unwinder->next) {
            read_ahead(unwinder, tasks, i);
        } else {
            uprof_task_stacks_end(begin_copies(unwinder, tasks, i, unwinder->copies));
            unwinder->end = MIN(i + TOGETHER, tasks->len);
        }
        unwinder->first = i;
    }
    unwinder->copy = &unwinder->copies[i - unwinder->first];
}

void
uprof_task_unwind_kernel(UprofTaskUnwinder *unwinder, GArray *tasks, guint i, unsigned depth)
{
    const UprofUnwindContext context = make_context(unwinder, depth);

    unwinder->has_user = false;
    unwinder->stack->n = 0;
    if (uprof_task_unwinder_is_late(unwinder))
        skip_stack(unwinder);
    else
        copy_stacks(unwinder, tasks, i);
    if (unwinder->copy->state != UPROF_TASK_STACK_COPIED)
        return;
    uprof_task_stack_make_snapshot(unwinder->pipeline->kernel, &g_array_index(tasks, UprofTask, i),
                                   unwinder->copy, unwinder->snapshot);
    uprof_unwind(&context, unwinder->stack);
}

/* Adds the stack of user space to the snapshot. */
static void
copy_user_stack(UprofTaskUnwinder *unwinder)
{
    const UprofPipeline *pipeline = unwinder->pipeline;
    UprofSnapshot *snapshot = unwinder->snapshot;
    const UprofRegs *tables = uprof_space_tables(pipeline->space);
    g_autofree uint8_t *bytes = g_malloc(USER_BYTES);
    const size_t room = MIN((size_t)USER_BYTES, uprof_snapshot_room(snapshot));
    const size_t len =
        uprof_mem_copy(unwinder->reader.mem, snapshot->vcpu, tables ? tables : &snapshot->regs,
                       unwinder->copy->user_sp, bytes, room);

    if (len > 0)
        uprof_snapshot_add_window(snapshot, unwinder->copy->user_sp, bytes, len);
}

void
uprof_task_unwind_user(UprofTaskUnwinder *unwinder, const UprofTask *task, unsigned depth)
{
    UprofPipeline *pipeline = unwinder->pipeline;
    UprofMem *mem = unwinder->reader.mem;
    UprofUnwindContext context = make_context(unwinder, depth);

    if (unwinder->copy->state != UPROF_TASK_STACK_COPIED || !unwinder->copy->has_user)
        return;
    unwinder->snapshot->time_ns += unwinder->reader.apart_ns;
    uprof_mem_begin_sample(mem, unwinder->snapshot->time_ns, unwinder->snapshot->reset);
    uprof_mem_allow_more(mem);
    uprof_space_begin(pipeline->space, mem, unwinder->snapshot);
    uprof_runtimes_begin(pipeline->runtimes, unwinder->snapshot);
    copy_user_stack(unwinder);
    if (!uprof_task_stack_is_same(pipeline->kernel, mem, task))
        return;
    context.space = pipeline->space;
    context.runtimes = pipeline->runtimes;
    uprof_unwind(&context, unwinder->stack);
    unwinder->has_user = true;
}

const UprofFrame *
uprof_task_unwind_wait(const UprofTaskUnwinder *unwinder)
{
    const UprofStack *stack = unwinder->stack;

    for (unsigned i = 0; i < stack->n_kernel && i < stack->n; i++)
        if (!uprof_task_stack_is_waiting(unwinder->pipeline->kernel, stack->frames[i].pc))
            return &stack->frames[i];
    return NULL;
}
