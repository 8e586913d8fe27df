/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * profile.h - counted stacks: a trie of names with weights
 *
 * Gets whole stacks, root first, and gives them back, each once. Knows nothing
 * of where they come from.
 */
#pragma once

#include "uprof/intern.h"
#include "uprof/run.h"

enum {
    UPROF_PROFILE_STACKS_MAX = 200 * 1000,      /* of a live run; the rest counts as [unknown] */
    UPROF_PROFILE_FRAMES_MAX = 2 * 1000 * 1000, /* of all stacks, shared callers once */
    UPROF_PROFILE_NAMES_MAX = 100 * 1000,       /* for uprof_names_limit() */
    UPROF_PROFILE_DEPTH_MAX = 1100,             /* frames, root and markers included */
};

typedef struct _UprofProfile UprofProfile;

/**
 * uprof_profile_new:
 * @names: borrowed, outlives what is returned
 * @root: the domain
 * @bounded: keep to the numbers of stacks and frames above, as a live run must
 */
UprofProfile *uprof_profile_new(UprofNames *names, const UprofName *root, bool bounded);
void uprof_profile_free(UprofProfile *profile);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofProfile, uprof_profile_free)

/**
 * uprof_profile_add:
 * @frames: what stands under the root, outermost first
 * @n: how many, 1 to less than %UPROF_PROFILE_DEPTH_MAX
 * @weight: how much it counts
 */
void uprof_profile_add(UprofProfile *profile, const UprofName *const *frames, unsigned n,
                       uint64_t weight);

/** uprof_profile_total: Returns: all weights together */
uint64_t uprof_profile_total(const UprofProfile *profile);

/** UprofProfileVisit: @frames: root first, @n of them; @weight: not 0 */
typedef void (*UprofProfileVisit)(const UprofName *const *frames, unsigned n, uint64_t weight,
                                  void *data);

/** uprof_profile_walk: visits every stack once, children in byte order of their names */
void uprof_profile_walk(const UprofProfile *profile, UprofProfileVisit visit, void *data);

/**
 * UprofProfileRow: a function
 * @self: weight of stacks that end in it
 * @total: of stacks that it occurs in, each once
 */
typedef struct {
    const UprofName *name;
    uint64_t self;
    uint64_t total;
} UprofProfileRow;

/**
 * uprof_profile_rows:
 *
 * Returns: (transfer full): UprofProfileRow per function, markers included but
 *   for the root; most self first, then most total, then by name
 */
GArray *uprof_profile_rows(const UprofProfile *profile);
