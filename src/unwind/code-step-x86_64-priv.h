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
 *
 * Where code returns from an interrupt, the interrupted code follows, if the words there are such as a
 * processor pushes (interrupt-frame-priv.h). It may have been interrupted anywhere.
 *
 * A frame has no caller, so that the stack is complete,
 *
 * - if its code is such as ends threads and processors (code-place.c), or a return address of 0 is
 *   where the caller's should be, or the code has cleared the frame pointer without having saved it;
 * - in a kernel's image, in the function where the image begins to run. The ELF header names it, or a
 *   note for Xen. It waits for a call, so that its return address is in this function;
 * - in a kernel, in a function that has begun the stack: on the way from the start of the function to
 *   the call, the stack pointer gets a value that does not depend on the old one, and before that,
 *   nothing has kept the old one, in no register and no memory, and nothing was called
 *   (%UPROF_SP_FRESH). The start must be known by a symbol, and no way behind the call may return by another
 *   stack pointer than the present one, because a jump may have led to the start, from code that has
 *   kept the old stack;
 * - if the words of an interrupt say that a process was interrupted, and processes are not known.
 *
 * What does not prove one of these is not a root. The end of such a stack is said to be missing.
 */
#pragma once

#include "unwind-context-priv.h"

/** uprof_code_x86_64_step: an UprofStepFunc; the context must have a cache */
UprofStep uprof_code_x86_64_step(const UprofUnwindContext *context, UprofCursor *cursor);
