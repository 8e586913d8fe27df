/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * task-state-priv.h - what the kernel's numbers about a task mean
 */
#pragma once

#include <stdint.h>

/**
 * uprof_task_state_letter: Returns: the letter that `ps` shows; see uprof_task_state_name()
 * @state, @exit_state: of the task (Linux 4.14 and later)
 */
char uprof_task_state_letter(uint32_t state, uint32_t exit_state);

/** UprofTaskTimes: in ns */
typedef struct {
    uint64_t user, system;             /* counted in ticks */
    uint64_t shown_user, shown_system; /* that the guest has shown before */
    uint64_t run;                      /* all of it, exactly */
} UprofTaskTimes;

/**
 * uprof_task_state_scale: finds the times that the guest's own /proc shows
 * @times: any values
 * @user, @system: (out): ns; their sum is the exact time, unless the guest has shown more before
 */
void uprof_task_state_scale(const UprofTaskTimes *times, uint64_t *user, uint64_t *system);
