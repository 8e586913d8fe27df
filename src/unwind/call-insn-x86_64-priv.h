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

enum { UPROF_CALL_BYTES_MAX = 7 };

/** UprofCallMatch: what the bytes before an address can be; both can be true */
typedef struct {
    bool is_direct, is_indirect;
    uint64_t target; /* of a direct call; else 0 */
} UprofCallMatch;

/**
 * uprof_x86_64_match_call:
 * @code: the @len bytes before @pc, at most %UPROF_CALL_BYTES_MAX
 * @word_bytes: 8 for 64-bit code, 4 for 32-bit code
 * @match: (out)
 */
void uprof_x86_64_match_call(const uint8_t *code, unsigned len, uint64_t pc, unsigned word_bytes,
                             UprofCallMatch *match);

/** uprof_x86_64_call_before: @target: (out): of a direct call; else undefined */
UprofCall
uprof_x86_64_call_before(const UprofUnwindContext *context, uint64_t pc, uint64_t *target);
