/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/filter.h"

#include <string.h>

/* The expressions that match one name. KNOWN alone: no expression matches. */
typedef enum { KNOWN = 1, INCLUDED = 2, EXCLUDED = 4 } Match;

typedef struct {
    const UprofFilter *filter;
    GHashTable *matches;  /* UprofName -> Match: each name is matched once */
    UprofProfile *passed; /* the stacks that pass */
    UprofRun *run;        /* (nullable): counts them */
    unsigned first;       /* the first frame below the root */
} Filtering;

bool
uprof_filter_is_empty(const UprofFilter *filter)
{
    return !filter->include && !filter->exclude && !filter->drop_idle;
}

static unsigned
match_name(const Filtering *filtering, const UprofName *name)
{
    const UprofFilter *filter = filtering->filter;
    const char *text = uprof_name_text(name);
    unsigned match = GPOINTER_TO_UINT(g_hash_table_lookup(filtering->matches, name));

    if (match == 0) {
        match = KNOWN;
        if (filter->include && g_regex_match(filter->include, text, 0, NULL))
            match |= INCLUDED;
        if (filter->exclude && g_regex_match(filter->exclude, text, 0, NULL))
            match |= EXCLUDED;
        if (filter->drop_idle && strcmp(text, "[idle]") == 0)
            match |= EXCLUDED;
        g_hash_table_insert(filtering->matches, (gpointer)name, GUINT_TO_POINTER(match));
    }
    return match;
}

static bool
lets_pass(const Filtering *filtering, const UprofName *const *frames, unsigned n)
{
    unsigned matches = 0;

    for (unsigned i = 0; i < n; i++)
        matches |= match_name(filtering, frames[i]);
    return !(matches & EXCLUDED) && (!filtering->filter->include || matches & INCLUDED);
}

static bool
is_truncation_marker(const UprofName *name)
{
    return strcmp(uprof_name_text(name), "[truncated]") == 0;
}

/* The marker is the frame below the domain, the vCPU, the cgroup or the process. */
static bool
is_truncated(const UprofName *const *frames, unsigned n)
{
    uint32_t vcpu;
    unsigned at = n > 2 && uprof_profile_level_is_vcpu(frames[1], &vcpu) ? 2 : 1;

    if (n > at + 1 && uprof_profile_level_is_cgroup(frames[at]))
        at++;

    return (n > at && is_truncation_marker(frames[at])) ||
           (n > at + 2 && is_truncation_marker(frames[at + 1]));
}

void
uprof_filter_count(UprofRun *run, const UprofName *const *frames, unsigned n, uint64_t weight)
{
    run->samples += weight;
    if (strcmp(uprof_name_text(frames[n - 1]), "[idle]") == 0) {
        run->idles += weight;
        run->idle = true;
        return;
    }
    run->running += weight;
    if (is_truncated(frames, n))
        run->truncated += weight;
}

static void
pass_stack(const UprofName *const *frames, unsigned n, uint64_t weight, void *data)
{
    const Filtering *filtering = data;

    if (!lets_pass(filtering, frames, n))
        return;
    uprof_profile_add(filtering->passed, frames + filtering->first, n - filtering->first, weight);
    if (filtering->run)
        uprof_filter_count(filtering->run, frames, n, weight);
}

static void
pass_tick(const UprofName *const *frames, unsigned n, UprofTick tick, void *data)
{
    const Filtering *filtering = data;

    if (lets_pass(filtering, frames, n))
        uprof_profile_add_tick(filtering->passed, frames + filtering->first, n - filtering->first,
                               tick, false);
}

/* Clears the facts that are only true of all samples together. */
static void
forget_totals(UprofRun *run)
{
    run->unfiltered = run->samples;
    run->samples = run->running = run->idles = run->torn = 0;
    run->complete = run->truncated = run->unknown = 0;
    run->frames = run->named = 0;
    run->by_orc = run->by_cfi = run->by_code = run->by_fp = 0;
    run->one_frame = run->calls_checked = run->calls_agreed = 0;
    run->kernel.kernel_stacks = run->kernel.kernel_complete = 0;
    run->kernel.user_stacks = run->kernel.user_complete = 0;
}

UprofProfile *
uprof_filter_apply(const UprofFilter *filter, const UprofProfile *profile, UprofRun *run)
{
    const UprofName *root = uprof_profile_root(profile);
    g_autoptr(GHashTable) matches = g_hash_table_new(NULL, NULL);
    Filtering filtering = {
        .filter = filter,
        .matches = matches,
        .passed = uprof_profile_new(uprof_profile_names(profile), root, false),
        .run = run,
        .first = root ? 1 : 0,
    };

    /* if only idle stacks are dropped, the facts of the run stay true */
    if (filter->include || filter->exclude)
        forget_totals(run);
    else
        filtering.run = NULL;
    uprof_profile_walk(profile, pass_stack, &filtering);
    if (uprof_profile_n_ticks(profile) > 0) {
        uprof_profile_keep_times(filtering.passed);
        uprof_profile_walk_ticks(profile, UPROF_PROFILE_ALL_VCPUS, pass_tick, &filtering);
        uprof_profile_add_untimed(filtering.passed, uprof_profile_n_untimed(profile));
    }
    return filtering.passed;
}
