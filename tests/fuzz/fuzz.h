/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * fuzz.h - the interface of a fuzz target
 *
 * A target defines fuzz_input(). bounds.c calls fuzz_input() for each input, and aborts if an input
 * uses too much time or memory. The target links with libFuzzer (-Dfuzz=true, clang), or with
 * replay.c, which feeds a corpus. Both feed many inputs to one process, so the result for an input
 * must not depend on earlier inputs.
 */
#pragma once

#include <glib.h>
#include <stdint.h>

#include "uprof/bytes.h"
#include "uprof/error.h"

/** FuzzBounds: time and memory that one input may use: a base, and more for each byte or KiB */
typedef struct {
    unsigned base_ms; /* processor time, without sanitizers */
    unsigned us_per_kib;
    unsigned base_kib; /* memory that is allocated at the same time */
    unsigned bytes_per_byte;
    unsigned n_mutations; /* mutations and prefixes of each file in a replay; 0: the default */
} FuzzBounds;

/** fuzz_bounds: the default is in bounds.c; a target that needs more defines its own */
FuzzBounds fuzz_bounds(void);

/** FuzzWorst: the highest time and the most memory of any input so far */
typedef struct {
    uint64_t time_us;
    uint64_t memory_bytes;
} FuzzWorst;

FuzzWorst fuzz_worst(void);

/** fuzz_input: feeds one input to the code under test; aborts if an answer is wrong */
void fuzz_input(const uint8_t *data, size_t size);

/** LLVMFuzzerTestOneInput: calls fuzz_input() with bounds; libFuzzer prescribes the name */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Checks that a function has set an error if and only if it failed. */
static inline void
check_answer(bool ok, const GError *error)
{
    g_assert(ok == !error);
    if (!error)
        return;
    g_assert(error->domain == UPROF_ERROR);
    g_assert(error->message[0] != '\0');
    g_assert(g_utf8_validate(error->message, -1, NULL));
}

/* Checks that @part is empty or lies inside @whole. */
static inline bool
is_part(UprofSlice part, UprofSlice whole)
{
    const uintptr_t start = (uintptr_t)whole.data, at = (uintptr_t)part.data;

    return part.len == 0 ||
           (at >= start && at - start <= whole.len && part.len <= whole.len - (at - start));
}
