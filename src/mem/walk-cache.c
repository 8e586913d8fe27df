/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "walk-cache-priv.h"

#include <string.h>

/* Each set holds WAYS walks with the same hash. Pages of one stack rarely share a set. */
enum {
    SETS_BITS = 7,
    SETS = 1 << SETS_BITS,
    WAYS = 4,
    PAGE_LENS_MAX = 8,
    CHECKS_MAX = UPROF_CHECK_SPANS_MAX,
};

/* A remembered walk. Copies are numbered from 1. */
typedef struct {
    uint64_t space;
    uint64_t page;   /* number of the page, by its own length */
    uint64_t walked; /* number of the copy that made the walk */
    uint64_t used;   /* number of the copy that used it last; 0: the slot is empty */
    UprofWalk walk;
} Slot;

struct _UprofWalkCache {
    Slot slots[SETS][WAYS];
    uint64_t n_copies;
    /* The sizes of the pages that were found. A guest has a few sizes, and this many are kept. */
    uint64_t page_lens[PAGE_LENS_MAX];
    unsigned n_page_lens;

    /* State of the current copy. */
    bool only_own;
    bool has_walked;
    unsigned entry_bytes;
    unsigned n_unchecked;
    unsigned n_checks;
    unsigned
        last_len; /* index of the page length found last: the next page probably has the same */
    Slot *unchecked[UPROF_COPY_PAGES_MAX]; /* used, but walked by an earlier copy */
    UprofTableEntry checks[CHECKS_MAX];    /* entries of these walks, by address */
    uint8_t bytes[CHECKS_MAX * 8];         /* the same entries, as read again */
};

UprofWalkCache *
uprof_walk_cache_new(void)
{
    UprofWalkCache *cache = g_new(UprofWalkCache, 1);

    /* The host allocates the pages here, so that no page fault happens in a hold. */
    memset(cache, 0, sizeof(*cache));
    return cache;
}

void
uprof_walk_cache_free(UprofWalkCache *cache)
{
    g_free(cache);
}

void
uprof_walk_cache_forget(UprofWalkCache *cache)
{
    memset(cache->slots, 0, sizeof(cache->slots));
    cache->n_page_lens = 0;
}

void
uprof_walk_cache_begin_copy(UprofWalkCache *cache)
{
    cache->n_copies++;
    cache->only_own = false;
    cache->has_walked = false;
    cache->n_unchecked = 0;
    cache->n_checks = 0;
}

static Slot *
find_set(UprofWalkCache *cache, uint64_t space, uint64_t page)
{
    const uint64_t golden = UINT64_C(0x9e3779b97f4a7c15); /* 2^64 / golden ratio: Knuth, 6.4 */

    return cache->slots[(space * golden + page) * golden >> (64 - SETS_BITS)];
}

/* Returns: (nullable): the slot of @gva's page, if its length is @page_len */
static Slot *
find_slot(UprofWalkCache *cache, uint64_t space, uint64_t gva, uint64_t page_len)
{
    const uint64_t page = gva / page_len;
    Slot *set = find_set(cache, space, page);

    for (unsigned i = 0; i < WAYS; i++)
        if (set[i].walk.page_len == page_len && set[i].page == page && set[i].space == space)
            return &set[i];
    return NULL;
}

static Slot *
find_oldest(Slot *set)
{
    Slot *oldest = &set[0];

    for (unsigned i = 1; i < WAYS; i++)
        if (set[i].used < oldest->used)
            oldest = &set[i];
    return oldest;
}

static bool
is_same_entry(uint64_t before, uint64_t after)
{
    return ((before ^ after) & ~UPROF_ENTRY_VOLATILE) == 0;
}

/* Sorted by address, without repeats: walks of one stack share their upper entries. */
static void
add_check(UprofWalkCache *cache, const UprofTableEntry *entry)
{
    unsigned at = cache->n_checks;

    while (at > 0 && cache->checks[at - 1].gpa > entry->gpa)
        at--;
    for (unsigned i = at; i > 0 && cache->checks[i - 1].gpa == entry->gpa; i--)
        if (is_same_entry(cache->checks[i - 1].value, entry->value))
            return;
    g_assert(cache->n_checks < CHECKS_MAX);
    memmove(&cache->checks[at + 1], &cache->checks[at],
            (cache->n_checks - at) * sizeof(cache->checks[0]));
    cache->checks[at] = *entry;
    cache->n_checks++;
}

