/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * x86-insn.h - the length of an x86 instruction, and its effect on stack and frame pointer
 *
 * The decoder knows which operands follow each opcode, because lengths depend on them. It
 * knows the meaning only of instructions that change the stack pointer or the frame pointer,
 * or the flow of control. It decodes 32 and 64-bit code of user programs and kernels, up to
 * AVX-512, without 16-bit addresses.
 *
 * Format: Intel SDM, volume 2, chapter 2 (prefixes, ModR/M, SIB, VEX, EVEX) and
 * appendix A (opcode maps).
 */
#pragma once

#include "uprof/bytes.h"

enum {
    UPROF_X86_INSN_BYTES_MAX = 15,
    UPROF_X86_REG_NONE = 0xff, /* an operand that is not a register */
    /* register numbers of instructions, which differ from the numbers of DWARF */
    UPROF_X86_INSN_SP = 4,
    UPROF_X86_INSN_FP = 5,
};

/**
 * UprofX86Kind: the effect of an instruction
 *
 * Distances count from the end of the instruction, in bytes.
 */
typedef enum {
    UPROF_X86_OTHER,    /* changes neither pointer; the next instruction follows */
    UPROF_X86_PUSH,     /* pushes one word: @reg */
    UPROF_X86_POP,      /* pops one word: @reg */
    UPROF_X86_LEAVE,    /* copies frame pointer to stack pointer, then pops the frame pointer */
    UPROF_X86_CALL,     /* @value: distance of a direct call; 0 for an indirect call */
    UPROF_X86_JUMP,     /* @value: distance */
    UPROF_X86_BRANCH,   /* conditional; @value: distance */
    UPROF_X86_JUMP_ANY, /* to an unknown address */
    UPROF_X86_RETURN,  /* or another instruction after which the code does not continue, like UD2 */
    UPROF_X86_MOVE_SP, /* adds @value to the stack pointer */
    UPROF_X86_SP_FROM_FP, /* stack pointer = frame pointer + @value */
    UPROF_X86_FP_FROM_SP, /* frame pointer = stack pointer + @value */
    UPROF_X86_SAVE_FP,    /* stores the frame pointer at stack pointer + @value */
    UPROF_X86_ZERO_FP,    /* frame pointer = 0, as in the first function of a stack */
    UPROF_X86_SP_LOST,    /* writes an unknown value to the stack pointer */
    UPROF_X86_FP_LOST,    /* writes an unknown value to the frame pointer */
} UprofX86Kind;

typedef struct {
    uint8_t len; /* bytes, 1 to %UPROF_X86_INSN_BYTES_MAX */
    uint8_t reg; /* pushed or popped register, or %UPROF_X86_REG_NONE */
    UprofX86Kind kind;
    int32_t value; /* bytes; see @kind */
} UprofX86Insn;

/**
 * uprof_x86_insn:
 * @code: bytes from the start of the instruction
 * @word_bytes: 8 for 64-bit code, 4 for 32-bit code
 * @insn: (out): unchanged on failure
 *
 * Decodes one instruction.
 *
 * Returns: false if the bytes are not an instruction, or @code ends inside the instruction
 */
bool uprof_x86_insn(UprofSlice code, unsigned word_bytes, UprofX86Insn *insn);
