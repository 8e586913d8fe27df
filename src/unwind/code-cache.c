/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "code-cache-priv.h"

#include <string.h>

enum { SLOTS = 4096, FUNCTIONS = 512 };

struct _UprofUnwindCache {
    uint64_t since_ns;
    uint32_t epoch, reset;
    UprofCachedFrame frames[SLOTS];
    UprofCachedCall calls[SLOTS];
    UprofCachedCode functions[FUNCTIONS];
};

UprofUnwindCache *
uprof_unwind_cache_new(void)
{
    return g_new0(UprofUnwindCache, 1);
}

static void
drop_functions(UprofUnwindCache *cache)
{
    for (unsigned i = 0; i < FUNCTIONS; i++)
        uprof_x86_frames_free(cache->functions[i].frames);
}

void
uprof_unwind_cache_free(UprofUnwindCache *cache)
{
    if (!cache)
        return;
    drop_functions(cache);
    g_free(cache);
}

void
uprof_cache_begin(const UprofUnwindContext *context)
{
    const UprofSnapshot *snapshot = context->snapshot;
    const uint32_t epoch = uprof_sym_epoch(context->sym);
    UprofUnwindCache *cache = context->cache;

    if (!cache || (cache->epoch == epoch && cache->reset == snapshot->reset &&
                   snapshot->time_ns - cache->since_ns < UPROF_MEM_KEEP_NS))
        return;
    drop_functions(cache);
    memset(cache, 0, sizeof(*cache));
    cache->epoch = epoch;
    cache->reset = snapshot->reset;
    cache->since_ns = snapshot->time_ns;
}

static size_t
find_slot(uint64_t pc)
{
    return (pc ^ pc >> 12) % SLOTS;
}

UprofCachedFrame *
uprof_cache_frame(const UprofUnwindContext *context, uint64_t pc)
{
    return context->cache ? &context->cache->frames[find_slot(pc)] : NULL;
}

UprofCachedCall *
uprof_cache_call(const UprofUnwindContext *context, uint64_t pc, uint64_t callee)
{
    return context->cache ? &context->cache->calls[find_slot(pc ^ callee >> 4)] : NULL;
}

UprofCachedCode *
uprof_cache_code(const UprofUnwindContext *context, uint64_t start)
{
    return context->cache ? &context->cache->functions[(start >> 4 ^ start >> 13) % FUNCTIONS]
                          : NULL;
}
