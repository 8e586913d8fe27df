/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * code-step-x86_64-priv.h - the unwinder that needs nothing but machine code
 *
 * It reads registers, stack and code; symbols help it where there are some. In this order, it
 *
 * 1. follows the code from the frame's address to the end of the function,
 * 2. follows the code to the frame's address from places before it where functions may begin,
 * 3. looks on the stack for a return address whose call leads to the frame's address with a stack
 *    of this height,
 * 4. repeats all of this with longer walks.
 *
 * A return address must follow a call. The way to a caller becomes a rule, which is tried first when
 * another frame has the same address.
 */
#pragma once

#include "unwind-context-priv.h"

/** uprof_code_x86_64_step: an UprofStepFunc; the context must have a cache */
UprofStep uprof_code_x86_64_step(const UprofUnwindContext *context, UprofCursor *cursor);
