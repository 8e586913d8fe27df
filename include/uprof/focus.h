/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * focus.h - the callers and callees of one function in a profile
 */
#pragma once

#include "uprof/profile.h"

/** UprofFocus: the function, its callers and its callees */
typedef struct {
    const UprofName *name; /* borrowed */
    uint64_t self;         /* weight of stacks that end in the function */
    uint64_t total;        /* weight of stacks that contain it */
    uint64_t all;          /* weight of all stacks, without idle ones */
    /* (element-type UprofProfileRow): owned; @total is the weight of stacks that contain the call,
     * counted once for each stack; heaviest first */
    GArray *callers;
    GArray *callees;
} UprofFocus;

/** uprof_focus_new: Returns: (transfer full) (nullable): %NULL if no stack contains @name */
UprofFocus *uprof_focus_new(const UprofProfile *profile, const char *name);

/**
 * uprof_focus_suggest: Returns: (transfer none) (nullable): the function whose name @name almost
 * is, or the first one whose name contains @name
 */
const char *uprof_focus_suggest(const UprofProfile *profile, const char *name);
void uprof_focus_free(UprofFocus *focus);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofFocus, uprof_focus_free)
