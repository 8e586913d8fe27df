/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * call-check.h - checks that return addresses of a stack lie behind calls of the right functions
 */
#pragma once

#include "uprof/stack.h"
#include "uprof/unwind-context.h"

/**
 * uprof_unwind_check_calls:
 * @stack: was unwound in this context
 * @n_checked: (out): return addresses whose code can be read
 * @n_agreed: (out): checked return addresses behind a call that fits. A direct call fits if it
 *   leads to the next frame's function, or to a function that jumps there. An indirect call always
 *   fits.
 *
 * The two counts measure the quality of a stack, because a wrong stack is not a chain of calls. All
 * searches for jumps in one stack share one limit. A return address does not count as checked if
 * its search exceeds this limit.
 */
void uprof_unwind_check_calls(const UprofUnwindContext *context, const UprofStack *stack,
                              unsigned *n_checked, unsigned *n_agreed);
