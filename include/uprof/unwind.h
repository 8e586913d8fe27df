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
 * are the tables of a Linux kernel (orc.c) and those of CFI (cfi.c, expr.c);
 * where there are none, what the function's own code does to the stack
 * (code-x86_64.c); where that cannot be followed, the edges of functions and
 * calls (leaf-x86_64.c), and frame pointers (fp.c).
 */
#pragma once

#include "uprof/space.h"

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
    UPROF_HOW_PC,   /* the innermost: the program counter itself */
    UPROF_HOW_FP,   /* the frame pointer's record */
    UPROF_HOW_ORC,  /* the Linux kernel's own tables */
    UPROF_HOW_CFI,  /* unwind tables */
    UPROF_HOW_LEAF, /* the function's code says that its record is not there */
} UprofHow;

/**
 * UprofFrame:
 * @place: what to ask the symbols for: @pc, or that of a module of a process
 * @is_return: @pc is a return address: the call stands before it
 */
typedef struct {
    uint64_t pc;
    uint64_t place;
    UprofHow how;
    bool is_return;
} UprofFrame;

/**
 * UprofStack: innermost frame first
 * @top_sp: stack pointer of the outermost frame: as far as the last of its stacks was read
 * @n_kernel: frames of a Linux kernel, which are innermost
 * @has_whole_kernel: and these are all of them, up to user space or to the thread's start
 */
typedef struct {
    unsigned n;
    unsigned n_kernel;
    bool has_whole_kernel;
    UprofEnd end;
    uint64_t top_sp;
    UprofFrame frames[UPROF_DEPTH_MAX];
} UprofStack;

/**
 * UprofUnwindMethod: which unwinders are asked
 * @UPROF_UNWIND_AUTO: tables, and frame pointers where there are none
 * @UPROF_UNWIND_CFI: tables only
 * @UPROF_UNWIND_FP: what is found without tables: by the function's code, and frame
 *   pointers
 */
typedef enum {
    UPROF_UNWIND_AUTO,
    UPROF_UNWIND_CFI,
    UPROF_UNWIND_FP,
} UprofUnwindMethod;

/** uprof_unwind_method: @name: (nullable): "cfi" or "fp"; all else is "auto" */
UprofUnwindMethod uprof_unwind_method(const char *name);

/**
 * UprofUnwindCache: what the guest's code says, from one stack to the next
 *
 * Dropped by itself when images come or go, the guest is reset, and after
 * %UPROF_MEM_KEEP_NS by the snapshots' time; a replay does the same.
 */
typedef struct _UprofUnwindCache UprofUnwindCache;

UprofUnwindCache *uprof_unwind_cache_new(void);
void uprof_unwind_cache_free(UprofUnwindCache *cache);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofUnwindCache, uprof_unwind_cache_free)

/**
 * UprofUnwindContext: all of it borrowed
 * @cache: (nullable): of one guest and its @sym; without it everything is found anew
 * @space: (nullable): where the guest's processes have what, begun with this snapshot
 * @method: %UPROF_UNWIND_AUTO if it is not set
 * @max_depth: 1 to %UPROF_DEPTH_MAX
 */
typedef struct {
    const UprofSnapshot *snapshot;
    UprofMem *mem;
    UprofSym *sym;
    UprofUnwindCache *cache;
    UprofSpace *space;
    UprofUnwindMethod method;
    unsigned max_depth;
} UprofUnwindContext;

/**
 * UprofCursor: a frame, while its stack is walked
 * @regs: its registers; the pc, sp and fp of @regs count, and not those in @regs.reg
 * @unknown: bits, by number: registers that nobody knows any more; those of pc
 *   and sp mean nothing, they are always known
 * @is_return: the pc is a return address: the call stands before it
 * @is_switched: the frame may be on another stack than the one it called
 *
 * The innermost frame: the snapshot's registers, and zeros.
 */
typedef struct {
    UprofRegs regs;
    uint64_t unknown;
    bool is_return;
    bool is_switched;
} UprofCursor;

/**
 * uprof_unwind:
 * @stack: (out): at least one frame
 *
 * Allocates nothing but what is remembered of pages and functions, and cannot fail:
 * half a stack is still a sample.
 */
void uprof_unwind(const UprofUnwindContext *context, UprofStack *stack);

/** uprof_unwind_is_complete: Returns: whether the stack reaches its root */
bool uprof_unwind_is_complete(const UprofStack *stack);

/**
 * uprof_unwind_check_calls:
 * @stack: that was unwound in this context
 * @n_checked: (out): return addresses in it whose code can be read
 * @n_agreed: (out): those behind a call, which, if it is direct, is one of the next
 *   frame's function, or of one that jumps there
 *
 * How right a stack is, by itself: what is no chain of calls cannot be right. What would
 * take too much to find out is not checked, if not by itself, then not this time.
 */
void uprof_unwind_check_calls(const UprofUnwindContext *context, const UprofStack *stack,
                              unsigned *n_checked, unsigned *n_agreed);

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

/**
 * uprof_cfi_step:
 * @context: of which the snapshot and the symbols are used
 * @cursor: (inout): a frame; its caller's on %UPROF_STEP_OK, else untouched
 *
 * Applies the rule that the image's unwind tables have for the frame's code
 * (.eh_frame, .debug_frame), to all registers.
 *
 * The file may have meant harm as well as the guest: expressions are bounded,
 * and all that is read is in the snapshot's windows. The caller's stack pointer
 * may be anything; whoever walks the stack has to see that it rises.
 *
 * Returns: %UPROF_STEP_PASS where there is no rule, or the rule wants a register
 *   that is not known; %UPROF_STEP_BASE where the rule says so, or there is no
 *   return address
 */
UprofStep uprof_cfi_step(const UprofUnwindContext *context, UprofCursor *cursor);

/**
 * uprof_orc_step:
 * @context: of which the snapshot and the symbols are used
 * @cursor: (inout): a frame; its caller's on %UPROF_STEP_OK, else untouched
 *
 * Applies the rule that a Linux kernel has for its own code (orc.h). It goes before
 * CFI, which is wrong where the kernel changes stacks.
 *
 * The guest wrote the rules as well as the stack, and may have meant harm: all that is
 * read is in the snapshot's windows. The caller's stack pointer may be anything, and
 * lower than the frame's if it is said to be switched; whoever walks the stack has to
 * see that it ends.
 *
 * Returns: %UPROF_STEP_PASS where there is no rule, the kernel says that it knows none, or
 *   the rule wants a register that is not known; %UPROF_STEP_BASE where the rule says so,
 *   and where user space was left
 */
UprofStep uprof_orc_step(const UprofUnwindContext *context, UprofCursor *cursor);
