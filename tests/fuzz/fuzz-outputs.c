/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * All output formats. The bits of the first byte: bit 0, names may be markers such as "[idle]"; bit
 * 1, all stacks have one root; bit 2, samples have times; bits 3 to 5, the outputs that are left
 * out. Then come a sidecar with the facts, a NUL, and folded stacks.
 */
#include "fuzz.h"

#include <string.h>

#include "check-outputs.h"
#include "uprof/folded-reader.h"
#include "uprof/sidecar.h"

enum {
    READS_BACK = 1,
    HAS_ROOT = 2,
    HAS_TIMES = 4,
    LEFT_OUT_SHIFT = 3,
    VCPUS = 3,
    TICK_NS = 1000 * 1000
};

/* Each input is written in some twenty formats and variants. Some of them contain a script. */
FuzzBounds
fuzz_bounds(void)
{
    return (FuzzBounds){
        .base_ms = 200,
        .us_per_kib = 100 * 1000,
        .base_kib = 8 * 1024,
        .bytes_per_byte = 4096,
        .n_mutations = 30,
    };
}

typedef struct {
    UprofProfile *profile;
    UprofNames *names;
    UprofRun *run;
    uint8_t flags;
    uint64_t n;
} Filling;

static const UprofName *
make_name(const Filling *filling, UprofSlice raw)
{
    return filling->flags & READS_BACK ? uprof_names_read_back(filling->names, raw)
                                       : uprof_names_intern(filling->names, raw);
}

static void
add_stack(const UprofSlice *slices, unsigned n, bool is_cut, uint64_t count, void *data)
{
    Filling *filling = data;
    const UprofName *frames[UPROF_FOLDED_FRAMES_MAX];

    for (unsigned i = 0; i < n; i++)
        frames[i] = make_name(filling, slices[i]);
    filling->run->samples += count;
    filling->n++;
    if (!(filling->flags & HAS_TIMES)) {
        uprof_profile_add(filling->profile, frames, n, count);
        return;
    }
    const UprofTick tick = {
        .time_ns = filling->n * TICK_NS,
        .vcpu = (uint32_t)filling->n % VCPUS,
        .count = (uint32_t)(count % 1000 + 1),
        .weight = (uint32_t)(count >> 10) + 1,
    };
    uprof_profile_add_tick(filling->profile, frames, n, tick, true);
}

void
fuzz_input(const uint8_t *data, size_t size)
{
    const uint8_t *end = size > 0 ? memchr(data + 1, '\0', size - 1) : NULL;

    if (!end)
        return;
    const UprofSlice facts = { data + 1, (size_t)(end - data - 1) };
    const UprofSlice text = { end + 1, size - facts.len - 2 };
    g_autoptr(UprofNames) names = uprof_names_new();
    g_autoptr(UprofRun) run = uprof_sidecar_parse("facts", facts, NULL);
    if (!run)
        run = uprof_run_new();
    const UprofName *root = uprof_names_intern(names, (UprofSlice){ "web-1", 5 });
    g_autoptr(UprofProfile) profile =
        uprof_profile_new(names, data[0] & HAS_ROOT ? root : NULL, false);
    Filling filling = { .profile = profile, .names = names, .run = run, .flags = data[0] };

    if (data[0] & HAS_TIMES)
        uprof_profile_keep_times(profile);
    uprof_folded_parse("stacks", text, add_stack, &filling, NULL);
    uprof_profile_settle(profile, root);
    check_outputs(profile, run, ~data[0] >> LEFT_OUT_SHIFT & CHECK_ALL);
}
