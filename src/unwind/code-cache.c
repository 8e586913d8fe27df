/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "code-cache-priv.h"

#include <string.h>

enum { SLOTS = 4096 };

struct _UprofUnwindCache {
    uint64_t since_ns;
    uint32_t epoch, reset;
    UprofCachedCall calls[SLOTS];
    UprofCodeTools tools; /* (nullable) members */
    uint64_t code_since_ns;
};

UprofUnwindCache *
uprof_unwind_cache_new(void)
{
    return g_new0(UprofUnwindCache, 1);
}

void
uprof_unwind_cache_free(UprofUnwindCache *cache)
{
    if (!cache)
        return;
    uprof_code_memo_free(cache->tools.memo);
    uprof_code_walk_free(cache->tools.walk);
    uprof_code_text_free(cache->tools.text);
    uprof_kept_rules_free(cache->tools.kept);
    g_free(cache);
}

void
uprof_unwind_cache_keep(UprofUnwindCache *cache, UprofRuleList *list, UprofSym *sym)
{
    g_assert(!cache->tools.kept && !cache->tools.memo);
    cache->tools.kept = uprof_kept_rules_new(list, sym);
}

GByteArray *
uprof_unwind_cache_pack(const UprofUnwindCache *cache, const UprofSym *sym)
{
    return uprof_kept_rules_pack(cache->tools.memo, cache->tools.kept, sym);
}

/* Bytes of code are read again when memory is. Another start of the guest has other code. */
static void
refresh_code(UprofUnwindCache *cache, const UprofUnwindContext *context)
{
    const UprofSnapshot *snapshot = context->snapshot;

    if (!cache->tools.text)
        return;
    if (cache->reset != snapshot->reset)
        uprof_code_memo_forget(cache->tools.memo);
    if (cache->reset != snapshot->reset ||
        snapshot->time_ns - cache->code_since_ns >= UPROF_MEM_KEEP_NS) {
        uprof_code_text_forget(cache->tools.text);
        cache->code_since_ns = snapshot->time_ns;
    }
    uprof_code_text_begin(cache->tools.text, context);
}

void
uprof_cache_begin(const UprofUnwindContext *context)
{
    const UprofSnapshot *snapshot = context->snapshot;
    const uint32_t epoch = uprof_sym_epoch(context->sym);
    UprofUnwindCache *cache = context->cache;

    if (!cache)
        return;
    refresh_code(cache, context);
    if (cache->epoch == epoch && cache->reset == snapshot->reset &&
        snapshot->time_ns - cache->since_ns < UPROF_MEM_KEEP_NS)
        return;
    memset(cache->calls, 0, sizeof(cache->calls));
    cache->epoch = epoch;
    cache->reset = snapshot->reset;
    cache->since_ns = snapshot->time_ns;
}

UprofCachedCall *
uprof_cache_call(const UprofUnwindContext *context, uint64_t pc, uint64_t callee)
{
    const uint64_t number = pc ^ callee >> 4;

    return context->cache ? &context->cache->calls[(number ^ number >> 12) % SLOTS] : NULL;
}

const UprofCodeTools *
uprof_cache_code_tools(const UprofUnwindContext *context)
{
    UprofUnwindCache *cache = context->cache;

    if (!cache->tools.text) {
        cache->tools.text = uprof_code_text_new();
        cache->tools.walk = uprof_code_walk_new(cache->tools.text);
        cache->tools.memo = uprof_code_memo_new();
        cache->code_since_ns = context->snapshot->time_ns;
        uprof_code_text_begin(cache->tools.text, context);
    }
    return &cache->tools;
}
