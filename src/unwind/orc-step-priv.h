/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * orc-step-priv.h - the unwinder that applies a Linux kernel's own tables
 */
#pragma once

#include "unwind-context-priv.h"

/**
 * uprof_orc_step: an UprofStepFunc
 *
 * Applies the rule that a Linux kernel has for its own code (orc-table.h). Runs before the CFI
 * unwinder, because CFI is wrong where the kernel changes stacks. The guest wrote both the rules
 * and the stack, and may mean harm. If the cursor says that the stack was switched, the caller's
 * stack pointer may be lower than the frame's.
 *
 * Returns: %UPROF_STEP_PASS if there is no rule, the kernel has no answer, or the rule needs an
 *   unknown register; %UPROF_STEP_BASE if the rule says so, or if the caller is in user space
 *   and processes are not known; %UPROF_STEP_PROCESS if the process or its stack is not known
 */
UprofStep uprof_orc_step(const UprofUnwindContext *context, UprofCursor *cursor);
