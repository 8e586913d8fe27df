/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * code-walk-priv.h - follows code on all paths, the cheapest path first
 *
 * No code is run. A path ends where the next instruction is not known. Calls return, except for
 * calls behind which the next function begins. Code that is written to mislead gives wrong rules,
 * so callers must check what the rules lead to.
 */
#pragma once

#include "code-state-priv.h"
#include "code-text-priv.h"

enum { UPROF_CODE_EXITS_MAX = 12 };

/** uprof_code_saved_reg: Returns: register @i of a rule; %UPROF_X86_REG_NONE behind the last */
unsigned uprof_code_saved_reg(unsigned i, unsigned word_bytes);

typedef struct _UprofCodeWalk UprofCodeWalk;

/** uprof_code_walk_new: @text: borrowed; must outlive the result */
UprofCodeWalk *uprof_code_walk_new(UprofCodeText *text);
void uprof_code_walk_free(UprofCodeWalk *walk);

/** UprofCodeExits: the ways by which code leaves its function */
typedef struct {
    unsigned n;
    UprofCodeRule rules[UPROF_CODE_EXITS_MAX];
    bool has_jump;      /* the walk met a jump through a table, or to an unknown address */
    UprofValue jump_sp; /* the stack pointer at that jump */
    /* the walk met a return with a stack pointer that is not known, or not that of the start */
    bool has_other_exit;
    bool is_long; /* the walk had more to follow */
} UprofCodeExits;

/** UprofCodeBounds: the bounds of a walk */
typedef struct {
    unsigned word_bytes;
    bool is_kernel;    /* HLT does not end a path */
    uint64_t end;      /* of the function, where it is known; else 0 */
    unsigned work_max; /* instructions */
    unsigned n_exits_max;
    bool is_thorough; /* visits an instruction with several states */
} UprofCodeBounds;

/** uprof_code_walk_ahead: @exits: (out): how the code from @pc on leaves its function */
void uprof_code_walk_ahead(UprofCodeWalk *walk, const UprofCodeBounds *bounds, uint64_t pc,
                           UprofCodeExits *exits);

/** UprofCodeReach: the way from the start of a function */
typedef struct {
    bool is_reached; /* @rule is valid */
    UprofCodeRule rule;
    /* The code may be behind a jump that the walk cannot follow. @jump_rule says what holds at the
     * first such jump: often, all code behind it has the same frame. */
    bool has_jump;
    UprofCodeRule jump_rule;
    bool is_fresh_stack; /* the way begins a stack: UPROF_SP_FRESH */
    bool is_zero_fp;     /* the way sets the frame pointer to 0, without saving it */
} UprofCodeReach;

/** uprof_code_walk_from: @reach: (out): how code at @start gets to @pc */
void uprof_code_walk_from(UprofCodeWalk *walk, const UprofCodeBounds *bounds, uint64_t start,
                          uint64_t pc, UprofCodeReach *reach);

/** uprof_code_begins_function: does a function begin at @pc, or behind padding at @pc? */
bool uprof_code_begins_function(UprofCodeText *text, uint64_t pc, unsigned word_bytes);
