/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * make-picture empty|phases|large FILE: writes a picture whose samples have times
 *
 * empty: no samples
 * phases: 4 s of two vCPUs at 100 Hz. vCPU 0 runs "first" in the first two seconds and "second" in
 * the other two. vCPU 1 halts, except in the third second. "first" is in a module.
 * large: a million samples of 100,000 stacks in 1000 s
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "uprof/clock.h"
#include "uprof/output.h"

enum {
    RATE_HZ = 100,
    PHASES_S = 4,
    STACKS = 100 * 1000,
    SAMPLES = 1000 * 1000,
    DEPTH = 16,
    NAMES = 20 * 1000
};

typedef struct {
    UprofNames *names;
    UprofProfile *profile;
    UprofRun *run;
} Made;

static void
add_sample(const Made *made, const UprofName *const *frames, unsigned n, UprofTick tick)
{
    const bool is_idle = strcmp(uprof_name_text(frames[n - 1]), "[idle]") == 0;

    tick.count = tick.weight = 1;
    uprof_profile_add_tick(made->profile, frames, n, tick, !is_idle);
    made->run->samples++;
    *(is_idle ? &made->run->idles : &made->run->running) += 1;
}

static void
add_named(const Made *made, const char *outer, const char *inner, UprofTick tick)
{
    const UprofName *const frames[] = { uprof_names_marker(made->names, outer),
                                        inner ? uprof_names_marker(made->names, inner) : NULL };

    add_sample(made, frames, inner ? 2 : 1, tick);
}

static void
make_phases(const Made *made)
{
    made->run->vcpus = 2;
    uprof_name_add_module(uprof_names_marker(made->names, "first"),
                          uprof_names_marker(made->names, "libfirst.so.1"));
    for (unsigned i = 0; i < PHASES_S * RATE_HZ; i++) {
        const unsigned second = i / RATE_HZ;
        const uint64_t time_ns = UPROF_NS_PER_S + i * (UPROF_NS_PER_S / RATE_HZ);
        add_named(made, "main", second < 2 ? "first" : "second", (UprofTick){ .time_ns = time_ns });
        add_named(made, second == 2 ? "main" : "[idle]", second == 2 ? "third" : NULL,
                  (UprofTick){ .time_ns = time_ns + 1, .vcpu = 1 });
    }
}

/* Returns: pseudo-random numbers, the same in every run */
static uint64_t
next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

/* Neighbors share their callers, as in real programs. */
static void
make_large(const Made *made)
{
    const UprofName *frames[DEPTH];
    uint64_t state = 1;

    for (unsigned i = 0; i < SAMPLES; i++) {
        const uint64_t number = i < STACKS ? i : next_random(&state) % STACKS;
        for (unsigned depth = 0; depth < DEPTH; depth++) {
            uint64_t place = (number >> (DEPTH - 1 - depth)) * DEPTH + depth;
            char name[64];
            g_snprintf(name, sizeof(name), "module::function_%u(int)",
                       (unsigned)(next_random(&place) % NAMES));
            frames[depth] = uprof_names_marker(made->names, name);
        }
        add_sample(made, frames, DEPTH, (UprofTick){ .time_ns = i * UPROF_NS_PER_MS });
    }
}

int
main(int argc, char **argv)
{
    static const char *const kinds[] = { "empty", "phases", "large", NULL };

    if (argc != 3 || !g_strv_contains(kinds, argv[1])) {
        fprintf(stderr, "usage: make-picture empty|phases|large FILE\n");
        return 2;
    }
    UprofNames *names = uprof_names_new();
    const Made made = {
        .names = names,
        .profile = uprof_profile_new(names, uprof_names_marker(names, "vm"), false),
        .run = uprof_run_new(),
    };
    uprof_profile_keep_times(made.profile);
    made.run->domain = g_strdup("vm");
    made.run->rate_mhz = RATE_HZ * 1000;
    if (strcmp(argv[1], "phases") == 0)
        make_phases(&made);
    else if (strcmp(argv[1], "large") == 0)
        make_large(&made);
    GString *text = uprof_output_render(&uprof_format_svg, made.profile, made.run);
    const bool is_written = g_file_set_contents(argv[2], text->str, (gssize)text->len, NULL);
    g_string_free(text, TRUE);
    uprof_profile_free(made.profile);
    uprof_run_free(made.run);
    uprof_names_free(made.names);
    return is_written ? 0 : 1;
}
