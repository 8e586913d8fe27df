/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * processes.h - the processes of a profile, their cgroups, and the vCPUs
 *
 * In a guest with processes, the first frame below the domain (or below the vCPU, if vCPUs
 * are shown separately) is the name of the process. If cgroups are shown, the cgroup comes before
 * it. Kernel functions of its stack end in "_[k]".
 */
#pragma once

#include "uprof/profile.h"

/** UprofRowsBy: what a row of a table stands for */
typedef enum {
    UPROF_BY_FUNCTION,
    UPROF_BY_VCPU,
    UPROF_BY_PROCESS,
    UPROF_BY_CGROUP,
} UprofRowsBy;

/** uprof_rows_by_find: Returns: what the word of uprof_rows_by_text() means; else functions */
UprofRowsBy uprof_rows_by_find(const char *word);

/** uprof_rows_by_text: Returns: (transfer none): the word for one row, or for several */
const char *uprof_rows_by_text(UprofRowsBy by, bool is_plural);

/**
 * uprof_processes_missing:
 *
 * The first frames are processes if some stack has a kernel function after its first frame.
 *
 * Returns: (nullable): why the profile has no rows of that kind; literal
 */
const char *uprof_processes_missing(const UprofProfile *profile, UprofRowsBy by);

/**
 * uprof_processes_find:
 * @profile: a profile that has rows of the kind
 * @level: vCPUs, processes or cgroups
 *
 * Returns: (transfer full) (element-type UprofProfileRow): a row for each of them, without halted
 *   vCPUs: @total is the weight of its stacks, @self the weight of its stacks in the kernel. The
 *   rows are sorted by total, then by name. Stacks without a process, such as those from before the
 *   kernel was detected, count as "[unknown]".
 */
GArray *uprof_processes_find(const UprofProfile *profile, UprofRowsBy level);
