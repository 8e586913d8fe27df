/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * code-rule-priv.h - from the state of registers to a rule that finds the caller
 */
#pragma once

#include "code-walk-priv.h"

/**
 * uprof_code_rule_at_exit:
 * @state: where the code returns; values are of the frame
 * @rule: (out)
 *
 * Returns: false if this cannot be the end of the frame's function
 */
bool uprof_code_rule_at_exit(const UprofCodeState *state, unsigned word_bytes, UprofCodeRule *rule);

/**
 * uprof_code_rule_inside:
 * @state: where the frame is; values are of the start of its function
 * @rule: (out)
 *
 * Returns: false if no register leads to the start's stack pointer
 */
bool uprof_code_rule_inside(const UprofCodeState *state, unsigned word_bytes, UprofCodeRule *rule);
