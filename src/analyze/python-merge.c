/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "python-merge-priv.h"

#include <string.h>

enum { NONE = UPROF_DEPTH_MAX };

/* Returns: the frame of the stack that @place is in; NONE if there is none */
static unsigned
find_frame(const UprofStack *stack, uint64_t place)
{
    if (place == 0)
        return NONE;
    for (unsigned i = 0; i + 1 < stack->n; i++)
        if (place >= stack->frames[i].sp && place < stack->frames[i + 1].sp)
            return i;
    return NONE;
}

/*
 * Functions whose frame in the stack is not known belong to the frame of the functions that they
 * call, or else to that of the functions that call them.
 */
static void
fill_unknown(unsigned *at, unsigned n)
{
    for (unsigned i = 1; i < n; i++)
        if (at[i] == NONE)
            at[i] = at[i - 1];
    for (unsigned i = n; i-- > 1;)
        if (at[i - 1] == NONE)
            at[i - 1] = at[i];
}

/* Sorts the functions by their frames in the stack. Only the functions of a second interpreter can
 * be out of order. */
static void
sort_frames(UprofPythonMerge *merge, unsigned *at)
{
    for (unsigned i = 1; i < merge->n; i++) {
        const UprofPythonFrame frame = merge->frames[i];
        const unsigned own = at[i];
        unsigned j = i;
        for (; j > 0 && at[j - 1] > own; j--) {
            at[j] = at[j - 1];
            merge->frames[j] = merge->frames[j - 1];
        }
        at[j] = own;
        merge->frames[j] = frame;
    }
}

static bool
assign_frames(const UprofStack *stack, UprofPythonMerge *merge)
{
    unsigned at[UPROF_PYTHON_FRAMES_MAX] = { NONE };

    for (unsigned i = 0; i < merge->n; i++)
        at[i] = i > 0 && merge->frames[i].place == merge->frames[i - 1].place
                    ? at[i - 1]
                    : find_frame(stack, merge->frames[i].place);
    fill_unknown(at, merge->n);
    if (at[0] == NONE)
        return false;
    sort_frames(merge, at);
    memset(merge->count, 0, stack->n * sizeof(merge->count[0]));
    for (unsigned i = 0; i < merge->n; i++)
        if (merge->count[at[i]]++ == 0)
            merge->first[at[i]] = (uint16_t)i;
    merge->innermost = at[0];
    return true;
}

bool
uprof_python_merge_find(UprofRuntimes *runtimes, const UprofStack *stack, bool with_lines,
                        UprofPythonMerge *merge)
{
    for (unsigned i = stack->n_kernel; i < stack->n; i++)
        if (uprof_runtimes_is_python(runtimes, stack->frames[i].symbol_address)) {
            merge->n = uprof_runtimes_find_python(runtimes, stack->frames[i].pc, with_lines,
                                                  merge->frames, &merge->is_cut);
            return merge->n > 0 && assign_frames(stack, merge);
        }
    return false;
}

bool
uprof_python_merge_hides(UprofRuntimes *runtimes, const UprofPythonMerge *merge,
                         const UprofStack *stack, unsigned i)
{
    return i >= merge->innermost &&
           (merge->count[i] > 0 ||
            uprof_runtimes_is_python(runtimes, stack->frames[i].symbol_address));
}
