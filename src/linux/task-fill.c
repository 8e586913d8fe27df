/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "task-fill-priv.h"

#include "task-state-priv.h"

enum { KERNEL_THREAD = 0x200000 }; /* Linux, include/linux/sched.h, PF_KTHREAD */

/* The input; both are borrowed. */
typedef struct {
    const UprofTaskOffsets *offsets;
    const UprofTaskBytes *bytes;
} Source;

static uint32_t
get_number(const Source *source, uint64_t offset)
{
    return (uint32_t)uprof_task_bytes_word(source->offsets, source->bytes, offset,
                                           sizeof(uint32_t));
}

static uint64_t
get_word(const Source *source, uint64_t offset)
{
    return uprof_task_bytes_word(source->offsets, source->bytes, offset, sizeof(uint64_t));
}

static void
fill_times(const Source *source, UprofTask *task)
{
    const UprofTaskOffsets *offsets = source->offsets;
    const UprofTaskTimes times = {
        .user = get_word(source, offsets->user_time),
        .system = get_word(source, offsets->system_time),
        .shown_user = get_word(source, offsets->shown_user),
        .shown_system = get_word(source, offsets->shown_system),
        .run = get_word(source, offsets->run_time),
    };

    uprof_task_state_scale(&times, &task->user_ns, &task->system_ns);
    task->has_wait = !task->is_on_cpu && !task->may_run && get_word(source, offsets->left) != 0;
    task->began_ns = get_word(source, offsets->start);
    task->n_switches =
        get_word(source, offsets->voluntary) + get_word(source, offsets->involuntary);
}

static void
fill_pointers(const Source *source, UprofTask *task)
{
    const UprofTaskOffsets *offsets = source->offsets;

    task->memory = get_word(source, offsets->memory);
    task->stack = get_word(source, offsets->stack);
    task->saved_sp = get_word(source, offsets->saved_sp);
    task->cgroup = get_word(source, offsets->cgroups);
    task->parent_at = get_word(source, offsets->parent);
    task->ids_at = get_word(source, offsets->thread_pid);
}

void
uprof_task_fill(const UprofTaskOffsets *offsets, const UprofTaskBytes *bytes, UprofTask *task)
{
    const Source source = { offsets, bytes };

    task->id = get_number(&source, offsets->pid);
    task->process = get_number(&source, offsets->tgid);
    task->cpu = get_number(&source, offsets->cpu);
    task->state = uprof_task_state_letter(get_number(&source, offsets->state),
                                          get_number(&source, offsets->exit_state));
    task->is_on_cpu = get_number(&source, offsets->on_cpu) != 0;
    task->may_run = offsets->on_cpu == UPROF_TASK_NO_MEMBER && task->state == 'R';
    task->is_kernel = get_number(&source, offsets->flags) & KERNEL_THREAD;
    task->is_in_io =
        uprof_task_bytes_word(offsets, bytes, offsets->io_wait, 1) & offsets->io_wait_mask;
    fill_times(&source, task);
    fill_pointers(&source, task);
}

uint64_t
uprof_task_fill_left(const UprofTaskOffsets *offsets, const UprofTaskBytes *bytes)
{
    const Source source = { offsets, bytes };

    return get_word(&source, offsets->left);
}
