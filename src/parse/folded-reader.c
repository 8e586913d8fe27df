/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/folded-reader.h"

#include <string.h>

/* Splits @line at its last blank. Returns: false if no count follows the blank */
static bool
split_count(UprofSlice line, UprofSlice *stack, uint64_t *count)
{
    const char *text = line.data;
    size_t at = line.len;

    while (at > 0 && text[at - 1] != ' ' && text[at - 1] != '\t')
        at--;
    const UprofSlice digits = { text + at, line.len - at };
    if (at == 0 || !uprof_slice_to_uint(digits, 10, 0, UINT64_MAX, count))
        return false;
    *stack = uprof_slice_trim((UprofSlice){ text, at });
    return stack->len > 0;
}

static size_t
count_frames(UprofSlice stack)
{
    const char *at = stack.data, *end = at + stack.len;
    size_t n = 1;

    while ((at = memchr(at, ';', (size_t)(end - at)))) {
        at++;
        n++;
    }
    return n;
}

/* Stores all frames, or the root and the innermost frames of a deep stack. Returns: how many */
static unsigned
split_frames(UprofSlice stack, UprofSlice *frames, bool *is_cut)
{
    const size_t n_all = count_frames(stack);
    const size_t n_omitted = n_all > UPROF_FOLDED_FRAMES_MAX ? n_all - UPROF_FOLDED_FRAMES_MAX : 0;
    UprofSlice rest = stack, frame;
    unsigned n = 0;

    for (size_t i = 0; i < n_all; i++) {
        frame = rest;
        uprof_slice_split(rest, ';', &frame, &rest);
        if (i == 0 || i > n_omitted)
            frames[n++] = frame;
    }
    *is_cut = n_omitted > 0;
    return n;
}

bool
uprof_folded_parse(const char *name, UprofSlice text, UprofFoldedVisit visit, void *data,
                   GError **error)
{
    UprofScan scan = { .name = name, .rest = text };
    g_autofree UprofSlice *frames = g_new(UprofSlice, UPROF_FOLDED_FRAMES_MAX);
    uint64_t sum = 0, count;
    UprofSlice line, stack;

    if (text.len > (size_t)UPROF_FOLDED_BYTES_MAX_MIB << 20)
        return uprof_scan_fail(&scan, error, "more than %d MiB are too many",
                               UPROF_FOLDED_BYTES_MAX_MIB);
    while (uprof_scan_line(&scan, &line)) {
        bool is_cut;
        line = uprof_slice_trim(line);
        if (line.len == 0 || uprof_slice_starts(line, "#"))
            continue;
        if (!split_count(line, &stack, &count))
            return uprof_scan_fail(&scan, error,
                                   "no folded stack: frames with ';' between them, a blank and a "
                                   "count");
        if (__builtin_add_overflow(sum, count, &sum) || sum > UPROF_FOLDED_WEIGHT_MAX)
            return uprof_scan_fail(&scan, error, "counts are too large");
        if (count == 0)
            continue;
        const unsigned n = split_frames(stack, frames, &is_cut);
        visit(frames, n, is_cut, count, data);
    }
    return true;
}
