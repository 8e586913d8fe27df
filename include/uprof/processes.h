/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * processes.h - a profile by the processes that ran
 *
 * Of a guest with processes the first frame behind the domain's is the name of the one
 * that ran, or behind that of the vCPU. Where the stack goes on into the guest's
 * kernel, its functions say so themselves: "_[k]".
 */
#pragma once

#include "uprof/profile.h"

/**
 * uprof_processes_are_in: by the stacks alone
 *
 * Returns: whether some stack goes from a process into the kernel, so that what stands
 *   first in all of them is a process
 */
bool uprof_processes_are_in(const UprofProfile *profile);

/**
 * uprof_processes_find: of a profile that has processes
 *
 * Returns: (transfer full): UprofProfileRow per name, without halted vCPUs: @total is the
 *   weight of its stacks, @self that of those in the kernel; most total first, then by name.
 *   Stacks that begin with what is no process, as before the kernel was known, are "[unknown]".
 */
GArray *uprof_processes_find(const UprofProfile *profile);
