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
 * A return address must follow a call. The way to a caller becomes a rule, which is tried first
 * when another frame has the same address.
 *
 * If a handler returns by IRET, the caller is the interrupted code, which may be any instruction.
 * The words on the stack must look like those that a processor pushes (interrupt-frame-priv.h).
 *
 * A frame is the root, and the stack complete, in these cases:
 *
 * - The code ends a thread or a processor's work (code-role.c), or the word of the return address
 * is 0, or the code has cleared the frame pointer without having saved it.
 * - The frame is in a kernel's image, in the function where the image begins to run by its ELF
 * header or by a note for Xen. This function has called another one.
 * - The frame is in a function of a kernel that has begun the stack (%UPROF_SP_FRESH): between its
 * start and the call, it has set the stack pointer to a value that does not depend on the old one.
 * Before that, it has neither kept the old value nor called anything. A symbol must name its start.
 * Code that has kept the old stack pointer may have jumped to that start. So no code behind the
 * call may return by another stack pointer than the new one.
 * - An interrupt has interrupted a process, and the guest's processes are not known.
 *
 * All other stacks that end here are incomplete.
 */
#pragma once

#include "unwind-context-priv.h"

/** uprof_code_x86_64_step: an UprofStepFunc; the context must have a cache */
UprofStep uprof_code_x86_64_step(const UprofUnwindContext *context, UprofCursor *cursor);
