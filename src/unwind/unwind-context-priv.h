/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * unwind-context-priv.h - the interface of unwinders, and functions that they share
 */
#pragma once

#include "uprof/stack.h"
#include "uprof/unwind-context.h"

enum {
    UPROF_STACK_SWITCHES_MAX = 6, /* to a stack at lower addresses */
    UPROF_FRAME_BYTES_MAX = UPROF_SNAPSHOT_BYTES_MAX,
};

/** UprofStep: an unwinder's answer for one frame */
typedef enum {
    UPROF_STEP_OK,      /* the cursor is at the caller now */
    UPROF_STEP_PASS,    /* this unwinder cannot find the caller; ask the next one */
    UPROF_STEP_BASE,    /* the frame has no caller */
    UPROF_STEP_CUT,     /* the caller's frame was not copied */
    UPROF_STEP_LOST,    /* the memory there cannot be a stack */
    UPROF_STEP_PROCESS, /* the caller is in a process, whose stack was not copied */
} UprofStep;

/**
 * UprofCursor: a frame, while its stack is walked
 *
 * The innermost frame has the registers of the snapshot; all other members are 0.
 */
typedef struct {
    /* The pc, sp and fp are here, not in @regs.reg. */
    UprofRegs regs;
    /*
     * Bits by register number: registers with unknown values. The pc is always known. So is the sp
     * on x86. On aarch64 a frame record tells only that the sp is not lower.
     */
    uint64_t unknown;
    UprofHow how;     /* how the frame was found */
    bool is_return;   /* the pc is a return address: the call is before it */
    bool is_switched; /* the frame may be on another stack than the frame it called */
} UprofCursor;

/**
 * UprofStepFunc: an unwinder
 * @cursor: (inout): a frame; its caller on %UPROF_STEP_OK, else untouched
 *
 * Reads the snapshot's windows, and code. Allocates only facts about code that are remembered. The
 * caller's stack pointer may have any value; unwind.c checks that the stack pointer rises.
 */
typedef UprofStep UprofStepFunc(const UprofUnwindContext *context, UprofCursor *cursor);

/** uprof_unwind_tables: Returns: registers with the page tables of the code that ran; borrowed */
const UprofRegs *uprof_unwind_tables(const UprofUnwindContext *context);

/** uprof_unwind_read_code: false unless all @len bytes at @gva can be read */
bool
uprof_unwind_read_code(const UprofUnwindContext *context, uint64_t gva, void *into, size_t len);

/** uprof_unwind_read_word: false if a word of the frame's size at @gva was not copied */
bool uprof_unwind_read_word(const UprofUnwindContext *context, const UprofRegs *frame, uint64_t gva,
                            uint64_t *word);

/** uprof_unwind_symbol_address: Returns: the address by which the context's symbols know @pc */
uint64_t uprof_unwind_symbol_address(const UprofUnwindContext *context, uint64_t pc);

/** UprofFunction: the function of a frame */
typedef struct {
    uint64_t start;          /* its first instruction, guest-virtual */
    uint64_t symbol_address; /* of @start */
    uint64_t len;            /* bytes */
    bool is_entry;           /* the image begins to run in this function, which has no caller */
} UprofFunction;

/** uprof_unwind_function: @function: (out). Returns: false if the function is not known */
bool uprof_unwind_function(const UprofUnwindContext *context, const UprofCursor *frame,
                           UprofFunction *function);
