/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fit-priv.h"

#include <string.h>

enum { COUNT_BYTES = 22 }; /* blank, digits and newline at most */

/**
 * Fitting:
 * @least: stacks that were seen as often are kept, and of those half as often what has room
 * @bytes: of what is kept, as lines
 */
typedef struct {
    uint64_t bytes_max;
    uint64_t least;
    uint64_t bytes;
    UprofProfile *to;
    uint64_t n_lost;
} Fitting;

static uint64_t
size_of(const UprofName *const *frames, unsigned n)
{
    uint64_t bytes = COUNT_BYTES;

    for (unsigned i = 0; i < n; i++)
        bytes += strlen(uprof_name_text(frames[i])) + 1;
    return bytes;
}

static void
measure(const UprofName *const *frames, unsigned n, uint64_t weight, void *data)
{
    Fitting *fitting = data;

    if (weight >= fitting->least)
        fitting->bytes += size_of(frames, n);
}

static void
copy(const UprofName *const *frames, unsigned n, uint64_t weight, void *data)
{
    Fitting *fitting = data;
    const uint64_t bytes = size_of(frames, n);

    if (weight < fitting->least) {
        if (weight < fitting->least / 2 || fitting->bytes + bytes > fitting->bytes_max) {
            const UprofName *unknown =
                uprof_names_marker(uprof_profile_names(fitting->to), "[unknown]");
            uprof_profile_add(fitting->to, &unknown, 1, weight);
            fitting->n_lost += weight;
            return;
        }
        fitting->bytes += bytes;
    }
    uprof_profile_add(fitting->to, frames + 1, n - 1, weight);
}

UprofProfile *
uprof_fit_profile(const UprofProfile *profile, uint64_t bytes_max, uint64_t *n_lost)
{
    UprofNames *names = uprof_profile_names(profile);
    const UprofName *unknown[] = { uprof_profile_root(profile),
                                   uprof_names_marker(names, "[unknown]") };
    Fitting fitting = { .bytes_max = bytes_max, .least = 1 };

    *n_lost = 0;
    uprof_profile_walk(profile, measure, &fitting);
    if (fitting.bytes <= bytes_max)
        return NULL;
    do {
        fitting.least *= 2;
        fitting.bytes = size_of(unknown, 2);
        uprof_profile_walk(profile, measure, &fitting);
    } while (fitting.bytes > bytes_max && fitting.least <= uprof_profile_total(profile));
    fitting.to = uprof_profile_new(names, unknown[0], true);
    uprof_profile_walk(profile, copy, &fitting);
    *n_lost = fitting.n_lost;
    return fitting.to;
}
