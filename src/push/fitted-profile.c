/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fitted-profile-priv.h"

#include "uprof/sorted.h"

#include <string.h>

/* ---- Frames ---- */

typedef struct {
    bool has_vcpus;
    const UprofName *truncated;
} Cutting;

/* A map of stacks: see UprofProfileMap. */
static unsigned
cut_stack(const UprofName *const *frames, unsigned n, const UprofName **into, void *data)
{
    const Cutting *cutting = data;
    uint32_t vcpu;
    const bool has_vcpu = n > 1 && uprof_profile_level_is_vcpu(frames[0], &vcpu);
    unsigned n_into = 0, first = has_vcpu ? 1 : 0;

    if (has_vcpu && cutting->has_vcpus)
        into[n_into++] = frames[0];
    if (n - first > UPROF_FITTED_FRAMES_MAX) {
        into[n_into++] = cutting->truncated;
        first = n - UPROF_FITTED_FRAMES_MAX + 1;
    }
    memcpy(into + n_into, frames + first, (n - first) * sizeof(frames[0]));
    return n_into + n - first;
}

static UprofProfile *
cut_stacks(const UprofProfile *profile, bool has_vcpus)
{
    Cutting cutting = { has_vcpus,
                        uprof_names_marker(uprof_profile_names(profile), "[truncated]") };

    return uprof_profile_map(profile, cut_stack, &cutting);
}

/* ---- Stacks ---- */

typedef struct {
    uint64_t weight;
    guint index; /* in the order of uprof_profile_walk() */
} Stack;

static int
compare_stacks(const void *a, const void *b)
{
    const Stack *one = a, *other = b;

    if (one->weight != other->weight)
        return UPROF_COMPARE(other->weight, one->weight);
    return UPROF_COMPARE(one->index, other->index);
}

static void
list_stack(const UprofName *const *frames, unsigned n, uint64_t weight, void *data)
{
    GArray *stacks = data;
    const Stack stack = { weight, stacks->len };

    g_array_append_val(stacks, stack);
}

typedef struct {
    const bool *is_kept; /* by index */
    guint index;
    UprofProfile *into;
    bool has_root;
    uint64_t other; /* the weight of the stacks that are not kept */
} Folding;

static void
keep_stack(const UprofName *const *frames, unsigned n, uint64_t weight, void *data)
{
    Folding *folding = data;
    const unsigned first = folding->has_root ? 1 : 0;

    if (folding->is_kept[folding->index++] && n > first)
        uprof_profile_add(folding->into, frames + first, n - first, weight);
    else
        folding->other += weight;
}

/* Returns: (transfer full): @profile with its @n_kept largest stacks, and one stack for the rest */
static UprofProfile *
fold_stacks(const UprofProfile *profile, guint n_kept, uint64_t *other)
{
    UprofNames *names = uprof_profile_names(profile);
    g_autoptr(GArray) stacks = g_array_new(FALSE, FALSE, sizeof(Stack));

    uprof_profile_walk(profile, list_stack, stacks);
    g_array_sort(stacks, compare_stacks);
    g_autofree bool *is_kept = g_new0(bool, stacks->len);
    for (guint i = 0; i < MIN(n_kept, stacks->len); i++)
        is_kept[g_array_index(stacks, Stack, i).index] = true;
    Folding folding = {
        .is_kept = is_kept,
        .into = uprof_profile_new(names, uprof_profile_root(profile), false),
        .has_root = uprof_profile_root(profile) != NULL,
    };
    uprof_profile_walk(profile, keep_stack, &folding);
    const UprofName *marker = uprof_names_marker(names, "[other]");
    if (folding.other > 0)
        uprof_profile_add(folding.into, &marker, 1, folding.other);
    *other = folding.other;
    return folding.into;
}

/* ---- Bytes ---- */

/* Returns: the size of the content of a gzip file, which its last 4 bytes have (RFC 1952) */
static size_t
unpacked_size(const GString *packed)
{
    const unsigned char *end = (const unsigned char *)packed->str + packed->len;

    return packed->len < 4 ? 0
                           : (size_t)end[-4] | (size_t)end[-3] << 8 | (size_t)end[-2] << 16 |
                                 (size_t)end[-1] << 24;
}

static GString *
render_folded(const UprofProfile *profile, const UprofRun *run, guint n_kept)
{
    uint64_t other;
    g_autoptr(UprofProfile) folded = fold_stacks(profile, n_kept, &other);
    g_autofree char *comment =
        g_strdup_printf("%" G_GUINT64_FORMAT " samples of the smallest stacks are in [other], "
                        "because the profile has too many stacks",
                        other);
    const UprofPprofForm form = { comment };

    return uprof_pprof_render(folded, run, &form);
}

GString *
uprof_fitted_profile_render(const UprofProfile *profile, const UprofRun *run, bool has_vcpus)
{
    static const UprofPprofForm form = { NULL };
    g_autoptr(UprofProfile) cut = cut_stacks(profile, has_vcpus);
    size_t n = uprof_profile_n_stacks(cut);
    GString *packed = n > UPROF_FITTED_STACKS_MAX
                          ? render_folded(cut, run, UPROF_FITTED_STACKS_MAX - 1)
                          : uprof_pprof_render(cut, run, &form);

    n = MIN(n, UPROF_FITTED_STACKS_MAX);
    while (unpacked_size(packed) > UPROF_FITTED_BYTES_MAX && n > 1) {
        n /= 2;
        g_string_free(packed, TRUE);
        packed = render_folded(cut, run, (guint)n - 1);
    }
    return packed;
}
