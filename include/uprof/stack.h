/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * stack.h - the program counters of one stack
 */
#pragma once

#include "uprof/snapshot.h"

enum {
    UPROF_DEPTH_MAX = 1024,
};

/** UprofEnd: why a stack ends */
typedef enum {
    UPROF_END_BASE,    /* the stack is complete */
    UPROF_END_WINDOW,  /* the caller's frame was not copied */
    UPROF_END_DEPTH,   /* the user's limit of frames is reached */
    UPROF_END_RECORD,  /* there is no plausible frame record */
    UPROF_END_CODE,    /* a return address is not in code */
    UPROF_END_NO_RULE, /* no unwinder knows this code */
    UPROF_END_PROCESS, /* the kernel's frames are complete, but the process's own are not known */
    UPROF_N_ENDS,
} UprofEnd;

/** UprofHow: how a frame was found */
typedef enum {
    UPROF_HOW_PC,   /* the innermost frame: the program counter itself */
    UPROF_HOW_FP,   /* by the frame pointer's record */
    UPROF_HOW_ORC,  /* by the Linux kernel's own tables */
    UPROF_HOW_CFI,  /* by DWARF unwind tables */
    UPROF_HOW_CODE, /* by machine code: what it does to the stack */
} UprofHow;

/** UprofFrame: one function that runs, or waits for a call to return */
typedef struct {
    uint64_t pc;             /* guest-virtual */
    uint64_t symbol_address; /* by which sym knows @pc; see space.h */
    uint64_t sp;             /* its frame begins here; that of its caller begins where it ends */
    UprofHow how;
    bool is_return; /* @pc is a return address: the call is before it */
} UprofFrame;

/** UprofStack: the innermost frame comes first */
typedef struct {
    unsigned n;
    unsigned n_kernel; /* frames of a Linux kernel, which are innermost */
    /* the kernel's frames are complete, up to user space or to the thread's start */
    bool has_whole_kernel;
    UprofEnd end;
    uint64_t top_sp; /* stack pointer of the outermost frame */
    UprofFrame frames[UPROF_DEPTH_MAX];
} UprofStack;

/** uprof_end_name: Returns: the reason in words; literal */
const char *uprof_end_name(UprofEnd end);
