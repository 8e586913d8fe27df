/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * cfi-step-priv.h - the unwinder that applies an image's DWARF unwind tables
 */
#pragma once

#include "unwind-context-priv.h"

/**
 * uprof_cfi_step: an UprofStepFunc
 *
 * Applies the rule of .eh_frame or .debug_frame to all registers. File and guest may both mean
 * harm, so expressions are bounded.
 *
 * Returns: %UPROF_STEP_PASS if there is no rule, or the rule needs an unknown register;
 *   %UPROF_STEP_BASE if the rule says so, or the return address is 0
 */
UprofStep uprof_cfi_step(const UprofUnwindContext *context, UprofCursor *cursor);
