/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * priority.h - the priority of threads
 */
#pragma once

#include <stdbool.h>

/**
 * uprof_priority_lower: adds 5 to the nice value of the calling thread
 *
 * The sampler wakes the threads that analyze its samples. At the same priority, they would preempt
 * the sampler, which would miss a few ticks of a high rate each time. The priority matters only if
 * CPUs are scarce.
 *
 * Returns: false if the kernel refuses; the thread then goes on as before
 */
bool uprof_priority_lower(void);
