/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * code-role-priv.h - what the code at an address says about its frame: root, or return from a
 * signal
 */
#pragma once

#include "code-memo-priv.h"

/** uprof_code_find_role: @is_return: @pc is a return address */
UprofCodeRole
uprof_code_find_role(UprofCodeText *text, uint64_t pc, bool is_return, bool is_kernel);

/**
 * uprof_code_is_return: can @pc be a return address?
 *
 * It follows a call; or the operating system or a runtime has put it on the stack.
 */
bool uprof_code_is_return(UprofCodeText *text, uint64_t pc);
