/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * x86-insn.h - the effect of one x86 instruction on registers, stack and flow of control
 *
 * Zydis decodes the instruction. This file keeps what an unwinder needs: moves between registers,
 * sums with constants, words that are loaded and stored, and where the code goes on. It treats all
 * other instructions as writes of unknown values. It covers 32 and 64-bit code of programs and
 * kernels.
 */
#pragma once

#include "uprof/arch.h"

enum {
    UPROF_X86_INSN_BYTES_MAX = 15,
    UPROF_X86_REG_NONE = 0xff,
};

/**
 * UprofX86Kind: the effect of an instruction
 *
 * "Word" is a word of the code's mode. Distances count from the end of the instruction, in bytes.
 */
typedef enum {
    UPROF_X86_OTHER,      /* writes unknown values to the registers in @writes */
    UPROF_X86_NOP,        /* fills space */
    UPROF_X86_MARK,       /* marks a target of indirect calls and jumps: ENDBR */
    UPROF_X86_SET,        /* @to = @value */
    UPROF_X86_ADD,        /* @to = @from + @value; a move if @value is 0 */
    UPROF_X86_LOAD,       /* @to = the word at @from + @value */
    UPROF_X86_STORE,      /* @len_stored bytes at @to + @value = @from; NONE: an unknown value */
    UPROF_X86_PUSH,       /* pushes @from; NONE: an unknown value */
    UPROF_X86_POP,        /* pops @to; NONE: into memory or another register */
    UPROF_X86_ALIGN_SP,   /* rounds the stack pointer down */
    UPROF_X86_COMPARE_SP, /* compares the stack pointer with @from */
    UPROF_X86_LEAVE,      /* copies frame pointer to stack pointer, then pops the frame pointer */
    UPROF_X86_CALL,       /* @value: distance */
    UPROF_X86_CALL_ANY,   /* to an unknown address */
    UPROF_X86_JUMP,       /* @value: distance */
    UPROF_X86_BRANCH,     /* conditional; @value: distance */
    UPROF_X86_JUMP_FIXED, /* to the address in the word at a fixed place */
    UPROF_X86_JUMP_TABLE, /* to the address in a word that an index selects */
    UPROF_X86_JUMP_ANY,   /* to an unknown address */
    UPROF_X86_RETURN,     /* @value: bytes that are popped after the address */
    UPROF_X86_SYSCALL,    /* asks the kernel, which writes unknown values to @writes */
    UPROF_X86_HALT,       /* HLT */
    UPROF_X86_IRET,       /* returns to interrupted code, whose place is on the stack */
    UPROF_X86_STOP,       /* the next instruction does not follow: UD2, INT3, SYSRET */
} UprofX86Kind;

/** UprofX86Insn: registers have their DWARF numbers, as in arch.h */
typedef struct {
    UprofX86Kind kind;
    uint8_t len; /* bytes, 1 to %UPROF_X86_INSN_BYTES_MAX */
    uint8_t to, from;
    uint8_t len_stored;
    bool is_unequal;  /* a branch that is taken if the compared values differ */
    bool may_keep_sp; /* OTHER or STORE: may keep the stack pointer in another way */
    bool is_new_sp;   /* OTHER: the stack pointer becomes an address or a word of static memory */
    uint16_t writes;  /* bits of registers that get unknown values, before @kind has its effect */
    int64_t value;
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