static void
add_unchecked(UprofWalkCache *cache, Slot *slot)
{
    g_assert(cache->n_unchecked < UPROF_COPY_PAGES_MAX);
    cache->unchecked[cache->n_unchecked++] = slot;
    cache->entry_bytes = slot->walk.entry_bytes;
    for (unsigned i = 0; i < slot->walk.n_entries; i++)
        add_check(cache, &slot->walk.entries[i]);
}

bool
uprof_walk_cache_find(UprofWalkCache *cache, uint64_t space, uint64_t gva, UprofWalk *walk)
{
    for (unsigned i = 0; i < cache->n_page_lens; i++) {
        const unsigned n_len = (cache->last_len + i) % cache->n_page_lens;
        Slot *slot = find_slot(cache, space, gva, cache->page_lens[n_len]);
        const bool is_own = slot && slot->walked == cache->n_copies;
        if (!slot || (cache->only_own && !is_own))
            continue;
        if (!is_own)
            add_unchecked(cache, slot);
        slot->used = cache->n_copies;
        cache->last_len = n_len;
        *walk = slot->walk;
        return true;
    }
    return false;
}

/* Returns: false if the guest has had pages of too many sizes */
static bool
note_page_len(UprofWalkCache *cache, uint64_t page_len)
{
    for (unsigned i = 0; i < cache->n_page_lens; i++)
        if (cache->page_lens[i] == page_len)
            return true;
    if (cache->n_page_lens == PAGE_LENS_MAX)
        return false;
    cache->page_lens[cache->n_page_lens++] = page_len;
    return true;
}

void
uprof_walk_cache_keep(UprofWalkCache *cache, uint64_t space, uint64_t gva, const UprofWalk *walk)
{
    cache->has_walked = true;
    /* A walk without entries costs nothing, and a cut one cannot be checked. */
    if (walk->n_entries == 0 || walk->cut || !note_page_len(cache, walk->page_len))
        return;
    const uint64_t page = gva / walk->page_len;
    Slot *slot = find_slot(cache, space, gva, walk->page_len);
    if (!slot)
        slot = find_oldest(find_set(cache, space, page));
    *slot = (Slot){
        .space = space,
        .page = page,
        .walked = cache->n_copies,
        .used = cache->n_copies,
        .walk = *walk,
    };
}

unsigned
uprof_walk_cache_get_spans(UprofWalkCache *cache, UprofSpan *spans)
{
    const unsigned len = cache->entry_bytes;
    unsigned n = 0;

    for (unsigned i = 0; i < cache->n_checks; i++) {
        const uint64_t gpa = cache->checks[i].gpa;
        UprofSpan *last = n > 0 ? &spans[n - 1] : NULL;
        /* Not across pages: they may lie in different RAM. */
        if (last && last->gpa + last->len == gpa && gpa % UPROF_PAGE_BYTES != 0)
            last->len += len;
        else
            spans[n++] = (UprofSpan){ .gpa = gpa, .into = cache->bytes + i * len, .len = len };
    }
    return n;
}

const UprofTableEntry *
uprof_walk_cache_get_entries(const UprofWalkCache *cache, unsigned *n, unsigned *entry_bytes)
{
    *n = cache->n_checks;
    *entry_bytes = cache->entry_bytes;
    return cache->checks;
}

bool
uprof_walk_cache_is_complete(const UprofWalkCache *cache)
{
    return !cache->has_walked;
}

bool
uprof_walk_cache_is_same_entry(const UprofTableEntry *entry, const uint8_t *bytes,
                               unsigned entry_bytes)
{
    uint64_t now = 0;

    memcpy(&now, bytes, entry_bytes);
    return is_same_entry(entry->value, GUINT64_FROM_LE(now));
}

static bool
are_entries_same(const UprofWalkCache *cache, const UprofSpan *spans, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (spans[i].missing)
            return false;
    for (unsigned i = 0; i < cache->n_checks; i++)
        if (!uprof_walk_cache_is_same_entry(&cache->checks[i],
                                            cache->bytes + (size_t)i * cache->entry_bytes,
                                            cache->entry_bytes))
            return false;
    return true;
}

bool
uprof_walk_cache_check(UprofWalkCache *cache, const UprofSpan *spans, unsigned n)
{
    const bool same = are_entries_same(cache, spans, n);

    /* A slot that now has a walk of this copy stays, because this walk is right. */
    for (unsigned i = 0; i < cache->n_unchecked && !same; i++)
        if (cache->unchecked[i]->walked != cache->n_copies)
            *cache->unchecked[i] = (Slot){ 0 };
    cache->only_own = !same;
    cache->n_unchecked = 0;
    cache->n_checks = 0;
    return same;
}
