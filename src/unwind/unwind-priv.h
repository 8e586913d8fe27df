/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * unwind-priv.h - between unwind.c and the unwinders
 */
#pragma once

#include "uprof/unwind.h"

/** uprof_unwind_read_code: guest memory at @gva, as remembered. Returns: whether all is there */
bool
uprof_unwind_read_code(const UprofUnwindContext *context, uint64_t gva, void *into, size_t len);

/** UprofCall: the instruction before a return address */
typedef enum {
    UPROF_CALL_UNREADABLE, /* nothing is there */
    UPROF_CALL_NONE,
    UPROF_CALL_DIRECT, /* from here on there is a call */
    UPROF_CALL_INDIRECT,
} UprofCall;

/** uprof_x86_64_call_before: @target: (out): of a direct call; else undefined */
UprofCall
uprof_x86_64_call_before(const UprofUnwindContext *context, uint64_t pc, uint64_t *target);

/** uprof_unwind_place: Returns: what to ask the context's symbols for */
uint64_t uprof_unwind_place(const UprofUnwindContext *context, uint64_t pc);

/**
 * UprofFunction: @start: its first instruction; @place: the place of that; @len: bytes;
 * @is_entry: nobody called it
 */
typedef struct {
    uint64_t start;
    uint64_t place;
    uint64_t len;
    bool is_entry;
} UprofFunction;

/** uprof_unwind_function: Returns: whether it is known where the function of a frame is */
bool uprof_unwind_function(const UprofUnwindContext *context, const UprofCursor *frame,
                           UprofFunction *function);

/** uprof_unwind_read_word: Returns: false if a word of the frame's size was not copied */
bool uprof_unwind_read_word(const UprofUnwindContext *context, const UprofRegs *frame, uint64_t gva,
                            uint64_t *word);

/**
 * uprof_code_x86_64_step:
 * @cursor: (inout): a frame; its caller's on %UPROF_STEP_OK, else untouched
 * @how: (out): whether the frame pointer's record was there
 *
 * By what the function's own code does to the stack; the caller must be a call.
 */
UprofStep
uprof_code_x86_64_step(const UprofUnwindContext *context, UprofCursor *cursor, UprofHow *how);

/**
 * uprof_leaf_x86_64_step: as uprof_fp_step(), of a frame whose pc is exact, where the frame
 *   pointer may be another frame's
 */
UprofStep uprof_leaf_x86_64_step(const UprofUnwindContext *context, UprofRegs *frame);
