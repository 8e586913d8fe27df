/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * expand-inlined-priv.h - replaces addresses in stacks by functions
 */
#pragma once

#include "uprof/profile.h"
#include "uprof/sym.h"

/**
 * uprof_expand_inlined:
 * @profile: (transfer full): stacks with sites (sym.h) as frames
 * @sym: knows which functions were inlined at each site
 *
 * If a stack has no room for all functions of a site, the stack gets only the function that was
 * not inlined.
 *
 * Returns: (transfer full): the same profile with one frame for each function
 */
UprofProfile *uprof_expand_inlined(UprofProfile *profile, UprofSym *sym);
