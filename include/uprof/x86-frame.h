/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * x86-frame.h - finds the caller of a function from the function's own code
 *
 * This helps if no unwind table covers the code. The analysis follows the function from its
 * start on all paths and counts the bytes on the stack. No code is run. Paths that begin behind
 * a jump through a table are assumed to begin with the stack of the jump. The analysis gives no
 * answer after data in the code, a computed stack pointer or an unseen path. Code that is
 * written to mislead the analysis gets wrong answers, so callers must check their
 * plausibility.
 */
#pragma once

#include "uprof/bytes.h"

enum { UPROF_X86_FRAME_BYTES_MAX = 16 * 1024 }; /* of a function, from its start */

/** UprofX86FramePointer: the caller's frame pointer */
typedef enum {
    UPROF_X86_FP_KEPT,  /* is in its register */
    UPROF_X86_FP_SAVED, /* is in memory */
    UPROF_X86_FP_GONE,  /* is unknown */
} UprofX86FramePointer;

/**
 * UprofX86Frame:
 *
 * The canonical frame address (CFA) is the value of the stack pointer before the call, one word
 * above the return address.
 */
typedef struct {
    bool is_root; /* sets the frame pointer to 0 without saving it; other members may be unknown */
    bool by_fp;   /* the CFA counts from the frame pointer, else from the stack pointer */
    int32_t cfa;  /* bytes from this register up to the CFA */
    UprofX86FramePointer fp;
    int32_t saved; /* bytes from the saved frame pointer up to the CFA */
} UprofX86Frame;

/** UprofX86Frames: the frames of all instructions of one function */
typedef struct _UprofX86Frames UprofX86Frames;

/**
 * uprof_x86_frames_new:
 * @code: one function from its first instruction on, not stored; only the first
 *   %UPROF_X86_FRAME_BYTES_MAX bytes are read
 * @word_bytes: 8 for 64-bit code, 4 for 32-bit code
 *
 * Takes time linear in the code: some microseconds for most functions, a millisecond for the
 * longest with many jumps back. A function whose states still change after several rounds has
 * no answers, and neither has code behind 2000 changes. The result has at most 64 KiB.
 */
UprofX86Frames *uprof_x86_frames_new(UprofSlice code, unsigned word_bytes);
void uprof_x86_frames_free(UprofX86Frames *frames);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofX86Frames, uprof_x86_frames_free)

/**
 * uprof_x86_frames_find:
 * @at: offset of any byte of an instruction
 * @frame: (out): the frame before this instruction; unchanged on failure
 *
 * Returns: false if the frame is unknown
 */
bool uprof_x86_frames_find(const UprofX86Frames *frames, size_t at, UprofX86Frame *frame);
