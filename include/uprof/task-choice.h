/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * task-choice.h - which tasks are shown, and in which order
 */
#pragma once

#include "uprof/task-list.h"

enum { UPROF_TASK_PATTERN_BYTES = 512 };

/** The letters of all states, for UprofTaskChoice.states */
#define UPROF_TASK_STATES "RSDTtXZPI"

/** UprofTaskOrder: the first task is ... */
typedef enum {
    UPROF_TASK_BY_ID,   /* the one with the lowest id */
    UPROF_TASK_BY_CPU,  /* the one with the most CPU time */
    UPROF_TASK_BY_WAIT, /* the one that waits longest */
    UPROF_TASK_BLOCKED, /* an uninterruptible one, of these the one that waits longest */
} UprofTaskOrder;

/** UprofTaskChoice: has no pointers, so that it can be sent to another process */
typedef struct {
    char states[sizeof(UPROF_TASK_STATES)]; /* letters; "": all */
    /* a regular expression for the task's name; "": all */
    char pattern[UPROF_TASK_PATTERN_BYTES];
    UprofTaskOrder order;
} UprofTaskChoice;

/** uprof_task_choice_order: @name: (nullable): "pid", "cpu" or "wait"; everything else is "pid" */
UprofTaskOrder uprof_task_choice_order(const char *name);

/**
 * uprof_task_choice_set_states: @letters: some of %UPROF_TASK_STATES
 *
 * Returns: false if there are other letters, or none
 */
bool uprof_task_choice_set_states(UprofTaskChoice *choice, const char *letters);

/**
 * uprof_task_choice_set_pattern: @pattern: for the tasks' names
 *
 * Returns: false if it is no regular expression, or too long
 */
bool uprof_task_choice_set_pattern(UprofTaskChoice *choice, const char *pattern);
