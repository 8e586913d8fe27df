/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * walk-cache-priv.h - page-table walks, remembered from one copy to the next
 *
 * A stack mostly has the same address as in the last sample. So a copy reads its data from the
 * pages to which earlier walks led. The same read also fetches the entries of these walks. If the
 * entries have not changed, the data is right. Otherwise the copy is made again with new walks. A
 * remembered walk counts only after a read has confirmed it. So a wrong walk does no harm, for
 * example after a reset or in a hostile guest.
 *
 * The cache does not read guests or interpret entries, and has a fixed size.
 */
#pragma once

#include "uprof/guest.h"
#include "paging-priv.h"

enum {
    UPROF_COPY_PAGES_MAX = UPROF_SNAPSHOT_BYTES_MAX / UPROF_PAGE_BYTES + 1,
    UPROF_CHECK_SPANS_MAX = UPROF_COPY_PAGES_MAX * UPROF_WALK_LEVELS_MAX,
};

typedef struct _UprofWalkCache UprofWalkCache;

UprofWalkCache *uprof_walk_cache_new(void);
void uprof_walk_cache_free(UprofWalkCache *cache);

/** uprof_walk_cache_forget: drops all walks */
void uprof_walk_cache_forget(UprofWalkCache *cache);

/** uprof_walk_cache_begin_copy: begins a copy, which has used and made no walk yet */
void uprof_walk_cache_begin_copy(UprofWalkCache *cache);

/**
 * uprof_walk_cache_find:
 * @space: see UprofPaging
 * @gva: an address in the page
 * @walk: (out): untouched if there is none
 *
 * May be called %UPROF_COPY_PAGES_MAX times before the next uprof_walk_cache_check(), which must
 * confirm walks of earlier copies.
 *
 * Returns: false if no walk for the page is remembered
 */
bool uprof_walk_cache_find(UprofWalkCache *cache, uint64_t space, uint64_t gva, UprofWalk *walk);

/** uprof_walk_cache_keep: @walk: was just made; replaces an older walk */
void
uprof_walk_cache_keep(UprofWalkCache *cache, uint64_t space, uint64_t gva, const UprofWalk *walk);

/**
 * uprof_walk_cache_get_spans:
 * @spans: (out): room for %UPROF_CHECK_SPANS_MAX
 *
 * Lists the entries to confirm, without repeats. Neighbors in a table share a span.
 *
 * Returns: number of spans, to be read behind the data
 */
unsigned uprof_walk_cache_get_spans(UprofWalkCache *cache, UprofSpan *spans);

/**
 * uprof_walk_cache_get_entries:
 * @n: (out): how many
 * @entry_bytes: (out): 4 or 8
 *
 * Returns: (transfer none): the entries of uprof_walk_cache_get_spans(), in the same order;
 *   valid until the next copy begins
 */
const UprofTableEntry *
uprof_walk_cache_get_entries(const UprofWalkCache *cache, unsigned *n, unsigned *entry_bytes);

/** uprof_walk_cache_is_complete: has this copy made no walk of its own? */
bool uprof_walk_cache_is_complete(const UprofWalkCache *cache);

/** uprof_walk_cache_is_same_entry: do @bytes hold @entry, except for volatile bits? */
bool uprof_walk_cache_is_same_entry(const UprofTableEntry *entry, const uint8_t *bytes,
                                    unsigned entry_bytes);

/**
 * uprof_walk_cache_check:
 * @spans: of uprof_walk_cache_get_spans(), after they were read
 *
 * If an entry has changed, drops the walks of earlier copies that this copy used. After that, the
 * cache finds only this copy's own walks until the next copy begins. So a second try needs no
 * check.
 *
 * Returns: false if an entry has changed
 */
bool uprof_walk_cache_check(UprofWalkCache *cache, const UprofSpan *spans, unsigned n);
