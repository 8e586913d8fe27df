/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * profile.h - counted stacks: a trie of names with weights
 *
 * A profile takes stacks, root first, and returns each different stack once. It does not
 * know where stacks come from.
 */
#pragma once

#include "uprof/intern.h"
#include "uprof/run-facts.h"

#define UPROF_PROFILE_ALL_VCPUS UINT32_MAX

enum {
    UPROF_PROFILE_STACKS_MAX = 200 * 1000,     /* of a live run; the rest counts as [unknown] */
    UPROF_PROFILE_NAMES_MAX = 100 * 1000,      /* for uprof_names_limit() */
    UPROF_PROFILE_DEPTH_MAX = 1100,            /* frames of a stack, with root and markers */
    UPROF_PROFILE_TICKS_MAX = 4 * 1000 * 1000, /* with times; later ticks have none */
};

typedef struct _UprofProfile UprofProfile;

/**
 * uprof_profile_new:
 * @names: borrowed; must outlive the profile
 * @root: (nullable): the domain; %NULL if each stack has a root of its own
 * @bounded: limits stacks and frames to the numbers above, as a live run must
 */
UprofProfile *uprof_profile_new(UprofNames *names, const UprofName *root, bool bounded);
void uprof_profile_free(UprofProfile *profile);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofProfile, uprof_profile_free)

/**
 * uprof_profile_add: counts one stack
 * @frames: the frames below the root, outermost first
 * @n: 1 to %UPROF_PROFILE_DEPTH_MAX - 1
 */
void uprof_profile_add(UprofProfile *profile, const UprofName *const *frames, unsigned n,
                       uint64_t weight);

/** uprof_profile_n_stacks: Returns: number of different stacks */
size_t uprof_profile_n_stacks(const UprofProfile *profile);

/** uprof_profile_n_frames: Returns: frames of all stacks; shared callers count once */
size_t uprof_profile_n_frames(const UprofProfile *profile);

/** UprofTick: the time of a stack: one tick, or several in a row */
typedef struct {
    uint64_t time_ns; /* monotonic, of the first tick */
    uint32_t vcpu;
    uint32_t count;  /* ticks */
    uint32_t weight; /* of each tick */
} UprofTick;

/**
 * uprof_profile_keep_times: keeps the times of later calls of uprof_profile_add_tick(), up to
 *   %UPROF_PROFILE_TICKS_MAX ticks
 */
void uprof_profile_keep_times(UprofProfile *profile);

/**
 * uprof_profile_add_tick: like uprof_profile_add(), with the time
 * @counts: false: keeps the time only, and adds no weight
 */
void uprof_profile_add_tick(UprofProfile *profile, const UprofName *const *frames, unsigned n,
                            UprofTick tick, bool counts);

/**
 * uprof_profile_settle: gives a root to a profile that has none; call it after the last stack
 * @name: (nullable): becomes the root of a profile without stacks
 *
 * A first frame that all stacks share becomes the root.
 */
void uprof_profile_settle(UprofProfile *profile, const UprofName *name);

/** uprof_profile_total: Returns: the sum of all weights */
uint64_t uprof_profile_total(const UprofProfile *profile);

/** uprof_profile_root: Returns: (nullable): the domain */
const UprofName *uprof_profile_root(const UprofProfile *profile);

/** uprof_profile_names: Returns: (transfer none): the table of its names */
UprofNames *uprof_profile_names(const UprofProfile *profile);

/** uprof_profile_n_ticks: Returns: ticks with a time; 0 if times are not kept */
size_t uprof_profile_n_ticks(const UprofProfile *profile);

/** uprof_profile_n_untimed: Returns: ticks without a time, because the limit was reached */
uint64_t uprof_profile_n_untimed(const UprofProfile *profile);

/** uprof_profile_add_untimed: adds @n ticks without a time, from a profile that is copied */
void uprof_profile_add_untimed(UprofProfile *profile, uint64_t n);

/** UprofProfileTickVisit: @frames: @n frames, root first */
typedef void (*UprofProfileTickVisit)(const UprofName *const *frames, unsigned n, UprofTick tick,
                                      void *data);

/**
 * uprof_profile_walk_ticks: visits all ticks with a time, in the order in which they were added
 * @vcpu: the vCPU to visit, or %UPROF_PROFILE_ALL_VCPUS
 */
void uprof_profile_walk_ticks(const UprofProfile *profile, uint32_t vcpu,
                              UprofProfileTickVisit visit, void *data);

/** UprofProfileStack: a stack of a profile; equal stacks have the same address */
typedef struct _UprofProfileStack UprofProfileStack;

typedef void (*UprofProfileTimeVisit)(const UprofProfileStack *stack, UprofTick tick, void *data);

/**
 * uprof_profile_walk_times: like uprof_profile_walk_ticks() for all vCPUs, for visitors that
 * remember stacks
 */
void uprof_profile_walk_times(const UprofProfile *profile, UprofProfileTimeVisit visit, void *data);

/**
 * uprof_profile_stack_frames: writes the frames of @stack, root first
 * @frames: (out): room for %UPROF_PROFILE_DEPTH_MAX names
 *
 * Returns: their number
 */
unsigned uprof_profile_stack_frames(const UprofProfileStack *stack, const UprofName **frames);

/** uprof_profile_stack_weight: Returns: its weight in the profile; 0 if only its times are kept */
uint64_t uprof_profile_stack_weight(const UprofProfileStack *stack);

/** UprofProfileVisit: @frames: @n frames, root (if any) first; @weight: not 0 */
typedef void (*UprofProfileVisit)(const UprofName *const *frames, unsigned n, uint64_t weight,
                                  void *data);

/** uprof_profile_walk: visits each stack once, callees in byte order of their names */
void uprof_profile_walk(const UprofProfile *profile, UprofProfileVisit visit, void *data);

/**
 * UprofProfileMap: replaces a stack
 * @frames: @n frames below the root, outermost first
 * @into: (out): room for %UPROF_PROFILE_DEPTH_MAX - 1 names of the same table
 *
 * Returns: number of frames in @into, at least 1
 */
typedef unsigned (*UprofProfileMap)(const UprofName *const *frames, unsigned n,
                                    const UprofName **into, void *data);

/** uprof_profile_map: Returns: (transfer full): a copy with other stacks, and with all times */
UprofProfile *uprof_profile_map(const UprofProfile *profile, UprofProfileMap map, void *data);

/** UprofProfileRow: a function */
typedef struct {
    const UprofName *name; /* borrowed */
    uint64_t self;         /* weight of stacks that end in the function */
    uint64_t total;        /* weight of stacks that contain it, each counted once */
} UprofProfileRow;

/**
 * uprof_profile_rows:
 * @halted: (out) (nullable): weight of halts, which then get no row; %NULL: halts get a row
 *
 * Returns: (transfer full) (element-type UprofProfileRow): a row for each function and marker, but
 *   not for the root; sorted by self, then by total, then by name
 */
GArray *uprof_profile_rows(const UprofProfile *profile, uint64_t *halted);

/**
 * uprof_profile_level_is_vcpu: does the name stand for a vCPU, as "vcpu3" does?
 * @vcpu: (out): its number
 */
bool uprof_profile_level_is_vcpu(const UprofName *name, uint32_t *vcpu);

/**
 * uprof_profile_level_is_cgroup: does the name stand for a cgroup (cgroups.h), or for "[cgroup]",
 * which says that it is not known? Only the frame below the domain, or below the vCPU, can.
 */
bool uprof_profile_level_is_cgroup(const UprofName *name);
