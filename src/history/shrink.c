/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "shrink-priv.h"

#include <string.h>

enum { COUNT_BYTES = 22 }; /* blank, digits and newline at most */

typedef struct {
    uint64_t bytes_max;
    /* stacks of this weight or more are kept; those of at least half of it while there is room */
    uint64_t weight_min;
    uint64_t bytes;   /* of the lines that are kept */
    UprofProfile *to; /* gets the stacks that are kept */
    uint64_t n_lost;
} Shrinking;

static uint64_t
count_line_bytes(const UprofName *const *frames, unsigned n)
{
    uint64_t bytes = COUNT_BYTES;

    for (unsigned i = 0; i < n; i++)
        bytes += strlen(uprof_name_text(frames[i])) + 1;
    return bytes;
}

static void
measure_stack(const UprofName *const *frames, unsigned n, uint64_t weight, void *data)
{
    Shrinking *shrinking = data;

    if (weight >= shrinking->weight_min)
        shrinking->bytes += count_line_bytes(frames, n);
}

static void
copy_stack(const UprofName *const *frames, unsigned n, uint64_t weight, void *data)
{
    Shrinking *shrinking = data;
    const uint64_t bytes = count_line_bytes(frames, n);

    if (weight < shrinking->weight_min) {
        if (weight < shrinking->weight_min / 2 || shrinking->bytes + bytes > shrinking->bytes_max) {
            const UprofName *unknown =
                uprof_names_marker(uprof_profile_names(shrinking->to), "[unknown]");
            uprof_profile_add(shrinking->to, &unknown, 1, weight);
            shrinking->n_lost += weight;
            return;
        }
        shrinking->bytes += bytes;
    }
    uprof_profile_add(shrinking->to, frames + 1, n - 1, weight);
}

UprofProfile *
uprof_shrink_profile(const UprofProfile *profile, uint64_t bytes_max, uint64_t *n_lost)
{
    UprofNames *names = uprof_profile_names(profile);
    const UprofName *unknown[] = { uprof_profile_root(profile),
                                   uprof_names_marker(names, "[unknown]") };
    Shrinking shrinking = { .bytes_max = bytes_max, .weight_min = 1 };

    *n_lost = 0;
    uprof_profile_walk(profile, measure_stack, &shrinking);
    if (shrinking.bytes <= bytes_max)
        return NULL;
    do {
        shrinking.weight_min *= 2;
        shrinking.bytes = count_line_bytes(unknown, 2);
        uprof_profile_walk(profile, measure_stack, &shrinking);
    } while (shrinking.bytes > bytes_max && shrinking.weight_min <= uprof_profile_total(profile));
    shrinking.to = uprof_profile_new(names, unknown[0], true);
    uprof_profile_walk(profile, copy_stack, &shrinking);
    *n_lost = shrinking.n_lost;
    return shrinking.to;
}
