/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * x86-insn.h - the length of an x86 instruction, and what it does to the stack
 *
 * Knows which operands each instruction has, which is what lengths need, and
 * the meaning of those alone that move the stack pointer or the frame pointer,
 * or go elsewhere. 32 and 64-bit code, of user programs and kernels, up to
 * AVX-512; no 16-bit addresses.
 *
 * Format: Intel SDM, volume 2, chapter 2 (prefixes, ModR/M, SIB, VEX, EVEX) and
 * appendix A (opcode maps).
 */
#pragma once

#include "uprof/bytes.h"

enum {
    UPROF_X86_INSN_BYTES_MAX = 15,
    UPROF_X86_REG_NONE = 0xff, /* what is pushed is no register */
    /* numbers in instructions, which are not those of DWARF */
    UPROF_X86_INSN_SP = 4,
    UPROF_X86_INSN_FP = 5,
};

/**
 * UprofX86Kind:
 * @UPROF_X86_OTHER: moves neither pointer and goes on with the next instruction
 * @UPROF_X86_PUSH, @UPROF_X86_POP: one word; reg
 * @UPROF_X86_LEAVE: the stack pointer from the frame pointer, which is popped
 * @UPROF_X86_CALL: value is the distance if it is direct, else 0
 * @UPROF_X86_JUMP, @UPROF_X86_BRANCH: always and maybe; value is the distance
 * @UPROF_X86_JUMP_ANY: who knows where to
 * @UPROF_X86_RETURN: or anything else that nothing comes behind
 * @UPROF_X86_MOVE_SP: the stack pointer by value
 * @UPROF_X86_SP_FROM_FP: to the frame pointer + value
 * @UPROF_X86_FP_FROM_SP: the frame pointer to the stack pointer + value
 * @UPROF_X86_SAVE_FP: the frame pointer is stored at the stack pointer + value
 * @UPROF_X86_ZERO_FP: the frame pointer becomes 0, as in the first function of a stack
 * @UPROF_X86_SP_LOST, @UPROF_X86_FP_LOST: it becomes anything
 *
 * Distances count from the end of the instruction.
 */
typedef enum {
    UPROF_X86_OTHER,
    UPROF_X86_PUSH,
    UPROF_X86_POP,
    UPROF_X86_LEAVE,
    UPROF_X86_CALL,
    UPROF_X86_JUMP,
    UPROF_X86_BRANCH,
    UPROF_X86_JUMP_ANY,
    UPROF_X86_RETURN,
    UPROF_X86_MOVE_SP,
    UPROF_X86_SP_FROM_FP,
    UPROF_X86_FP_FROM_SP,
    UPROF_X86_SAVE_FP,
    UPROF_X86_ZERO_FP,
    UPROF_X86_SP_LOST,
    UPROF_X86_FP_LOST,
} UprofX86Kind;

/** UprofX86Insn: @len: bytes, 1 to %UPROF_X86_INSN_BYTES_MAX */
typedef struct {
    uint8_t len;
    uint8_t reg;
    UprofX86Kind kind;
    int32_t value;
} UprofX86Insn;

/**
 * uprof_x86_insn:
 * @code: from the instruction on
 * @word_bytes: 8 or 4: of 64 or 32-bit code
 *
 * Returns: false if there is no such instruction, or it does not end in @code
 */
bool uprof_x86_insn(UprofSlice code, unsigned word_bytes, UprofX86Insn *insn);
