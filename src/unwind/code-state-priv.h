/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * code-state-priv.h - registers and stack slots while code is followed, as values of its start
 */
#pragma once

#include "code-value-priv.h"
#include "uprof/x86-insn.h"

enum {
    UPROF_CODE_REGS = 16,
    UPROF_CODE_SLOTS = 28,
};

/** UprofSpOrigin: where the stack pointer comes from */
typedef enum {
    UPROF_SP_OF_START, /* from the stack that the code was entered with */
    /* The code has replaced it without having kept the old one, and before it has called anything.
     * So nothing can return to the old stack. */
    UPROF_SP_FRESH,
    UPROF_SP_DOUBTFUL,
} UprofSpOrigin;

/** UprofCodeSlot: a word that the code has stored */
typedef struct {
    UprofValue at, value;
} UprofCodeSlot;

/** UprofCodeState: before the instruction at @pc */
typedef struct {
    uint64_t pc;
    unsigned cost;    /* of the path up to here */
    unsigned n_insns; /* on this path */
    uint8_t compared; /* 1 + the register that was compared with the stack pointer; 0: none */
    uint8_t n_slots;
    uint8_t sp_origin; /* UprofSpOrigin */
    UprofValue regs[UPROF_CODE_REGS];
    UprofCodeSlot slots[UPROF_CODE_SLOTS]; /* only @n_slots are valid */
} UprofCodeState;

/** uprof_code_saved_regs: Returns: bits of registers that functions must restore */
unsigned uprof_code_saved_regs(unsigned word_bytes);

/** uprof_code_state_init: @state: (out): all registers have their own values */
void uprof_code_state_init(UprofCodeState *state, uint64_t pc);

/** uprof_code_state_copy: copies the valid slots only */
void uprof_code_state_copy(UprofCodeState *to, const UprofCodeState *from);

/** uprof_code_state_apply: applies the effect of @insn, except for the flow of control */
void uprof_code_state_apply(UprofCodeState *state, const UprofX86Insn *insn, unsigned word_bytes);
