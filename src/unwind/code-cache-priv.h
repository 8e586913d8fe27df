/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * code-cache-priv.h - facts about code, by address
 *
 * Each address has one slot, which it shares with other addresses. The address that was stored
 * last owns the slot.
 */
#pragma once

#include "uprof/unwind-context.h"
#include "uprof/x86-frame.h"

/** UprofCachedFrame: the frame layout at an instruction */
typedef struct {
    uint64_t pc;   /* symbol address; 0: the slot is empty */
    bool is_known; /* @frame is valid */
    UprofX86Frame frame;
} UprofCachedFrame;

/** UprofCachedCall: a return address, checked against the function that was called */
typedef struct {
    uint64_t pc;     /* the return address; 0: the slot is empty */
    uint64_t callee; /* start of the next inner frame's function */
    bool is_checked, is_agreed;
} UprofCachedCall;

/** UprofCachedCode: the frame layouts of a complete function */
typedef struct {
    uint64_t start;         /* symbol address; 0: the slot is empty */
    uint64_t len;           /* bytes */
    unsigned word_bytes;    /* of the mode in which it was decoded */
    UprofX86Frames *frames; /* (nullable): owned */
} UprofCachedCode;

/** uprof_cache_begin: call it before each stack; drops facts that may have changed */
void uprof_cache_begin(const UprofUnwindContext *context);

/** uprof_cache_frame: Returns: (nullable): the slot of @pc; %NULL without a cache */
UprofCachedFrame *uprof_cache_frame(const UprofUnwindContext *context, uint64_t pc);

/** uprof_cache_code: Returns: (nullable): the slot of the function at @start */
UprofCachedCode *uprof_cache_code(const UprofUnwindContext *context, uint64_t start);

/** uprof_cache_call: Returns: (nullable): the slot of the pair */
UprofCachedCall *uprof_cache_call(const UprofUnwindContext *context, uint64_t pc, uint64_t callee);
