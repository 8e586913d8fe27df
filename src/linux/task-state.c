/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The rules of the kernel's own /proc: Linux, include/linux/sched.h (task_index_to_char()) and
 * kernel/sched/cputime.c (cputime_adjust()).
 */
#include "task-state-priv.h"

#include "uprof/task-list.h"

#include <string.h>

enum {
    STATES = 0x7f,      /* that have a letter of their own */
    IDLE = 0x402,       /* uninterruptible, but it does not count as load */
    LOCK_WAIT = 0x1000, /* waits for a lock that lends its priority */
    FROZEN = 0x8000,
};

/* Letters by the number of the highest bit of the state, from 1 on. */
static const char letters[] = "RSDTtXZP";

char
uprof_task_state_letter(uint32_t state, uint32_t exit_state)
{
    uint32_t bits = (state | exit_state) & STATES;
    unsigned n = 0;

    if ((state & IDLE) == IDLE)
        return 'I';
    if (state & (LOCK_WAIT | FROZEN))
        return 'D';
    for (; bits != 0; bits >>= 1)
        n++;
    return letters[n];
}

const char *
uprof_task_state_name(char letter)
{
    static const struct {
        char letter;
        const char *name;
    } names[] = {
        { 'R', "runnable" }, { 'S', "sleeping" }, { 'D', "uninterruptible" },
        { 'T', "stopped" },  { 't', "traced" },   { 'X', "dead" },
        { 'Z', "zombie" },   { 'P', "parked" },   { 'I', "idle" },
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (names[i].letter == letter)
            return names[i].name;
    return "unknown";
}

/* Returns: @whole * @part / @all. The result fits, because @part is at most @all. @all is not 0. */
static uint64_t
scale_time(uint64_t whole, uint64_t part, uint64_t all)
{
    return (uint64_t)((unsigned __int128)whole * part / all);
}

void
uprof_task_state_scale(const UprofTaskTimes *times, uint64_t *user, uint64_t *system)
{
    const uint64_t run = times->run;

    *user = times->shown_user;
    *system = times->shown_system;
    if (run <= *user || run - *user <= *system)
        return;
    const uint64_t ticks = times->system + times->user;
    uint64_t of_system = times->system == 0 ? 0
                         : times->user == 0 || ticks < times->user
                             ? run
                             : scale_time(run, times->system, ticks);
    /* no time goes back */
    of_system = CLAMP(of_system, *system, run - *user);
    *system = of_system;
    *user = run - of_system;
}
