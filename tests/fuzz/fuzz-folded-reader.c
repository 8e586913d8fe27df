/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fuzz.h"

#include "uprof/folded-reader.h"

typedef struct {
    UprofSlice text;
    uint64_t sum;
} Seen;

static void
check_stack(const UprofSlice *frames, unsigned n, bool is_cut, uint64_t count, void *data)
{
    Seen *seen = data;

    g_assert(n > 0 && n <= UPROF_FOLDED_FRAMES_MAX && count > 0);
    g_assert(!is_cut || n == UPROF_FOLDED_FRAMES_MAX);
    g_assert(!__builtin_add_overflow(seen->sum, count, &seen->sum));
    for (unsigned i = 0; i < n; i++) {
        g_assert(is_part(frames[i], seen->text));
        for (size_t j = 0; j < frames[i].len; j++)
            g_assert(((const char *)frames[i].data)[j] != ';');
    }
}

void
fuzz_input(const uint8_t *data, size_t size)
{
    Seen seen = { .text = { data, size } };
    g_autoptr(GError) error = NULL;

    const bool ok = uprof_folded_parse("file", seen.text, check_stack, &seen, &error);

    check_answer(ok, error);
}
