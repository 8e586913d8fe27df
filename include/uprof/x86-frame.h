/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * x86-frame.h - where a function's caller is, from the function's own code
 *
 * For code that no unwind table covers. The function is followed from its start
 * on all ways through it, counting what it pushes; nothing is run. Ways through
 * a table of jumps are taken to begin as the jump found the stack. What cannot be
 * followed (data in the code, a stack pointer that is computed, ways that nobody
 * sees) has no answer rather than a wrong one, but code that was written to
 * mislead gets one: whoever uses it must see whether it makes sense.
 */
#pragma once

#include "uprof/bytes.h"

enum { UPROF_X86_FRAME_BYTES_MAX = 16 * 1024 }; /* of a function, from its start */

/** UprofX86FramePointer: what the caller's frame pointer is */
typedef enum {
    UPROF_X86_FP_KEPT,  /* in its register still, or again */
    UPROF_X86_FP_SAVED, /* in memory */
    UPROF_X86_FP_GONE,  /* nobody knows */
} UprofX86FramePointer;

/**
 * UprofX86Frame: with the canonical frame address (CFA), which is what the stack
 *   pointer was before the call, one word above the return address
 * @is_root: nobody called it: it has set the frame pointer to 0, and kept none for a
 *   caller; of the others nothing may be known then
 * @by_fp: the CFA is counted from the frame pointer, else from the stack pointer
 * @cfa: bytes from that register up to the CFA
 * @saved: bytes from the saved frame pointer up to the CFA
 */
typedef struct {
    bool is_root;
    bool by_fp;
    int32_t cfa;
    UprofX86FramePointer fp;
    int32_t saved;
} UprofX86Frame;

/** UprofX86Frames: of all instructions of one function */
typedef struct _UprofX86Frames UprofX86Frames;

/**
 * uprof_x86_frames_new:
 * @code: of one function, from its first instruction on, not kept; of longer ones than
 *   %UPROF_X86_FRAME_BYTES_MAX as much is looked at
 * @word_bytes: 8 or 4: of 64 or 32-bit code
 *
 * Takes time linear in the code: some microseconds for most functions, a
 * millisecond for the longest with many jumps back. What it has not understood to
 * the end after a few rounds it does not know, nor what is behind some 2000 changes;
 * so it never keeps more than 64 KiB.
 */
UprofX86Frames *uprof_x86_frames_new(UprofSlice code, unsigned word_bytes);
void uprof_x86_frames_free(UprofX86Frames *frames);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofX86Frames, uprof_x86_frames_free)

/**
 * uprof_x86_frames_find:
 * @at: a byte of an instruction; what holds before that instruction is wanted
 *
 * Returns: false if it is not known
 */
bool uprof_x86_frames_find(const UprofX86Frames *frames, size_t at, UprofX86Frame *frame);
