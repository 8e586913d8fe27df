/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * unwind.h - from a snapshot to the program counters of its stack
 *
 * Asks the unwinders in turn, one frame at a time, and owns the limits: depth,
 * a stack pointer that only rises, return addresses that lie in code. The
 * guest wrote the stack and may have meant harm, so every stack ends, and says
 * why. Reads the snapshot's windows, and of guest memory only code, remembered.
 *
 * An unwinder is one `step` in a file of its own, and a row in unwind.c. There
 * are frame pointers (fp.c) and, for the innermost frame, the edges of functions
 * (leaf-x86_64.c); the tables of CFI (cfi.c, expr.c) and of a Linux kernel
 * (orc.c) join them here.
 */
#pragma once

#include "uprof/sym.h"

enum {
    UPROF_DEPTH_MAX = 1024,
    UPROF_DEPTH_DEFAULT = 127,
    UPROF_FRAME_BYTES_MAX = UPROF_SNAPSHOT_BYTES_MAX,
};

/**
 * UprofStep: what an unwinder says of one frame
 * @UPROF_STEP_OK: the registers are its caller's now
 * @UPROF_STEP_PASS: not my business; ask the next
 * @UPROF_STEP_BASE: nobody called it
 * @UPROF_STEP_CUT: what is needed was not copied
 * @UPROF_STEP_LOST: what is there cannot be a stack
 */
typedef enum {
    UPROF_STEP_OK,
    UPROF_STEP_PASS,
    UPROF_STEP_BASE,
    UPROF_STEP_CUT,
    UPROF_STEP_LOST,
} UprofStep;

/** UprofEnd: why a stack ends where it does */
typedef enum {
    UPROF_END_BASE,    /* complete */
    UPROF_END_WINDOW,  /* beyond what was copied */
    UPROF_END_DEPTH,   /* more frames than asked for */
    UPROF_END_RECORD,  /* no plausible frame record */
    UPROF_END_CODE,    /* a return address that lies in no code */
    UPROF_END_NO_RULE, /* no unwinder for this code */
    UPROF_N_ENDS,
} UprofEnd;

/** UprofHow: how a frame was found */
typedef enum {
    UPROF_HOW_PC, /* the innermost: the program counter itself */
    UPROF_HOW_FP,
    UPROF_HOW_CFI,
    UPROF_HOW_LEAF,
} UprofHow;

/**
 * UprofFrame:
 * @is_return: @pc is a return address: the call stands before it
 */
typedef struct {
    uint64_t pc;
    UprofHow how;
    bool is_return;
} UprofFrame;

/**
 * UprofStack: innermost frame first
 * @top_sp: stack pointer of the outermost frame: as far as the stack was read
 */
typedef struct {
    unsigned n;
    UprofEnd end;
    uint64_t top_sp;
    UprofFrame frames[UPROF_DEPTH_MAX];
} UprofStack;

/**
 * UprofUnwindContext: all of it borrowed
 * @max_depth: 1 to %UPROF_DEPTH_MAX
 */
typedef struct {
    const UprofSnapshot *snapshot;
    UprofMem *mem;
    UprofSym *sym;
    unsigned max_depth;
} UprofUnwindContext;

/**
 * uprof_unwind:
 * @stack: (out): at least one frame
 *
 * Allocates nothing but remembered pages and cannot fail: half a stack is
 * still a sample.
 */
void uprof_unwind(const UprofUnwindContext *context, UprofStack *stack);

/** uprof_unwind_is_complete: Returns: whether the stack reaches its root */
bool uprof_unwind_is_complete(const UprofStack *stack);

/** uprof_end_name: Returns: the reason in words */
const char *uprof_end_name(UprofEnd end);

/**
 * uprof_unwind_is_idle:
 *
 * Returns: whether the vCPU waits at an instruction made for waiting: the one
 *   before its program counter is HLT or MWAIT
 */
bool uprof_unwind_is_idle(const UprofUnwindContext *context);

/**
 * uprof_fp_step:
 * @context: of which the snapshot is used
 * @frame: (inout): a frame's registers; its caller's on %UPROF_STEP_OK, else untouched
 *
 * Follows one saved frame pointer.
 *
 * The guest wrote it and may have meant harm: the record it points at must be
 * aligned, lie above the frame's stack pointer by no more than
 * %UPROF_FRAME_BYTES_MAX bytes, and within what was copied.
 */
UprofStep uprof_fp_step(const UprofUnwindContext *context, UprofRegs *frame);
