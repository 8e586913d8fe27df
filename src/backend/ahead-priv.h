/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * ahead-priv.h - which memory of a vCPU its next hold will be asked for
 *
 * The stacks of a vCPU that is sampled often lie in the same few pages. From what was
 * asked for lately follows a range of pages that a hold can have copied before it is
 * asked. Afterwards the stack pointer says whether the range was right.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    /* of one range: a window of 16 KiB wherever in a page it begins, and a page more */
    UPROF_AHEAD_BYTES_MAX = 24 * 1024,
};

/**
 * UprofAhead: zero: nothing is known
 * @low, @high: guest-virtual, of whole pages; what to copy; the same: nothing
 * @seen_low, @seen_high: what was asked for since the range was renewed
 * @below_sp, @len: how far below the stack pointer the last question began, and its bytes
 * @end: where a stack ended before its window did; 0: none does
 * @ends: it has done so twice; the first time perhaps it was only not mapped yet
 */
typedef struct {
    uint64_t low, high;
    uint64_t seen_low, seen_high;
    uint64_t below_sp;
    size_t len;
    uint64_t end;
    bool ends;
} UprofAhead;

/** uprof_ahead_covers: Returns: whether the range has what will be asked for with @sp */
bool uprof_ahead_covers(const UprofAhead *ahead, uint64_t sp);

/** uprof_ahead_cut: Returns: bytes of the range from @gva on, @len at most */
size_t uprof_ahead_cut(const UprofAhead *ahead, uint64_t gva, size_t len);

/** uprof_ahead_use: the range was right: @len bytes at @gva were asked for, with @sp */
void uprof_ahead_use(UprofAhead *ahead, uint64_t sp, uint64_t gva, size_t len);

/**
 * uprof_ahead_learn:
 * @got: of the @len bytes that were asked for at @gva, with @sp, those that were there
 * @renew: the range is what was asked for since the last time, and no more
 */
void
uprof_ahead_learn(UprofAhead *ahead, uint64_t sp, uint64_t gva, size_t len, size_t got, bool renew);
