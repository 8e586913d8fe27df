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

#define UPROF_PROFILE_ALL_VCPUS UINT32_MAX

enum {
    UPROF_PROFILE_STACKS_MAX = 200 * 1000,      /* of a live run; the rest counts as [unknown] */
    UPROF_PROFILE_FRAMES_MAX = 2 * 1000 * 1000, /* of all stacks, shared callers once */
    UPROF_PROFILE_NAMES_MAX = 100 * 1000,       /* for uprof_names_limit() */
    UPROF_PROFILE_DEPTH_MAX = 1100,             /* frames, root and markers included */
    UPROF_PROFILE_TICKS_MAX = 4 * 1000 * 1000,  /* with times; what comes later has none */
};

typedef struct _UprofProfile UprofProfile;

/**
 * uprof_profile_new:
 * @names: borrowed, outlives what is returned
 * @root: (nullable): the domain; %NULL: stacks have first frames of their own
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

/** uprof_profile_n_stacks: Returns: how many different ones there are */
size_t uprof_profile_n_stacks(const UprofProfile *profile);

/** uprof_profile_n_frames: Returns: frames of all stacks, shared callers once */
size_t uprof_profile_n_frames(const UprofProfile *profile);

/**
 * UprofTick: when a stack was seen
 * @time_ns: monotonic, of the first of @count ticks in a row
 * @weight: of each of them
 */
typedef struct {
    uint64_t time_ns;
    uint32_t vcpu;
    uint32_t count;
    uint32_t weight;
} UprofTick;

/**
 * uprof_profile_keep_times: from now on what uprof_profile_add_tick() is told is
 *   kept, up to %UPROF_PROFILE_TICKS_MAX ticks
 */
void uprof_profile_keep_times(UprofProfile *profile);

/**
 * uprof_profile_add_tick: as uprof_profile_add()
 * @counts: whether the stack counts, or is only kept in the order of time
 */
void uprof_profile_add_tick(UprofProfile *profile, const UprofName *const *frames, unsigned n,
                            UprofTick tick, bool counts);

/**
 * uprof_profile_settle: when nothing is added any more: of a profile without a
 *   root, what all stacks begin with becomes the root
 * @name: (nullable): becomes the root of a profile without stacks
 */
void uprof_profile_settle(UprofProfile *profile, const UprofName *name);

/** uprof_profile_total: Returns: all weights together */
uint64_t uprof_profile_total(const UprofProfile *profile);

/** uprof_profile_root: Returns: (nullable): the domain */
const UprofName *uprof_profile_root(const UprofProfile *profile);

/**
 * uprof_profile_unknown: Returns: "[unknown]", of the table that its names are from, to which
 *   nothing is added
 */
const UprofName *uprof_profile_unknown(const UprofProfile *profile);

/** uprof_profile_names: Returns: (transfer none): the table that its names are from */
UprofNames *uprof_profile_names(const UprofProfile *profile);

/** uprof_profile_n_ticks: Returns: ticks that were kept; 0 if their order is not known */
size_t uprof_profile_n_ticks(const UprofProfile *profile);

/** uprof_profile_n_untimed: Returns: ticks that came when there was no room for their times */
uint64_t uprof_profile_n_untimed(const UprofProfile *profile);

/** uprof_profile_add_untimed: @n: more of those, of a profile that is copied */
void uprof_profile_add_untimed(UprofProfile *profile, uint64_t n);

/** UprofProfileTickVisit: @frames: root first, @n of them */
typedef void (*UprofProfileTickVisit)(const UprofName *const *frames, unsigned n, UprofTick tick,
                                      void *data);

/**
 * uprof_profile_walk_ticks: visits what was kept, in the order in which it came
 * @vcpu: of that one alone; %UPROF_PROFILE_ALL_VCPUS: of all
 */
void uprof_profile_walk_ticks(const UprofProfile *profile, uint32_t vcpu,
                              UprofProfileTickVisit visit, void *data);

/** UprofProfileVisit: @frames: root first, if there is one, @n of them; @weight: not 0 */
typedef void (*UprofProfileVisit)(const UprofName *const *frames, unsigned n, uint64_t weight,
                                  void *data);

/** uprof_profile_walk: visits every stack once, children in byte order of their names */
void uprof_profile_walk(const UprofProfile *profile, UprofProfileVisit visit, void *data);

/**
 * UprofProfileMap: what becomes of a stack
 * @frames: what stands under the root, outermost first, @n of them
 * @into: (out): names of the same table, room for %UPROF_PROFILE_DEPTH_MAX - 1
 *
 * Returns: how many, at least 1
 */
typedef unsigned (*UprofProfileMap)(const UprofName *const *frames, unsigned n,
                                    const UprofName **into, void *data);

/**
 * uprof_profile_map:
 *
 * Returns: (transfer full): the same profile with other stacks, the times of its
 *   ticks included
 */
UprofProfile *uprof_profile_map(const UprofProfile *profile, UprofProfileMap map, void *data);

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
 * uprof_profile_is_halt: whether a stack says that a vCPU was halted, and nothing
 *   else: [idle] right under the domain or the level of a vCPU. With --idle=stack
 *   [idle] stands on the stack that the vCPU was halted in.
 * @frames: root first, as visited; without a root the first frame counts as one
 */
bool uprof_profile_is_halt(const UprofName *const *frames, unsigned n);

/**
 * uprof_profile_rows:
 * @halted: (out) (nullable): weight of stacks that are halts; they are left out then
 *
 * Returns: (transfer full): UprofProfileRow per function, markers included but not
 *   the root; most self first, then most total, then by name
 */
GArray *uprof_profile_rows(const UprofProfile *profile, uint64_t *halted);

/**
 * uprof_profile_level_is_vcpu: whether a frame is the level of a vCPU: "vcpu3"
 * @vcpu: (out)
 */
bool uprof_profile_level_is_vcpu(const UprofName *name, uint32_t *vcpu);
