/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * recent-copy-priv.h - repeats a recent copy of a vCPU's stack in one read
 *
 * Most stacks of a vCPU lie in the same pages as the previous stack. Then the spans to read are
 * known: spans of the data, and spans of the page-table entries that translate its pages. A hold
 * needs only one read and one comparison. This is as safe as the walk cache: if an
 * entry has changed, the recent copy is dropped, and the copy is made by walks.
 */
#pragma once

#include "walk-cache-priv.h"

/** UprofRecentCopy: all zeros: there is no recent copy */
typedef struct {
    uint64_t space;       /* see UprofPaging */
    uint64_t first;       /* guest-virtual address of the first page */
    unsigned n_pages;     /* of 4096 bytes; 0: there is no recent copy */
    unsigned n_runs;      /* pieces of guest-physical memory that hold the pages */
    unsigned n_checks;    /* spans for the entries */
    unsigned n_entries;   /* page-table entries */
    unsigned entry_bytes; /* 4 or 8 */
    struct {
        uint64_t gpa;
        uint64_t len;
    } runs[UPROF_COPY_PAGES_MAX];
    /* one for each run, and behind them one for each check */
    UprofSpan spans[UPROF_COPY_PAGES_MAX + UPROF_CHECK_SPANS_MAX];
    UprofTableEntry entries[UPROF_CHECK_SPANS_MAX]; /* when the copy was made */
    uint8_t bytes[UPROF_CHECK_SPANS_MAX * 8];       /* the entries, as read again */
} UprofRecentCopy;

/**
 * uprof_recent_copy_keep:
 * @walks: after a copy, before its uprof_walk_cache_check()
 * @gva, @len: the range that was copied
 * @spans: the memory that these bytes were copied from
 *
 * Drops @recent if the copy needed a walk of its own.
 */
void uprof_recent_copy_keep(UprofRecentCopy *recent, UprofWalkCache *walks, uint64_t space,
                            uint64_t gva, size_t len, const UprofSpan *spans, unsigned n);

/**
 * uprof_recent_copy_repeat:
 * @into: (out): @len bytes, undefined on failure
 *
 * Returns: false if @recent has other pages, or an entry has changed
 */
bool uprof_recent_copy_repeat(UprofRecentCopy *recent, UprofGuest *guest, UprofLane lane,
                              uint64_t space, uint64_t gva, void *into, size_t len);

/** uprof_recent_copy_drop: forgets the recent copy */
void uprof_recent_copy_drop(UprofRecentCopy *recent);
