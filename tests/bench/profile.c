/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * bench-profile [SAMPLES [STACKS]]: measures the counting of samples, and the writing of each
 * format. The text format of perf is left out, because its size grows with every sample. Prints
 * milliseconds, and the peak of memory so far.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "uprof/clock.h"
#include "uprof/output.h"

enum { SAMPLES = 1000 * 1000, STACKS = 100 * 1000, DEPTH = 24, NAMES = 20 * 1000, DEPTH_MIN = 8 };

/* Returns: pseudo-random numbers, the same in every run */
static uint64_t
next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

static void
say(const char *what, uint64_t since_ns, size_t bytes)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    printf("%-12s %6u ms %8u kB written %6u MiB at most\n", what,
           (unsigned)((uprof_clock_now_ns() - since_ns) / UPROF_NS_PER_MS),
           (unsigned)(bytes / 1000), (unsigned)(usage.ru_maxrss / 1024));
}

/* Makes stack @number. Neighbors share their callers, as in real programs. */
static unsigned
make_stack(const UprofName *const *names, uint64_t number, const UprofName **frames)
{
    uint64_t state = number * 7919;
    const unsigned n = DEPTH_MIN + (unsigned)(next_random(&state) % (DEPTH - DEPTH_MIN));

    for (unsigned i = 0; i < n; i++) {
        const unsigned shared = i * 2 < 32 ? 32 - i * 2 : 0;
        uint64_t place = (number >> MIN(shared, 17)) * 31 + i;
        frames[i] = names[next_random(&place) % NAMES];
    }
    return n;
}

static void
fold(UprofProfile *profile, UprofNames *names, unsigned n_samples, unsigned n_stacks)
{
    g_autofree const UprofName **all = g_new(const UprofName *, NAMES);
    const UprofName *frames[DEPTH];
    uint64_t state = 1;

    for (unsigned i = 0; i < NAMES; i++) {
        g_autofree char *text = g_strdup_printf("module_%u::function_%u(int, char)", i % 97, i);
        all[i] = uprof_names_intern(names, (UprofSlice){ text, strlen(text) });
    }
    uprof_profile_keep_times(profile);
    for (unsigned i = 0; i < n_samples; i++) {
        const uint64_t number = i < n_stacks ? i : next_random(&state) % n_stacks;
        const unsigned n = make_stack(all, number, frames);
        uprof_profile_add_tick(
            profile, frames, n,
            (UprofTick){ .time_ns = i * UPROF_NS_PER_MS, .count = 1, .weight = 1 }, true);
    }
}

static void
write_format(const UprofFormat *format, const UprofProfile *profile, const UprofRun *run)
{
    const uint64_t since_ns = uprof_clock_now_ns();
    GString *text = uprof_output_render(format, profile, run);

    say(format->name, since_ns, text->len);
    g_string_free(text, TRUE);
}

int
main(int argc, char **argv)
{
    const unsigned n_samples = argc > 1 ? (unsigned)g_ascii_strtoull(argv[1], NULL, 10) : SAMPLES;
    const unsigned n_stacks = argc > 2 ? (unsigned)g_ascii_strtoull(argv[2], NULL, 10) : STACKS;
    const UprofFormat *const formats[] = { &uprof_format_folded, &uprof_format_folded_gz,
                                           &uprof_format_svg, &uprof_format_pprof,
                                           &uprof_format_speedscope };
    g_autoptr(UprofNames) names = uprof_names_new();
    g_autoptr(UprofRun) run = uprof_run_new();
    g_autoptr(UprofProfile) profile =
        uprof_profile_new(names, uprof_names_marker(names, "bench"), true);
    const uint64_t since_ns = uprof_clock_now_ns();

    run->domain = g_strdup("bench");
    run->samples = run->running = n_samples;
    fold(profile, names, n_samples, n_stacks);
    say("fold", since_ns, 0);
    for (size_t i = 0; i < G_N_ELEMENTS(formats); i++)
        write_format(formats[i], profile, run);
    return EXIT_SUCCESS;
}
