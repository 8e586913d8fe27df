/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * cache-priv.h - what was found out of code, by address: each address has one
 * place, and the last one that came has it
 */
#pragma once

#include "uprof/unwind.h"
#include "uprof/x86-frame.h"

/** UprofCachedFrame: @pc: of an instruction, 0: empty; @is_known: whether @frame says anything */
typedef struct {
    uint64_t pc;
    bool is_known;
    UprofX86Frame frame;
} UprofCachedFrame;

/** UprofCachedCall: @pc: a return address, 0: empty; @callee: start of the next frame's function */
typedef struct {
    uint64_t pc;
    uint64_t callee;
    bool is_checked, is_agreed;
} UprofCachedCall;

/** uprof_cache_begin: before each stack: drops what may not be true any more */
void uprof_cache_begin(const UprofUnwindContext *context);

/** uprof_cache_frame: Returns: (nullable): its place; %NULL without a cache */
UprofCachedFrame *uprof_cache_frame(const UprofUnwindContext *context, uint64_t pc);

/**
 * UprofCachedCode: @start: of a function, 0: empty; @len, @word_bytes: as it was followed
 * @frames: (nullable): what its code says
 */
typedef struct {
    uint64_t start, len;
    unsigned word_bytes;
    UprofX86Frames *frames;
} UprofCachedCode;

/** uprof_cache_code: Returns: (nullable): the place of the function at @start; %NULL without a cache */
UprofCachedCode *uprof_cache_code(const UprofUnwindContext *context, uint64_t start);

/** uprof_cache_call: Returns: (nullable): the place of both; %NULL without a cache */
UprofCachedCall *uprof_cache_call(const UprofUnwindContext *context, uint64_t pc, uint64_t callee);
