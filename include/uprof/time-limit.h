/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * time-limit.h - calls of library functions that can take very long and cannot be cancelled
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/**
 * uprof_time_limit_run:
 * @cpu_ns: processor time that @work may use. The kernel checks this only at its clock ticks, so
 *   @work can run up to 10 ms longer.
 * @work: runs in the calling thread. Past the limit it is abandoned at any instruction: it must
 *   not allocate memory, take locks, or leave half-changed data that others read.
 * @data: borrowed: for @work
 *
 * Uses a real-time signal of the process, SIGRTMIN + 2.
 *
 * Returns: true if @work has returned; false if it was abandoned, or if there is no timer, so that
 *   @work was not called
 */
bool uprof_time_limit_run(uint64_t cpu_ns, void (*work)(void *data), void *data);
