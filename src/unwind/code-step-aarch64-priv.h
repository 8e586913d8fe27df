/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * code-step-aarch64-priv.h - the unwinder that reads the function's own code
 *
 * A call leaves the return address in x30. Most functions save x29 and x30 in a frame record before
 * they call another function. So the caller of an interrupted function is in x30 up to this
 * instruction, and on the stack behind it. A walk by frame pointers alone would miss the caller of
 * each function without a record.
 *
 * All instructions have four bytes. So the code is read from the start of the function, which a
 * symbol must name, up to the frame's address: this shows how far the stack pointer has moved, and
 * where x29 and x30 are. A branch that leaves the function ends a path; behind it the frame is as
 * it was before the path began to take the frame down.
 */
#pragma once

#include "unwind-context-priv.h"

/** uprof_code_aarch64_step: an UprofStepFunc */
UprofStep uprof_code_aarch64_step(const UprofUnwindContext *context, UprofCursor *cursor);
