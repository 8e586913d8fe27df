/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * code-frame-priv.h - a frame whose caller is looked for by code
 */
#pragma once

#include "code-cache-priv.h"
#include "code-memo-priv.h"

enum {
    UPROF_FRAME_STARTS_MAX = 28,      /* that are remembered */
    UPROF_FRAME_STARTS_NEAR_MAX = 12, /* of each kind */
};

/** UprofCodeFrame: all pointers are borrowed */
typedef struct {
    const UprofUnwindContext *context;
    UprofCursor *cursor;
    const UprofCodeTools *tools;
    UprofCodeFacts *facts;
    uint64_t pc;
    bool is_file;        /* the code is of a known file */
    bool is_known;       /* the code is of a known file, or of a Linux kernel */
    bool is_generated;   /* the code is of a process, but in no file */
    uint64_t start, end; /* of the function, by its symbol; 0: not known */
    bool is_deep;        /* walks are long */
    bool is_cut;         /* a return address may be in memory that was not copied */
    bool has_zero;       /* 0 is where a return address should be */
    bool is_entered;     /* from a process, which an interrupt has interrupted */
    bool has_searched;   /* for a caller, in vain or not */
    /* places where the function may begin, the nearest first */
    unsigned n_starts;
    uint64_t starts[UPROF_FRAME_STARTS_MAX];
} UprofCodeFrame;

/** UprofSlotCheck: a rule's answer for a frame */
typedef struct {
    uint64_t slot, pc; /* the return address and where it is */
} UprofSlotCheck;

/**
 * uprof_code_frame_check:
 * @check: (out): valid if true is returned
 *
 * Returns: true if there is a return address where @rule says
 */
bool
uprof_code_frame_check(UprofCodeFrame *frame, const UprofCodeRule *rule, UprofSlotCheck *check);

/** uprof_code_frame_slot: Returns: false if @rule has no answer. @slot: (out) */
bool uprof_code_frame_slot(const UprofCodeFrame *frame, const UprofCodeRule *rule, uint64_t *slot);

/** uprof_code_frame_reach: Returns: (nullable): how code gets from @start to the frame */
const UprofCodeReach *uprof_code_frame_reach(const UprofCodeFrame *frame, uint64_t start);

/** uprof_code_frame_leave: the cursor becomes the caller that @rule and @check say */
void uprof_code_frame_leave(UprofCodeFrame *frame, const UprofCodeRule *rule,
                            const UprofSlotCheck *check);

/**
 * uprof_code_frame_leave_interrupt: the cursor becomes the interrupted code
 * @rule: found by IRET
 *
 * If a process was interrupted, the cursor stays: the frame is the first one of the kernel.
 *
 * Returns: false if @rule does not lead to a frame of an interrupt
 */
bool uprof_code_frame_leave_interrupt(UprofCodeFrame *frame, const UprofCodeRule *rule);

/**
 * uprof_code_frame_scan: looks for the caller on the stack
 * @by_direct: by direct calls; else by indirect calls, with the starts of @frame
 *
 * Returns: true if the cursor is at the caller now
 */
bool uprof_code_frame_scan(UprofCodeFrame *frame, bool by_direct);
