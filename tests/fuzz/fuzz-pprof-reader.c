/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fuzz.h"

#include <string.h>

#include "uprof/pprof-reader.h"

typedef struct {
    uint64_t sum;
    unsigned n;
} Seen;

static void
check_stack(const UprofSlice *frames, unsigned n, bool is_cut, uint64_t count, void *data)
{
    Seen *seen = data;

    g_assert(n > 0 && n <= UPROF_FOLDED_FRAMES_MAX && count > 0);
    g_assert(!__builtin_add_overflow(seen->sum, count, &seen->sum));
    for (unsigned i = 0; i < n; i++)
        g_assert(frames[i].len == 0 || frames[i].data);
    seen->n++;
}

void
fuzz_input(const uint8_t *data, size_t size)
{
    const UprofPprofFacts untouched = { 1, 2, 3 };
    UprofPprofFacts facts = untouched;
    Seen seen = { 0 };
    g_autoptr(GError) error = NULL;

    uprof_pprof_is((UprofSlice){ data, size });
    const bool ok =
        uprof_pprof_parse("file", (UprofSlice){ data, size }, &facts, check_stack, &seen, &error);

    check_answer(ok, error);
    g_assert(ok || seen.n == 0);
    g_assert(ok || memcmp(&facts, &untouched, sizeof(facts)) == 0);
}
