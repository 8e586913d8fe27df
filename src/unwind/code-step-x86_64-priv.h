/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * code-step-x86_64-priv.h - the unwinder that follows the effect of a function's code on the stack
 */
#pragma once

#include "unwind-context-priv.h"

/** uprof_code_x86_64_step: an UprofStepFunc; the return address must be behind a call */
UprofStep uprof_code_x86_64_step(const UprofUnwindContext *context, UprofCursor *cursor);
