/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * processes.h - the processes of a profile
 *
 * In a guest with processes, the first frame below the domain (or below the vCPU, if vCPUs
 * are shown separately) is the name of the process. Kernel functions of its stack end in
 * "_[k]".
 */
#pragma once

#include "uprof/profile.h"

/**
 * uprof_processes_are_in: are the first frames of the stacks processes?
 *
 * The first frames are processes if some stack has a kernel function after its first frame.
 */
bool uprof_processes_are_in(const UprofProfile *profile);

/**
 * uprof_processes_find:
 * @profile: a profile that has processes
 *
 * Returns: (transfer full) (element-type UprofProfileRow): a row for each process, without halted
 *   vCPUs: @total is the weight of its stacks, @self the weight of its stacks in the kernel. The
 *   rows are sorted by total, then by name. Stacks without a process, such as those from before the
 *   kernel was detected, count as "[unknown]".
 */
GArray *uprof_processes_find(const UprofProfile *profile);
