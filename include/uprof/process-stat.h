/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * process-stat.h - /proc/PID/stat of a process, and of its threads
 *
 * proc(5) has the fields. The second field is the name in parentheses. The name can contain blanks
 * and parentheses, so fields are counted from the last ')'.
 */
#pragma once

#include "uprof/bytes.h"

#include <sys/types.h>

/** UprofProcessStatField: numbers of fields in proc(5) */
typedef enum {
    UPROF_PROCESS_STAT_STATE = 3,
    UPROF_PROCESS_STAT_START = 22, /* start time, in clock ticks since the boot */
} UprofProcessStatField;

/**
 * uprof_process_stat_find:
 * @text: the content of a stat file
 * @word: (out): the field, a part of @text; undefined on failure
 *
 * Returns: false if @text has no such field
 */
bool uprof_process_stat_find(UprofSlice text, UprofProcessStatField field, UprofSlice *word);

/**
 * uprof_process_stat_start:
 * @pid: of any process; numbers below 1 are not processes
 *
 * Number and start time together identify a process, because Linux reuses numbers.
 *
 * Returns: the start time in clock ticks since the boot; 0 if there is no such process
 */
uint64_t uprof_process_stat_start(pid_t pid);

/**
 * uprof_process_stat_is_stopped:
 * @pid: of any process
 *
 * True if a signal or a tracer has stopped the first thread of the process (state T or
 * t); false if there is no such process.
 */
bool uprof_process_stat_is_stopped(pid_t pid);

/**
 * uprof_process_stat_run_delay:
 * @pid: of any process
 *
 * Returns: nanoseconds that its first thread was ready to run and waited for a processor, from
 *   /proc/PID/schedstat; 0 if that is not known
 */
uint64_t uprof_process_stat_run_delay(pid_t pid);
