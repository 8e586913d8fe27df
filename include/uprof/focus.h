/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * focus.h - one function of a profile: who called it, and whom it called
 */
#pragma once

#include "uprof/profile.h"

/**
 * UprofFocus:
 * @self, @total: as of UprofProfileRow
 * @all: weight of the whole profile, idle stacks left out
 * @callers, @callees: of UprofProfileRow: @total is the weight of stacks with that
 *   call in them, each once; the heaviest first
 */
typedef struct {
    const UprofName *name;
    uint64_t self;
    uint64_t total;
    uint64_t all;
    GArray *callers;
    GArray *callees;
} UprofFocus;

/** uprof_focus_new: Returns: (transfer full) (nullable): %NULL: no stack has a frame called @name */
UprofFocus *uprof_focus_new(const UprofProfile *profile, const char *name);
void uprof_focus_free(UprofFocus *focus);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofFocus, uprof_focus_free)
