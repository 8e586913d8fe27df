/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * code-cache-priv.h - facts about code, by address
 *
 * Each address has one slot, which it shares with other addresses. The address that was stored
 * last owns the slot.
 */
#pragma once

#include "kept-rules-priv.h"

/** UprofCachedCall: a return address, checked against the function that was called */
typedef struct {
    uint64_t pc;     /* the return address; 0: the slot is empty */
    uint64_t callee; /* start of the next inner frame's function */
    bool is_checked, is_agreed;
} UprofCachedCall;

/** UprofCodeTools: what follows code; all are owned by the cache */
typedef struct {
    UprofCodeText *text;
    UprofCodeWalk *walk;
    UprofCodeMemo *memo;
    UprofKeptRules *kept; /* (nullable) */
} UprofCodeTools;

/** uprof_cache_begin: call it before each stack; drops facts that may have changed */
void uprof_cache_begin(const UprofUnwindContext *context);

/** uprof_cache_call: Returns: (nullable): the slot of the pair */
UprofCachedCall *uprof_cache_call(const UprofUnwindContext *context, uint64_t pc, uint64_t callee);

/** uprof_cache_code_tools: made when they are first needed; the context must have a cache */
const UprofCodeTools *uprof_cache_code_tools(const UprofUnwindContext *context);
