/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * code-place-priv.h - places in code that say what a frame is: roots, and returns from signals
 */
#pragma once

#include "code-memo-priv.h"

/** uprof_code_find_place: @is_return: @pc is a return address */
UprofCodePlace
uprof_code_find_place(UprofCodeText *text, uint64_t pc, bool is_return, bool is_kernel);

/**
 * uprof_code_is_return: can @pc be a return address?
 *
 * It follows a call; or the operating system or a runtime has put it on the stack.
 */
bool uprof_code_is_return(UprofCodeText *text, uint64_t pc);
