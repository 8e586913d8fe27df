/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Debug information of an ELF file, as libdw reads it. In the program a process without rights reads
 * it; here the target does, so that a crash shows where.
 *
 * The seeds are a program of twenty lines with functions inside each other, by gcc and clang, with
 * DWARF of versions 3 to 5, packed, and split into two files.
 */
#include "fuzz.h"

#include <string.h>

#include "uprof/child.h"
#include "../../src/sym/lines-priv.h"

enum { ADDRESSES = 64, FIRST = 0x400080, SECOND = 0x401000, STEP = 5 };

/* libdw keeps tables of all entries that it has read. */
FuzzBounds
fuzz_bounds(void)
{
    return (FuzzBounds){
        .base_ms = 200,
        .us_per_kib = 50 * 1000,
        .base_kib = 4 * 1024,
        .bytes_per_byte = 1024,
        .n_mutations = 200,
    };
}

struct _UprofChildOutput {
    GByteArray *answer;
    size_t answer_max;
};

void
uprof_child_put(UprofChildOutput *output, const void *bytes, size_t len)
{
    if (output->answer->len + len <= output->answer_max)
        g_byte_array_append(output->answer, bytes, (guint)len);
}

GByteArray *
uprof_child_run(const UprofChildPlan *plan, UprofChildEnd *end, GError **error)
{
    UprofChildOutput output = { g_byte_array_new(), plan->answer_max };

    *end = UPROF_CHILD_DONE;
    plan->work(&output, plan->data);
    return output.answer;
}

void
fuzz_input(const uint8_t *data, size_t size)
{
    uint64_t addresses[ADDRESSES];
    const UprofLineFrame *frames;
    g_autofree char *why = NULL;

    for (unsigned i = 0; i < ADDRESSES; i++)
        addresses[i] = i < ADDRESSES / 2 ? FIRST + i * STEP : SECOND + i * STEP;
    g_autoptr(UprofLines) lines =
        uprof_lines_read((UprofSlice){ data, size }, addresses, ADDRESSES, &why);
    for (unsigned i = 0; i < ADDRESSES; i++) {
        const unsigned n = uprof_lines_get(lines, i, &frames);
        g_assert(n <= UPROF_LINES_FRAMES_MAX);
        for (unsigned j = 0; j < n; j++)
            g_assert(frames[j].name.len == 0 || frames[j].name.data);
    }
}
