/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * code-rule.h - how to find the caller of a frame, as machine code shows it
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
    UPROF_VALUE_LOADS_MAX = 3,
    /* Bases that are not registers: */
    UPROF_VALUE_ROUNDED_SP = 16, /* the stack pointer after it was rounded down */
    UPROF_VALUE_OTHER_SP,        /* a stack pointer of unknown origin */
    UPROF_VALUE_ZERO,
    UPROF_VALUE_UNKNOWN = 0xff,

    UPROF_CODE_SAVED_MAX = 6,  /* registers that functions restore */
    UPROF_CODE_RULES_MAX = 12, /* of one address */
};

/**
 * UprofValue: a value in terms of a frame's registers and of words in memory:
 * ((base + offset[0])* + offset[1])* + ...
 *
 * "*" loads a word. All offsets behind @n_loads are 0.
 */
typedef struct {
    uint8_t base; /* DWARF number of a register, or one of the bases above */
    uint8_t n_loads;
    int32_t offset[UPROF_VALUE_LOADS_MAX + 1];
} UprofValue;

/** UprofCodeRule: how to find the caller of a frame, in terms of the frame's registers */
typedef struct {
    UprofValue slot; /* address of the return address */
    /* registers of the caller, in the order of uprof_code_saved_reg() */
    UprofValue saved[UPROF_CODE_SAVED_MAX];
    uint16_t n_popped; /* bytes that the function pops after the return address */
    bool is_return;    /* found by a return */
    bool is_interrupt; /* found by IRET: the slot begins an interrupt frame */
    bool is_jump;      /* found by a jump to an unknown address, which may stay in the function */
} UprofCodeRule;

/** UprofCodeRole: what the code at an address says about the frame, without a walk */
typedef enum {
    UPROF_ROLE_NORMAL,
    UPROF_ROLE_ROOT,   /* the frame has no caller */
    UPROF_ROLE_SIGNAL, /* a signal has interrupted the caller, whose registers are on the stack */
} UprofCodeRole;
