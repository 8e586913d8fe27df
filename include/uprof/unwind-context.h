/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * unwind-context.h - the data that an unwinder may read
 */
#pragma once

#include "uprof/rule-list.h"
#include "uprof/runtimes.h"
#include "uprof/space.h"

/** UprofUnwindMethod: the unwinders to use */
typedef enum {
    UPROF_UNWIND_AUTO, /* tables; machine code if no table covers it */
    UPROF_UNWIND_CFI,  /* tables only */
    UPROF_UNWIND_FP,   /* machine code, then frame pointers */
} UprofUnwindMethod;

/**
 * UprofUnwindCache: facts about the guest's code, kept from one stack to the next
 *
 * The cache empties itself when the guest is reset. Facts about code of files are kept for a minute
 * by the snapshots' time, all other facts for %UPROF_MEM_KEEP_NS. All of this happens in a replay,
 * too. The cache has a fixed number of slots, and takes memory only for those that are used.
 */
typedef struct _UprofUnwindCache UprofUnwindCache;

UprofUnwindCache *uprof_unwind_cache_new(void);
void uprof_unwind_cache_free(UprofUnwindCache *cache);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofUnwindCache, uprof_unwind_cache_free)

/**
 * uprof_unwind_cache_keep: begins with what an earlier run of the same guest has found
 * @list: (transfer full)
 * @sym: borrowed
 *
 * Call it once, before the first stack.
 */
void uprof_unwind_cache_keep(UprofUnwindCache *cache, UprofRuleList *list, UprofSym *sym);

/** uprof_unwind_cache_pack: Returns: (transfer full) (nullable): what the code of files has shown,
 * for uprof_rule_list_parse() in a later run */
GByteArray *uprof_unwind_cache_pack(const UprofUnwindCache *cache, const UprofSym *sym);

/** UprofUnwindContext: all pointers are borrowed */
typedef struct {
    const UprofSnapshot *snapshot;
    UprofMem *mem; /* the worker's; only code is read */
    UprofSym *sym;
    UprofUnwindCache *cache; /* (nullable): of this guest and @sym */
    UprofSpace *space;       /* (nullable): begun with @snapshot */
    UprofRuntimes *runtimes; /* (nullable): the same */
    UprofUnwindMethod method;
    unsigned max_depth; /* 1 to %UPROF_DEPTH_MAX */
} UprofUnwindContext;
