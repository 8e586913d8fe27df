/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Linux, kernel/sched/core.c (update_rq_clock_task()): rq.clock_task is rq.clock without the time
 * of interrupts and the time that the host has stolen. Both are brought up to date together.
 */
#include "task-clock-priv.h"

enum { CLOCK, TASK_CLOCK, N_CLOCKS };

/*
 * Reads the clocks of one CPU.
 * @behind: (out): 0 if the kernel has one clock only. Returns: the time of the second clock, or 0
 */
static uint64_t
read_clocks(const UprofKernelMemory *memory, const UprofTaskOffsets *offsets, uint64_t run_queue,
            uint64_t *behind)
{
    const unsigned n = offsets->task_clock != UPROF_TASK_NO_MEMBER ? N_CLOCKS : 1;
    uint64_t clocks[N_CLOCKS] = { 0 };
    UprofMemPiece pieces[N_CLOCKS] = {
        [CLOCK] = { .gva = run_queue + offsets->clock },
        [TASK_CLOCK] = { .gva = run_queue + offsets->task_clock },
    };

    for (unsigned i = 0; i < n; i++) {
        pieces[i].into = &clocks[i];
        pieces[i].len = sizeof(clocks[i]);
    }
    if (!uprof_kernel_read_pieces(memory, pieces, n))
        return 0;
    const uint64_t now = GUINT64_FROM_LE(clocks[CLOCK]);
    const uint64_t task_now = n == N_CLOCKS ? GUINT64_FROM_LE(clocks[TASK_CLOCK]) : now;
    *behind = task_now < now ? now - task_now : 0;
    return now;
}

void
uprof_task_clock_init(UprofTaskClock *clock, const UprofLinux *kernel,
                      const UprofKernelMemory *memory, const UprofTaskOffsets *offsets)
{
    const UprofLinuxSymbols *symbols = uprof_linux_symbols(kernel);
    const unsigned n_cpus = uprof_linux_n_vcpus(kernel);

    clock->now = 0;
    clock->behind = g_array_new(FALSE, TRUE, sizeof(uint64_t));
    for (unsigned i = 0; i < n_cpus && symbols->run_queues != 0; i++) {
        uint64_t area, now = 0, behind = 0;
        if (uprof_kernel_read_word_now(memory, symbols->cpu_areas + i * sizeof(area), &area))
            now = read_clocks(memory, offsets, area + symbols->run_queues, &behind);
        clock->now = MAX(clock->now, now);
        g_array_append_val(clock->behind, behind);
    }
}

void
uprof_task_clock_clear(UprofTaskClock *clock)
{
    g_clear_pointer(&clock->behind, g_array_unref);
}

uint64_t
uprof_task_clock_since(const UprofTaskClock *clock, uint32_t cpu, uint64_t left)
{
    const uint64_t behind =
        cpu < clock->behind->len ? g_array_index(clock->behind, uint64_t, cpu) : 0;

    /* no @behind is more than the time of its own CPU, so neither difference overflows */
    return left < clock->now - behind ? clock->now - behind - left : 0;
}
