/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ahead-priv.h"

#include <glib.h>

#define PAGE_BYTES UINT64_C(4096)

bool
uprof_ahead_covers(const UprofAhead *ahead, uint64_t sp)
{
    const uint64_t from = sp - ahead->below_sp;

    if (from < ahead->low || from >= ahead->high || sp >= ahead->high)
        return false;
    return ahead->len <= ahead->high - from || (ahead->ends && ahead->end <= ahead->high);
}

size_t
uprof_ahead_cut(const UprofAhead *ahead, uint64_t gva, size_t len)
{
    if (gva < ahead->low || gva >= ahead->high)
        return 0;
    return MIN(len, (size_t)(ahead->high - gva));
}

/* Two ranges as one, or the second alone if they are too far from each other. */
static void
join(uint64_t *low, uint64_t *high, uint64_t new_low, uint64_t new_high)
{
    const uint64_t first = MIN(*low, new_low), last = MAX(*high, new_high);
    const bool fits = *low < *high && last - first <= UPROF_AHEAD_BYTES_MAX;

    *low = fits ? first : new_low;
    *high = fits ? last : new_high;
}

/* The pages of @len bytes. Returns: false if they are none, or too many */
static bool
find_pages(uint64_t gva, size_t len, uint64_t *low, uint64_t *high)
{
    *low = gva - gva % PAGE_BYTES;
    *high = (gva + len + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    return len > 0 && *high > *low && *high - *low <= UPROF_AHEAD_BYTES_MAX;
}

void
uprof_ahead_use(UprofAhead *ahead, uint64_t sp, uint64_t gva, size_t len)
{
    uint64_t low, high;

    ahead->below_sp = sp - gva;
    ahead->len = len;
    if (find_pages(gva, uprof_ahead_cut(ahead, gva, len), &low, &high))
        join(&ahead->seen_low, &ahead->seen_high, low, high);
}

/* Returns: whether where the stack ends is known now: nowhere near, or here again */
static bool
learn_end(UprofAhead *ahead, uint64_t end, bool is_cut)
{
    if (!is_cut) {
        if (end > ahead->end) {
            ahead->end = 0;
            ahead->ends = false;
        }
        return true;
    }
    ahead->ends = ahead->end == end;
    ahead->end = end;
    return ahead->ends;
}

void
uprof_ahead_learn(UprofAhead *ahead, uint64_t sp, uint64_t gva, size_t len, size_t got, bool renew)
{
    uint64_t low, high;

    ahead->below_sp = sp - gva;
    ahead->len = len;
    if (!learn_end(ahead, gva + got, got < len) || !find_pages(gva, got, &low, &high)) {
        ahead->low = ahead->high = 0;
        return;
    }
    join(&ahead->seen_low, &ahead->seen_high, low, high);
    if (renew) {
        ahead->low = ahead->seen_low;
        ahead->high = ahead->seen_high;
        ahead->seen_low = ahead->seen_high = 0;
    } else {
        join(&ahead->low, &ahead->high, low, high);
    }
}
