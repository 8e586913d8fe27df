/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * call-insn-priv.h - calls and jumps in machine code, as far as a check of return addresses needs
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

enum {
    UPROF_CALL_BYTES_MAX = 7,
    UPROF_JUMP_BYTES_MAX = 6,
};

/** UprofCallMatch: what the bytes before an address can be; both can be true */
typedef struct {
    bool is_direct, is_indirect;
    uint64_t target; /* of a direct call; else 0 */
} UprofCallMatch;

/** UprofJump: a jump that may leave a function */
typedef struct {
    uint64_t target;
    bool is_short; /* reaches near code only */
} UprofJump;

/** UprofCallInsns: a row: the instructions of a family */
typedef struct {
    uint8_t call_bytes_min, call_bytes_max; /* of an instruction that calls */
    uint8_t insn_align;                     /* bytes */
    /*
     * @code: the @len bytes before @pc, at most @call_bytes_max
     * @word_bytes: 8 for 64-bit code, 4 for 32-bit code
     * @match: (out)
     */
    void (*match_call)(const uint8_t *code, unsigned len, uint64_t pc, unsigned word_bytes,
                       UprofCallMatch *match);
    /* @code: %UPROF_JUMP_BYTES_MAX bytes at @pc. Returns: false if they are not a jump */
    bool (*read_jump)(const uint8_t *code, uint64_t pc, UprofJump *jump);
    /*
     * Calls to another library, and to exported functions of the own one, go to a stub that jumps
     * by a pointer.
     * @pointer: (out): address of this pointer
     * Returns: false if there is no stub at @target
     */
    bool (*find_stub_pointer)(const UprofUnwindContext *context, uint64_t target,
                              uint64_t *pointer);
} UprofCallInsns;

extern const UprofCallInsns uprof_call_insns_x86;
extern const UprofCallInsns uprof_call_insns_aarch64;

/** uprof_call_insns: Returns: (transfer none): those of the guest's code */
const UprofCallInsns *uprof_call_insns(const UprofUnwindContext *context);

/** uprof_call_before: @target: (out): of a direct call; else undefined */
UprofCall uprof_call_before(const UprofUnwindContext *context, uint64_t pc, uint64_t *target);
