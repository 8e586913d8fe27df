/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * call-insn-x86_64-priv.h - the call instruction before a return address
 */
#pragma once

#include "unwind-context-priv.h"

/** UprofCall: the instruction before a return address; DIRECT and INDIRECT are calls */
typedef enum {
    UPROF_CALL_UNREADABLE, /* the code cannot be read */
    UPROF_CALL_NONE,
    UPROF_CALL_DIRECT,
    UPROF_CALL_INDIRECT,
} UprofCall;

/** uprof_x86_64_call_before: @target: (out): of a direct call; else undefined */
UprofCall
uprof_x86_64_call_before(const UprofUnwindContext *context, uint64_t pc, uint64_t *target);
