/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "recent-copy-priv.h"

#include <string.h>

static unsigned
count_pages(uint64_t gva, size_t len)
{
    return (unsigned)((gva % UPROF_PAGE_BYTES + len + UPROF_PAGE_BYTES - 1) / UPROF_PAGE_BYTES);
}

void
uprof_recent_copy_drop(UprofRecentCopy *recent)
{
    recent->n_pages = 0;
}

/* The spans for the entries lie behind those for the data. */
static void
keep_checks(UprofRecentCopy *recent, UprofWalkCache *walks)
{
    UprofSpan *spans = recent->spans + recent->n_runs;
    const UprofTableEntry *entries =
        uprof_walk_cache_get_entries(walks, &recent->n_entries, &recent->entry_bytes);
    size_t at = 0;

    memcpy(recent->entries, entries, recent->n_entries * sizeof(entries[0]));
    recent->n_checks = uprof_walk_cache_get_spans(walks, spans);
    for (unsigned i = 0; i < recent->n_checks; i++) {
        spans[i].into = recent->bytes + at;
        at += spans[i].len;
    }
    g_assert(at == (size_t)recent->n_entries * recent->entry_bytes);
}

void
uprof_recent_copy_keep(UprofRecentCopy *recent, UprofWalkCache *walks, uint64_t space, uint64_t gva,
                       size_t len, const UprofSpan *spans, unsigned n)
{
    const unsigned n_pages = count_pages(gva, len);
    uint64_t kept = 0;

    uprof_recent_copy_drop(recent);
    if (len == 0 || n_pages > UPROF_COPY_PAGES_MAX || n > n_pages ||
        !uprof_walk_cache_is_complete(walks))
        return;
    for (unsigned i = 0; i < n; i++) {
        const uint64_t gpa = spans[i].gpa - spans[i].gpa % UPROF_PAGE_BYTES;
        if (spans[i].missing)
            return;
        recent->runs[i].gpa = gpa;
        recent->runs[i].len = (uint64_t)count_pages(spans[i].gpa, spans[i].len) * UPROF_PAGE_BYTES;
        kept += recent->runs[i].len;
    }
    if (kept != (uint64_t)n_pages * UPROF_PAGE_BYTES)
        return;
    recent->n_runs = n;
    recent->space = space;
    recent->first = gva - gva % UPROF_PAGE_BYTES;
    recent->n_pages = n_pages;
    keep_checks(recent, walks);
}

static void
fill_spans(UprofRecentCopy *recent, uint64_t gva, uint8_t *into, size_t len)
{
    uint64_t offset = gva % UPROF_PAGE_BYTES;

    for (unsigned i = 0; i < recent->n_runs; i++) {
        const size_t part = MIN((size_t)(recent->runs[i].len - offset), len);
        recent->spans[i] = (UprofSpan){
            .gpa = recent->runs[i].gpa + offset,
            .into = into,
            .len = (uint32_t)part,
        };
        into += part;
        len -= part;
        offset = 0;
    }
}

/* Was all data read, and is every page-table entry the same? */
static bool
is_confirmed(const UprofRecentCopy *recent)
{
    for (unsigned i = 0; i < recent->n_runs + recent->n_checks; i++)
        if (recent->spans[i].missing)
            return false;
    for (unsigned i = 0; i < recent->n_entries; i++)
        if (!uprof_walk_cache_is_same_entry(&recent->entries[i],
                                            recent->bytes + (size_t)i * recent->entry_bytes,
                                            recent->entry_bytes))
            return false;
    return true;
}

bool
uprof_recent_copy_repeat(UprofRecentCopy *recent, UprofGuest *guest, UprofLane lane, uint64_t space,
                         uint64_t gva, void *into, size_t len)
{
    if (recent->n_pages == 0 || recent->space != space ||
        recent->first != gva - gva % UPROF_PAGE_BYTES || recent->n_pages != count_pages(gva, len))
        return false;
    fill_spans(recent, gva, into, len);
    uprof_guest_read(guest, lane, recent->spans, recent->n_runs + recent->n_checks);
    if (is_confirmed(recent))
        return true;
    uprof_recent_copy_drop(recent);
    return false;
}
